#include "nereid/dataset/pair_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nereid/base/json.h"

namespace nereid::dataset {
namespace {

Json to_json(const Progress& p) {
  return {{"next", p.next},
          {"programs", p.programs},
          {"pairs", p.pairs},
          {"not_lowered", p.not_lowered},
          {"degenerate", p.degenerate},
          {"verdicts", p.verdicts}};
}

Progress progress_from_json(const Json& json) {
  Progress p;
  json.at("next").get_to(p.next), json.at("programs").get_to(p.programs), json.at("pairs").get_to(p.pairs);
  json.at("not_lowered").get_to(p.not_lowered), json.at("degenerate").get_to(p.degenerate);
  json.at("verdicts").get_to(p.verdicts);
  return p;
}

}  // namespace

Result<PairFile> PairFile::open(const std::filesystem::path& path, const std::string& made_by,
                                double seconds_unsaved) {
  PairFile file;
  file.seconds_unsaved_ = seconds_unsaved;
  file.path_ = path, file.made_by_ = made_by;
  file.progress_path_ = path.string() + ".progress";
  std::error_code failure;
  const bool known = std::filesystem::exists(file.progress_path_, failure);
  const auto size = std::filesystem::file_size(path, failure);
  if (!known && !failure && size > 0)
    return input_error("{} exists without {}, which holds its settings; remove it or name another file",
                       path.string(), file.progress_path_.string());
  if (known) {
    NEREID_TRY(const std::string text, read_file(file.progress_path_, size_t{1} << 20));
    NEREID_TRY(const Json json, parse_json(text, file.progress_path_.string()));
    try {
      const auto other = json.at("made_by").get<std::string>();
      if (other != made_by)
        return input_error("{} was made with other options ({}; now {}); name another file", path.string(),
                           other, made_by);
      json.at("bytes").get_to(file.bytes_);
      file.progress_ = progress_from_json(json);
    } catch (const nlohmann::json::exception& e) {
      return input_error("{}: {}; remove it and {} to start over", file.progress_path_.string(), e.what(),
                         path.string());
    }
    if (failure || size < file.bytes_)
      return input_error("{} has {} bytes and should have {}; remove it and {} to start over", path.string(),
                         failure ? 0 : size, file.bytes_, file.progress_path_.string());
  }
  file.fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.fd_.valid()) return input_error("-o: cannot write {}: {}", path.string(), std::strerror(errno));
  const auto end = static_cast<off_t>(file.bytes_);
  if (::ftruncate(file.fd_.get(), end) != 0 || ::lseek(file.fd_.get(), end, SEEK_SET) < 0)
    return input_error("-o: cannot resume {}: {}", path.string(), std::strerror(errno));
  return file;
}

Status PairFile::append(const std::string& lines, const Progress& progress) {
  std::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;  // lines stay whole
      if (::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0)
        return our_error("{}: {}; its last line may be cut short", path_.string(), std::strerror(why));
      return our_error("{}: {}", path_.string(), std::strerror(why));
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  bytes_ += lines.size();
  progress_ = progress;
  return saved_ && saved_->seconds() < seconds_unsaved_ ? ok_status() : save();
}

Status PairFile::save() {
  Json json = to_json(progress_);
  json["made_by"] = made_by_, json["bytes"] = bytes_;
  NEREID_TRY_STATUS(write_file_atomically(progress_path_, json.dump() + "\n"));
  saved_.emplace();
  return ok_status();
}

}  // namespace nereid::dataset
