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
};

void add_fleet_options(CLI::App& command, FleetOptions& options);

// What a cluster has now; an error, blamed on the input, where there is none.
struct ClusterResources {
  double cpus = 0, gpus = 0;
};
Result<ClusterResources> probe_cluster(const Installation& installation, const FleetOptions& options);

// `words` are a judge's command line after the program; `jobs` the pairs that one judges at a time, and the
// processors that it reserves; `patience` the seconds for which one may be silent.
Result<serve::JudgePlace> fleet_place(const Installation& installation, const FleetOptions& options,
                                      const std::vector<std::string>& words, size_t jobs, bool cuda,
                                      double patience);

}  // namespace nereid::cli
