// Compiled kernels on disk, by content: one file each, CACHE/kernels/K/KEY, where K is the key's first two
// digits.
//
// A file is a line "nereid-kernel 1 SHA256\n" and then the JSON of a CompiledKernel, of which SHA256 is the
// hash. Files are written under a temporary name and renamed, so any number of processes may write the same
// entry, and a kill -9 leaves an old entry, a new one or none. What does not read back as written is taken
// for absent and written anew. The temporary file that a killed writer leaves goes an hour later, with the
// next entry written to its folder.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "nereid/tracer/compiled_kernel.h"

namespace nereid::tracer {

class KernelCache {
 public:
  explicit KernelCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `key`: 64 hexadecimal digits.
  std::optional<CompiledKernel> find(const std::string& key);
  // A cache that cannot be written is no reason to fail: see `trouble`.
  void keep(const std::string& key, const CompiledKernel& kernel);

  // Why compiled kernels are not kept; empty while they are.
  std::string trouble() const;
  std::filesystem::path path_of(const std::string& key) const { return folder_ / key.substr(0, 2) / key; }

 private:
  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::string trouble_;
};

}  // namespace nereid::tracer
