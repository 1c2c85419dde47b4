// Many pairs at once: read as a stream, judged in parallel, one JSON line each as soon as it is done,
// resumable.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"
#include "nereid/verify/pair.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// One item of a batch: a pair, or why there is none.
struct BatchItem {
  std::string id;         // as JSON (batch_line.h); empty where the line has none that can be read
  int64_t line = 0;       // of the file or of stdin, from 1; of a folder the number of the file
  std::string place{};    // "stdin:3"
  bool repeated = false;  // another with this id came before, and this is no pair
  Result<Pair> pair;
};

// The pairs of FILE.jsonl or of a folder, in order; or of the lines that come through stdin, where the path
// is "-", each judged when it is there.
//
// docs/batch_protocol.md says what a line of the file holds. In a folder, and in every folder right below it,
// `reference.py` is paired with each other .py, .txt or .md file in its folder; the id is the path below the
// folder, without its ending.
class BatchReader {
 public:
  static Result<BatchReader> open(const std::filesystem::path& path);
  // nullopt at the end, or at an interrupt. An item that cannot be read carries the error, and so does one
  // whose id came before and may not come again: in a file or a folder any, in a stream one without its
  // verdict.
  std::optional<BatchItem> next();
  // The item's verdict is out: a stream may use its id again. May run at the same time as next().
  void done(const BatchItem& item);

 private:
  // The next line without its end; false at the end of the file. `cut`: it was longer than a line may be.
  bool next_line(std::string& line, bool& cut);
  bool fill();  // the buffer with what comes next; false: nothing does

  std::filesystem::path path_;
  Fd file_;
  std::string buffer_;
  size_t at_ = 0;  // in it
  bool is_folder_ = false, is_stdin_ = false;
  int64_t number_ = 0;  // of the line, or of the file in the folder
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  // reference, candidate
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();          // guards the ids
  std::set<std::string> ids_;  // of a stream those under way, else all that came
};

struct BatchOptions {
  int jobs = 0;                    // 0: one a core
  std::filesystem::path output{};  // empty: to `stream`
  std::function<Status(const std::string& line)> stream{};
  // Adds to the verdict's JSON what the caller knows: a reward. Called from several threads.
  std::function<void(const Verdict&, nlohmann::json&)> complete{};
  std::function<void(const Verdict&)> on_verdict{};  // for progress; called under a lock
};

struct BatchSummary {
  int64_t skipped = 0;                        // were in the output already
  std::map<std::string, int64_t> verdicts{};  // counts of this run
  int64_t our_errors = 0, input_errors = 0;
};

// Judges every pair whose id is not in the output yet (an Error of ours there is tried again). `judge` is
// called from several threads. A line is written whole or not at all; a line that a kill cut short is dropped
// when the output is opened again. An interrupt ends it with an Error blamed so, when the verdicts under way
// have ended; those are not written.
Result<BatchSummary> run_batch(BatchReader& reader, const std::function<Verdict(const Pair&)>& judge,
                               const BatchOptions& options);

}  // namespace nereid::verify
