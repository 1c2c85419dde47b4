// A file of pairs that a later run can continue: lines, and a second file that says how far they go.
//
// FILE.jsonl holds whole lines up to the `bytes` of FILE.jsonl.progress; what is after (a run that was
// killed) is cut off when it is opened again, and made again. The progress file is replaced after each group
// of lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::dataset {

struct Progress {
  uint64_t next = 0;      // the number of the first program that was not looked at
  uint64_t programs = 0;  // that gave pairs
  uint64_t pairs = 0;
  uint64_t not_lowered = 0, degenerate = 0;   // programs
  std::map<std::string, int64_t> verdicts{};  // of variants
  bool operator==(const Progress&) const = default;
};

class PairFile {
 public:
  // `made_by`: the options that decide what is in the file. An error (blamed on the input) where the file is
  // of others, or is there without its progress.
  static Result<PairFile> open(const std::filesystem::path& path, const std::string& made_by,
                               double seconds_unsaved = 1);

  const Progress& progress() const { return progress_; }
  // `lines` are whole, and `progress` is true when they are there. It is saved now if that was last done
  // `seconds_unsaved` ago: what comes after a saved progress is cut off when the file is opened again.
  Status append(const std::string& lines, const Progress& progress);
  Status save();

 private:
  std::filesystem::path path_, progress_path_;
  std::string made_by_;
  Fd fd_;
  uint64_t bytes_ = 0;
  Progress progress_;
  double seconds_unsaved_ = 1;
  std::optional<Stopwatch> saved_;  // since then
};

}  // namespace nereid::dataset
