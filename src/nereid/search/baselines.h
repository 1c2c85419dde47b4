// What PyTorch itself takes: as a user calls it (eager, eager as a CUDA graph, torch.compile), and the
// kernels that torch.compile writes as a trace that is replayed, which is what a candidate's graph time
// compares with; and the candidate, as a user calls it.
//
// A program is called in a process of its own (call_server.h), which runs a trace as a program and never
// anybody's own Python: of both sides the calls and launches are those of the trace, in Python, one after the
// other. Only after something was verified against the reference, so that its steps have run in a jailed
// replay before; the candidate's kernels stay in a jail here, too. Answers are kept in the store by content,
// hardware and versions, each as soon as it is there.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nereid/base/program/installation.h"
#include "nereid/search/call_server.h"
#include "nereid/search/evaluator.h"

namespace nereid::search {

struct Baseline {
  std::optional<double> call_ms{};  // of a call, until its result is there
  std::optional<double> gpu_ms{};   // between events, while calls queue up; CUDA alone
  double first_seconds = 0;         // of the first calls: compiling
  std::string declined{};           // why there are no times
  bool timed_out = false;           // it was stopped at its time limit
};
// By mode: "eager", "graph", "compile", "max-autotune", "eager-tf32" and so on; kCandidateName: the
// candidate, called like them.
using Baselines = std::map<std::string, Baseline>;

inline constexpr const char* kCandidateName = "candidate";

struct Compared {
  Baselines baselines{};
  std::optional<Judged> kernels{};  // Inductor's, replayed under `hybrid`
  std::string declined{};           // why there are none
};

struct BaselineOptions {
  std::vector<std::string> modes{};  // of baseline_names
  double seconds = 2;                // of sampling, each mode
  double patience = 900;             // of one mode: max-autotune tries many kernels
  int jobs = 1;                      // tasks at the same time
};

// All: "eager", "graph", "compile", "max-autotune"; with TF32 allowed "eager-tf32", "compile-tf32",
// "max-autotune-tf32"; "inductor" (its kernels replayed).
const std::vector<std::string>& baseline_names();
// Those that a device has by default, without TF32: on a CPU without "graph" and "max-autotune", which takes
// hours there.
std::vector<std::string> default_baselines(replay::Device device);

// Thread-safe; refers to the evaluator.
class BaselineClock {
 public:
  // Starts nothing but Inductor's worker, where that baseline is wanted.
  static Result<std::unique_ptr<BaselineClock>> make(Evaluator& evaluator, const Installation& installation,
                                                     BaselineOptions options);

  // What cannot be timed says why. Where the deadline passes or the user interrupts, what was not begun is
  // not there. An Error: an interrupt, or a process that cannot be started.
  // `candidate`: the text of the file with ModelNew that was verified.
  // `direct`: the compiler wrote it, and its file launches directly.
  Result<Compared> measure(const Task& task, const std::string& candidate, Deadline deadline,
                           bool direct = false);

 private:
  BaselineClock(Evaluator& evaluator, const Installation& installation, BaselineOptions options);
  store::Key key_of(const Task& task, const std::string& subject) const;
  Status call(const Task& task, Deadline deadline, Baselines& baselines);
  Result<Baseline> call_candidate(const Task& task, const std::string& candidate, Deadline deadline,
                                  bool direct);
  // What an answer says, which is remembered.
  Baseline taken(const store::Key& key, const nlohmann::json& answer, const Task& task);
  std::optional<Baseline> known(const store::Key& key);
  Status replay(const Task& task, Deadline deadline, Compared& compared);

  Evaluator& evaluator_;
  const BaselineOptions options_;
  const std::string device_;
  std::vector<std::string> called_;  // of the modes, those that the server knows
  CallServer server_, candidates_;
  std::unique_ptr<proposers::Proposer> inductor_;  // null: not asked for
};

nlohmann::json to_json(const Baselines& baselines);
std::string baseline_name(const std::string& mode);  // "torch.compile, max-autotune"
// Under a line that names the hardware, "torch.compile: 0.123 ms a call, 0.101 ms on the GPU", a line each.
std::string baselines_text(const Baselines& baselines, const std::string& hardware);

}  // namespace nereid::search
