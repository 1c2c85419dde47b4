// `nereid serve --ray`: the judges are actors on a Ray cluster, which a process of Python asks
// (python/nereid/_fleet).
#pragma once

#include <string>
#include <vector>

#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/serve/service.h"

namespace CLI {
class App;
}

namespace nereid::cli {

struct FleetOptions {
  std::string address;          // "auto" or HOST:PORT; empty: no fleet
  std::string actors = "1:64";  // MIN:MAX
  std::string clocks{};         // MIN:MAX, each with a GPU; empty: judges have verdicts and times
  int compile_for = 0;          // compute capability of the clocks' GPUs, as 90; 0: judges compile nothing
};

void add_fleet_options(CLI::App& command, FleetOptions& options);

// What a cluster has now; an error, blamed on the input, where there is none.
struct ClusterResources {
  double cpus = 0, gpus = 0;
};
Result<ClusterResources> probe_cluster(const Installation& installation, const FleetOptions& options);

// Command lines after the program; "{traces}" stands for a folder of the actor's.
struct FleetCommands {
  std::vector<std::string> judge, clock;  // clock: empty where there is none
};
// `jobs`: the pairs that one judges at a time, and the processors that it reserves; `patience`: the seconds
// for which one may be silent.
Result<serve::JudgePlace> fleet_place(const Installation& installation, const FleetOptions& options,
                                      const FleetCommands& words, size_t jobs, bool cuda, double patience);

}  // namespace nereid::cli
