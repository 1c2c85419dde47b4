#include "nereid/lm/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"

namespace nereid::lm {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors lie in memory as in the file");

constexpr uint64_t kMaxHeader = 100'000'000;  // as the format's own reader allows
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxDimensions = 16;

// nlohmann keeps the last of two members of one name; here that would be one tensor hiding another.
Status refuse_repeated_names(std::string_view header, size_t members, std::string_view what) {
  size_t seen = 0;
  const auto counts = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::key && depth == 1) ++seen;
    return true;
  };
  const Json again = Json::parse(header.begin(), header.end(), counts);
  if (seen == members) return ok_status();
  return input_error("{}: expected a header that names each tensor once, got {} names of which {} differ",
                     what, seen, members);
}

struct Extent {
  uint64_t begin, end;
  std::string name;
};

Result<TensorView> read_entry(const JsonField& entry, std::span<const std::byte> data, Extent& extent) {
  TensorView view;
  NEREID_TRY(const JsonField type, entry.at("dtype"));
  NEREID_TRY(const std::string type_name, type.text(64));
  const auto dtype = dtype_from_safetensors(type_name);
  if (!dtype) return type.expected("a dtype of safetensors (F32, BF16, F16, ...)");
  view.dtype = *dtype;

  NEREID_TRY(const JsonField shape, entry.at("shape"));
  uint64_t bytes = element_bytes(*dtype);
  NEREID_TRY_STATUS(shape.each(kMaxDimensions, [&](const JsonField& size) -> Status {
    NEREID_TRY(const int64_t n, size.integer(0, int64_t{1} << 48));
    view.shape.push_back(n);
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes))
      return shape.expected("a shape of less than 2^64 bytes");
    return ok_status();
  }));

  NEREID_TRY(const JsonField offsets, entry.at("data_offsets"));
  NEREID_TRY(const size_t ends, offsets.size(2));
  if (ends != 2) return offsets.expected("[begin, end]");
  const JsonField first = offsets.item(0), second = offsets.item(1);
  const auto most = static_cast<int64_t>(data.size());
  NEREID_TRY(const int64_t begin, first.integer(0, most));
  NEREID_TRY(const int64_t end, second.integer(begin, most));
  if (static_cast<uint64_t>(end - begin) != bytes)
    return offsets.expected(fmt::format("{} bytes, as dtype and shape ask for, not {}", bytes, end - begin));
  view.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  extent.begin = static_cast<uint64_t>(begin), extent.end = static_cast<uint64_t>(end);
  return view;
}

Status check_coverage(std::vector<Extent> extents, uint64_t size, std::string_view what) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const auto& extent : extents) {
    if (extent.begin != covered)
      return input_error(
          "{}: tensor '{}': expected its bytes to begin at {}, where those before it end, got {}", what,
          extent.name, covered, extent.begin);
    covered = extent.end;
  }
  if (covered != size)
    return input_error("{}: expected tensors to cover all {} bytes after the header, got {}", what, size,
                       covered);
  return ok_status();
}

}  // namespace

