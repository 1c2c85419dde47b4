// Many pairs at once: read as a stream, judged in parallel, one JSON line each as soon as it is done,
// resumable.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/verify/pair.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// One item of a batch: a pair, or why there is none.
struct BatchItem {
  std::string id;
  Result<Pair> pair;
};

// The pairs of FILE.jsonl or of a folder, in order; or of the lines that come through stdin, where the path
// is "-", each judged when it is there.
//
// A line of the file is an object: `id`, `reference` (a path, relative to the file's folder) or
// `reference_source`, `candidate` (a path) or `candidate_source`; and if
// need be `policy`, `trials`, `seed` and `protocol` of this pair, `form` ("source" or "answer") of its candidate, and `trace`, as
// its verdict of another time has it. In a
// folder, and in every folder right below it, `reference.py` is paired with each other .py, .txt or .md file
// beside it; the id is the path below the folder, without its ending.
class BatchReader {
 public:
  static Result<BatchReader> open(const std::filesystem::path& path);
  // nullopt at the end. An item that cannot be read, or whose id came before, carries the error.
  std::optional<BatchItem> next();

 private:
  BatchItem read_line(const std::string& line);
  std::filesystem::path path_;
  std::ifstream lines_;
  bool is_folder_ = false, is_stdin_ = false;
  int64_t number_ = 0;  // of the line, or of the file in the folder
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  // reference, candidate
  std::set<std::string> seen_;
};

struct BatchOptions {
  int jobs = 0;                    // 0: one a core
  std::filesystem::path output{};  // empty: to `stream`
  std::function<Status(const std::string& line)> stream{};
  std::function<void(const Verdict&)> on_verdict{};  // for progress; called under a lock
};

struct BatchSummary {
  int64_t skipped = 0;                     // were in the output already
  std::map<std::string, int64_t> words{};  // counts of this run
  int64_t our_errors = 0, input_errors = 0;
};

// Judges every pair whose id is not in the output yet (an Error of ours there is tried again). `judge` is
// called from several threads. A line is written whole or not at all; a line that a kill cut short is dropped
// when the output is opened again. An interrupt ends it with an Error blamed so, when the verdicts under way
// have ended; those are not written.
Result<BatchSummary> run_batch(BatchReader& reader, const std::function<Verdict(const Pair&)>& judge,
                               const BatchOptions& options);

}  // namespace nereid::verify
