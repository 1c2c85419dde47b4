// What PyTorch itself takes: as a user calls it (eager, eager as a CUDA graph, torch.compile), and the
// kernels that torch.compile writes as a trace that is replayed, which is what a candidate's graph time
// compares with.
//
// A program is called in a process of its own (call_server.h), which runs the reference's trace as
// a program and never the reference's own Python; only after something was verified against that reference,
// so that its steps have run in a jailed replay before. Answers are kept in the store by content, hardware
// and versions, each as soon as it is there.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nereid/base/installation.h"
#include "nereid/search/call_server.h"
#include "nereid/search/bench.h"

namespace nereid::search {

struct Baseline {
  std::optional<double> call_ms{};  // of a call, until its result is there
  std::optional<double> gpu_ms{};   // between events, while calls queue up; CUDA alone
  double first_seconds = 0;         // of the first calls: compiling
  std::string declined{};           // why there are no times
};
using Baselines = std::map<std::string, Baseline>;  // by way: "eager", "graph", "compile", "max-autotune"

struct Compared {
  Baselines baselines{};
  std::optional<Judged> kernels{};  // Inductor's, replayed under `hybrid`
  std::string declined{};           // why there are none
};

struct BaselineOptions {
  std::vector<std::string> ways{};  // of baseline_ways
  double seconds = 2;               // of sampling, each way
  double patience = 900;            // of one way: max-autotune tries many kernels
  int jobs = 1;                     // tasks at the same time
};

// "eager", "graph", "compile", "max-autotune", "inductor" (its kernels replayed): all there are.
const std::vector<std::string>& baseline_ways();
// Those that a device has: on a CPU without "graph" and "max-autotune", which takes hours there.
std::vector<std::string> usual_ways(replay::Device device);

// Thread-safe; refers to the bench.
class BaselineClock {
 public:
  // Starts nothing but Inductor's worker, where it is asked for.
  static Result<std::unique_ptr<BaselineClock>> make(Bench& bench, const Installation& installation,
                                                     BaselineOptions options);

  // What cannot be timed says why. Where the deadline passes or the user interrupts, what was not begun is
  // not there. An Error: an interrupt, or a process that cannot be started.
  Result<Compared> measure(const Task& task, Deadline deadline);

 private:
  BaselineClock(Bench& bench, const Installation& installation, BaselineOptions options);
  store::Key key_of(const Task& task, const std::string& way) const;
  Status call(const Task& task, Deadline deadline, Baselines& baselines);
  Status replay(const Task& task, Deadline deadline, Compared& compared);

  Bench& bench_;
  const BaselineOptions options_;
  const std::string device_;
  std::vector<std::string> called_;  // of the ways, those that the server knows
  CallServer server_;
  std::unique_ptr<policy::Proposer> inductor_;  // null: not asked for
};

nlohmann::json to_json(const Baselines& baselines);
std::string baseline_name(const std::string& way);  // "torch.compile, max-autotune"
// Under a line that names the hardware, "torch.compile: 0.123 ms a call, 0.101 ms on the GPU", a line each.
std::string baselines_text(const Baselines& baselines, const std::string& hardware);

}  // namespace nereid::search