size_t TensorInfo::bytes() const {
  size_t bytes = element_bytes(dtype);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

Result<SafetensorsContent> parse_safetensors(std::span<const std::byte> bytes, std::string_view what) {
  if (bytes.size() < 8)
    return input_error("{}: {} bytes, expected at least 8 with the header's length", what, bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > std::min<uint64_t>(kMaxHeader, bytes.size() - 8))
    return input_error("{}: a header of {} bytes, expected at most {}", what, length,
                       std::min<uint64_t>(kMaxHeader, bytes.size() - 8));
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  if (!header.starts_with('{')) return input_error("{}: expected a header that begins with '{{'", what);
  NEREID_TRY(const Json document, parse_json(header, what, {.max_bytes = kMaxHeader, .max_depth = 8}));
  NEREID_TRY_STATUS(refuse_repeated_names(header, document.size(), what));

  SafetensorsContent content;
  std::vector<Extent> extents;
  const auto data = bytes.subspan(8 + length);
  const JsonField root(document, what);
  NEREID_TRY_STATUS(
      root.each_member(kMaxTensors, [&](const std::string& name, const JsonField& entry) -> Status {
        if (name == "__metadata__") {
          return entry.each_member(kMaxTensors,
                                   [&](const std::string& key, const JsonField& value) -> Status {
                                     NEREID_TRY(content.metadata[key], value.text());
                                     return ok_status();
                                   });
        }
        Extent extent{.begin = 0, .end = 0, .name = name};
        NEREID_TRY(auto view, read_entry(entry, data, extent));
        content.tensors.emplace(name, std::move(view));
        extents.push_back(std::move(extent));
        return ok_status();
      }));
  NEREID_TRY_STATUS(check_coverage(std::move(extents), data.size(), what));
  return content;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would wait for a writer
  if (!fd.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return input_error("{}: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return input_error("{}: expected a regular file", path.string());
  const auto size = static_cast<size_t>(info.st_size);
  if (size < 8)
    return input_error("{}: {} bytes, expected at least 8 with the header's length", path.string(), size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED)
    return our_error("{}: mmap of {} bytes: {}", path.string(), size, std::strerror(errno));
  SafetensorsFile file;
  file.path_ = path;
  file.mapping_ =
      std::shared_ptr<const void>(mapped, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  NEREID_TRY(file.content_, parse_safetensors({static_cast<const std::byte*>(mapped), size}, path.string()));
  return file;
}

namespace {

// A shard's name must stay in its folder.
bool plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const auto index = folder / "model.safetensors.index.json";
  std::error_code absent;
  if (!std::filesystem::exists(index, absent)) {
    NEREID_TRY(auto file, SafetensorsFile::open(folder / "model.safetensors"));
    for (const auto& [name, unused] : file.tensors()) checkpoint.file_of_.emplace(name, 0);
    checkpoint.files_.push_back(std::move(file));
    return checkpoint;
  }
  NEREID_TRY(const std::string text, read_file(index, kMaxHeader));
  NEREID_TRY(const Json document, parse_json(text, index.string()));
  const std::string named = index.string();  // a field refers to its name
  const JsonField root(document, named);
  NEREID_TRY(const JsonField map, root.at("weight_map"));
  std::map<std::string, size_t> numbers;  // of files, by name
  NEREID_TRY_STATUS(
      map.each_member(kMaxTensors, [&](const std::string& name, const JsonField& value) -> Status {
        NEREID_TRY(const std::string file_name, value.text(4096));
        if (!plain_file_name(file_name)) return value.expected("the name of a file in the same folder");
        auto [at, is_new] = numbers.emplace(file_name, checkpoint.files_.size());
        if (is_new) {
          NEREID_TRY(auto file, SafetensorsFile::open(folder / file_name));
          checkpoint.files_.push_back(std::move(file));
        }
        const auto& file = checkpoint.files_[at->second];
        if (file.tensors().find(name) == file.tensors().end())
          return input_error("{}: expected tensor '{}', which {} puts here", file.path().string(), name,
                             index.string());
        checkpoint.file_of_.emplace(name, at->second);
        return ok_status();
      }));
  // What is in a shard that the index does not name would be lost in silence.
  for (size_t i = 0; i < checkpoint.files_.size(); ++i) {
    for (const auto& [name, unused] : checkpoint.files_[i].tensors()) {
      const auto found = checkpoint.file_of_.find(name);
      if (found == checkpoint.file_of_.end() || found->second != i)
        return input_error("{}: tensor '{}' is not what {} puts here", checkpoint.files_[i].path().string(),
                           name, index.string());
    }
  }
  return checkpoint;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : &files_[found->second].tensors().find(name)->second;
}

std::string Checkpoint::file_of(std::string_view name) const {
  return files_[file_of_.find(name)->second].path().string();
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    std::vector<TensorInfo> tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  // The format's own writer puts wide elements first, so that all are aligned; readers need no order.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const auto& tensor : tensors) {
    NEREID_CHECK(!header.contains(tensor.name), "one tensor of the name '{}'", tensor.name);
    header[tensor.name] = {{"dtype", safetensors_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';  // so that the data is aligned

  const std::string temporary = path.string() + ".tmp";
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return our_error("{}: {}", temporary, std::strerror(errno));
  SafetensorsWriter writer(path, temporary, std::move(fd), at);
  const uint64_t length = text.size();
  NEREID_TRY_STATUS(writer.write(&length, 8));
  NEREID_TRY_STATUS(writer.write(text.data(), text.size()));
  return writer;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::move(other.fd_)),
      missing_(other.missing_) {
  other.temporary_.clear();
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status SafetensorsWriter::write(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::write(fd_.get(), at, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return our_error("{}: {}", temporary_.string(), std::strerror(errno));
    at += wrote, bytes -= static_cast<size_t>(wrote);
  }
  return ok_status();
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  NEREID_CHECK(bytes.size() <= missing_, "at most the {} bytes that are missing, got {}", missing_,
               bytes.size());
  NEREID_TRY_STATUS(write(bytes.data(), bytes.size()));
  missing_ -= bytes.size();
  return ok_status();
}

Status SafetensorsWriter::finish() {
  NEREID_CHECK(missing_ == 0, "all tensors' bytes, {} are missing", missing_);
  if (::fsync(fd_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return our_error("{}: {}", path_.string(), std::strerror(errno));
  temporary_.clear();
  fd_.reset();
  return ok_status();
}

ShardPlan plan_shards(const std::vector<TensorInfo>& tensors, uint64_t max_bytes) {
  ShardPlan plan;
  uint64_t total = 0, in_last = 0;
  for (const auto& tensor : tensors) {
    const uint64_t bytes = tensor.bytes();
    if (plan.shards.empty() || in_last + bytes > max_bytes) plan.shards.emplace_back(), in_last = 0;
    plan.shards.back().tensors.push_back(tensor);
    in_last += bytes, total += bytes;
  }
  if (plan.shards.size() <= 1) {
    if (plan.shards.empty()) plan.shards.emplace_back();
    plan.shards[0].file = "model.safetensors";
    return plan;
  }
  Json map = Json::object();
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    auto& shard = plan.shards[i];
    shard.file = fmt::format("model-{:05d}-of-{:05d}.safetensors", i + 1, plan.shards.size());
    for (const auto& tensor : shard.tensors) map[tensor.name] = shard.file;
  }
  plan.index = Json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2) + "\n";
  return plan;
}

}  // namespace nereid::lm
