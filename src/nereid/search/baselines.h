// What PyTorch itself takes, as a user calls it: eager, eager as a CUDA graph, torch.compile.
//
// Each way is timed in a process of its own (python/nereid/baselines.py), which runs the reference's trace as
// a program and never the reference's own Python; only after something was verified against that reference,
// so that its steps have run in a jailed replay before. Answers are kept in the store by content, hardware
// and versions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nereid/base/installation.h"
#include "nereid/search/bench.h"

namespace nereid::search {

struct Baseline {
  std::optional<double> call_ms{};  // of a call, until its result is there
  std::optional<double> gpu_ms{};   // between events, while calls queue up; CUDA alone
  double first_seconds = 0;         // of the first calls: compiling
  std::string declined{};           // why there are no times
};
using Baselines = std::map<std::string, Baseline>;  // by way: "eager", "graph", "compile", "max-autotune"

// Nobody else may use the GPU meanwhile. On a CPU without "graph" and "max-autotune". Never an error: what
// cannot be timed says why. `deadline`: of all together; those that were not begun are not there.
Baselines measure_baselines(Bench& bench, const Installation& installation, const Task& task,
                            Deadline deadline);

nlohmann::json to_json(const Baselines& baselines);
std::string baseline_name(const std::string& way);  // "torch.compile, max-autotune"
// Under a line that names the hardware, "torch.compile: 0.123 ms a call, 0.101 ms on the GPU", a line each.
std::string baselines_text(const Baselines& baselines, const std::string& hardware);

}  // namespace nereid::search
