// What the compiler's choices are worth: for each task several answers (variants_to_measure) are lowered and
// verified by many threads, and what is Verified is timed by a clock.
//
// A program becomes one line when all of its choices have a verdict and a time; lines are written in the
// order in which programs end. docs/data.md describes a line.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/dataset/given_pairs.h"
#include "nereid/gpu/roofline.h"
#include "nereid/verify/stages/verifier_backends.h"
#include "nereid/verify/verdict.h"

namespace nereid::dataset {

struct MeasurementOptions {
  int choices = 16;        // of each program at most
  double max_share = 0.6;  // programs whose first choice is modelled nearer to the roofline are left out
  bool brief = false;      // the plan that small models learn
  uint64_t seed = 0;
  std::string policy = "strict";
  std::string target = "sm_90";  // of the cost model
  int threads = 1;               // that lower and verify
  int clocks = 3;                // candidates that the clock has at a time: one is timed, others are prepared
  // Answers of others to a task, by its id: measured next to the compiler's choices.
  std::map<std::string, std::vector<std::string>> answers = {};
  double seconds = 0;  // after which no choice is begun, and programs are written as they are; 0: none
};

// What it asks of the outside; all of it is called from several threads.
struct MeasurementBackends {
  std::function<Result<tracer::TraceAnswer>(const tracer::TraceRequest&, Deadline)> trace;
  std::function<Result<verify::TraceAnalysis>(const trace::Trace&)> analyze;
  std::function<verify::Verdict(const verify::Pair&)> judge;
  // Times what was Verified (Settings::time_only). Empty: nothing is timed, and lines have modelled seconds
  // alone.
  std::function<verify::Verdict(const verify::Pair&)> clock{};
  std::string device{};      // the clock's; empty: none
  gpu::DevicePeaks peaks{};  // of the roofline
  std::function<Status(const std::string& line)> write;
  std::function<void(const std::string& note, int64_t programs)> progress{};  // programs since the last call
};

struct MeasurementReport {
  int64_t programs = 0, complete = 0;         // lines with choices; with all of them
  int64_t choices = 0, timed = 0;             // drawn and judged
  std::map<std::string, int64_t> verdicts{};  // of choices
  std::map<std::string, int64_t> left_out{};  // programs by reason
  std::map<std::string, double> seconds{};    // summed over threads: "prepare", "judge", "clock", "gpu"
  std::vector<std::string> refused{};         // the first few: why an answer was not Verified or timed
  bool out_of_time = false;
};

class Measurement {
 public:
  Measurement(MeasurementBackends backends, const MeasurementOptions& options);
  ~Measurement();
  // Of all tasks, in order. An Error is a fault of ours, or an interrupt: what was under way is not written.
  Result<MeasurementReport> run(const std::vector<GivenTask>& tasks);

 private:
  struct MeasuredChoice;
  struct Program;
  struct Job {
    std::shared_ptr<Program> program;
    size_t choice = 0;
  };
  void work();
  void restart_clock_if_needed();
  bool over() const;
  Status prepare(Program& program);
  void add_answers(Program& program) const;
  void judge(const Job& job);
  void time(const Job& job);
  bool time_again(const std::shared_ptr<Program>& program);
  void settle(const std::shared_ptr<Program>& program);
  Status write(const Program& program);
  void fail(const Error& error);

  const MeasurementBackends backends_;
  const MeasurementOptions options_;
  const Deadline deadline_;
  const std::vector<GivenTask>* tasks_ = nullptr;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  size_t next_ = 0;
  int64_t judging_ = 0;  // jobs that may still go to the clock, and programs being opened
  std::deque<Job> to_judge_, to_time_;
  std::vector<std::shared_ptr<Program>> open_;
  std::optional<Error> failure_;
  MeasurementReport report_;
};

}  // namespace nereid::dataset
