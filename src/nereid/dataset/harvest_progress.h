// How far a harvest came, as progress.json holds it, and the files of lines that it continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid::dataset {

// How far one package was looked at.
struct PackageProgress {
  uint64_t next = 0, entries = 0;  // the first entry that was not looked at; all
  uint64_t failed = 0, tasks = 0, texts = 0;
  double seconds = 0;
  std::map<std::string, uint64_t> failures{}, dropped{};
  bool done = false;
};

Json to_json(const PackageProgress& progress);
// Throws nlohmann's exceptions where a field is missing or of another type.
PackageProgress package_progress(const Json& json);

// Words of an error, without what is different each time, as a key of a count.
std::string cause_of(const std::string& error);
// Adds one, and keeps the counts of errors few.
void count_cause(std::map<std::string, uint64_t>& counts, const std::string& key);

// One side's lines, whole up to a known byte.
class HarvestLines {
 public:
  // What comes after `bytes` is cut off. An error where there is less, or it cannot be written.
  static Result<HarvestLines> open(const std::filesystem::path& path, uint64_t bytes);
  Status append(std::string_view text);
  Status sync() const;
  uint64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Fd fd_;
  uint64_t bytes_ = 0;
};

}  // namespace nereid::dataset
