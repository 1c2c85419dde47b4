#include "nereid/tracer/kernel_cache.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"

namespace nereid::tracer {
namespace {

constexpr std::string_view kMagic = "nereid-kernel 1 ";
constexpr size_t kHashDigits = 64, kMaxEntryBytes = kMaxCubinBytes / 3 * 4 + (size_t{1} << 20);

// Of writers that were killed.
void sweep(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored))
    if (file.path().extension() == ".tmp" && file.last_write_time(ignored) < old)
      std::filesystem::remove(file.path(), ignored);
}

}  // namespace

std::optional<CompiledKernel> KernelCache::find(const std::string& key) {
  const auto bytes = read_file(path_of(key), kMaxEntryBytes);
  if (!bytes.ok()) return {};
  const size_t head = kMagic.size() + kHashDigits + 1;
  if (bytes->size() < head || !bytes->starts_with(kMagic) || (*bytes)[head - 1] != '\n') return {};
  const std::string_view body = std::string_view(*bytes).substr(head);
  if (sha256_hex(body) != bytes->substr(kMagic.size(), kHashDigits)) return {};
  const auto json = parse_json(body, path_of(key).string());
  if (!json.ok()) return {};
  auto kernel = compiled_kernel_from_json(*json);
  if (!kernel.ok()) return {};
  return std::move(kernel).value();
}

void KernelCache::keep(const std::string& key, const CompiledKernel& kernel) {
  const std::string body = to_json(kernel).dump();
  const auto path = path_of(key);
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const Status written = write_file_atomically(path, std::string(kMagic) + sha256_hex(body) + "\n" + body);
  sweep(path.parent_path());
  const std::lock_guard lock(mutex_);
  if (written.ok()) {
    trouble_.clear();
  } else if (trouble_.empty()) {
    trouble_ = written.error().message;
    spdlog::warn("compiled kernels are not kept, each run compiles them again: {}", trouble_);
  }
}

std::string KernelCache::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace nereid::tracer
