#include "nereid/dataset/harvest_progress.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

namespace nereid::dataset {

Json to_json(const PackageProgress& p) {
  return {{"next", p.next},         {"entries", p.entries}, {"failed", p.failed},
          {"tasks", p.tasks},       {"texts", p.texts},     {"seconds", p.seconds},
          {"failures", p.failures}, {"dropped", p.dropped}, {"done", p.done}};
}

PackageProgress package_progress(const Json& json) {
  PackageProgress p;
  json.at("next").get_to(p.next), json.at("entries").get_to(p.entries), json.at("failed").get_to(p.failed);
  json.at("tasks").get_to(p.tasks), json.at("texts").get_to(p.texts), json.at("seconds").get_to(p.seconds);
  json.at("failures").get_to(p.failures), json.at("dropped").get_to(p.dropped);
  json.at("done").get_to(p.done);
  return p;
}

std::string cause_of(const std::string& error) {
  std::string cause;
  for (const char c : error.substr(0, 80))
    cause += std::isdigit(static_cast<unsigned char>(c)) != 0 ? '#' : c == '\n' ? ' ' : c;
  return cause;
}

void count_cause(std::map<std::string, uint64_t>& counts, const std::string& key) {
  constexpr size_t kMost = 200;
  ++counts[counts.contains(key) || counts.size() < kMost ? key : "others"];
}

Result<HarvestLines> HarvestLines::open(const std::filesystem::path& path, uint64_t bytes) {
  HarvestLines lines;
  lines.path_ = path, lines.bytes_ = bytes;
  lines.fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lines.fd_.valid()) return input_error("-o: cannot write {}: {}", path.string(), std::strerror(errno));
  struct stat about{};
  if (::fstat(lines.fd_.get(), &about) != 0 || static_cast<uint64_t>(about.st_size) < bytes)
    return input_error("{} is shorter than progress.json says; remove the folder to start over",
                       path.string());
  const auto end = static_cast<off_t>(bytes);
  if (::ftruncate(lines.fd_.get(), end) != 0 || ::lseek(lines.fd_.get(), end, SEEK_SET) < 0)
    return input_error("-o: cannot resume {}: {}", path.string(), std::strerror(errno));
  return lines;
}

Status HarvestLines::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return our_error("cannot write {}: {}", path_.string(), std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
    bytes_ += static_cast<uint64_t>(written);
  }
  return ok_status();
}

Status HarvestLines::sync() const {
  if (::fdatasync(fd_.get()) != 0)
    return our_error("cannot write {}: {}", path_.string(), std::strerror(errno));
  return ok_status();
}

}  // namespace nereid::dataset
