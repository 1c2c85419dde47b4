// Which configurations of autotuned launches are run, alone and together, so that a fault of any choice
// shows.
//
// Launches that one autotuner decides with one key choose together, as a *tuned group*. Every option of every
// group is run with the others' defaults. Groups may also spoil each other: one kernel leaves a mark that
// another one reads under one of its configurations alone. Two options of a group that leave the same bytes
// are the same to everything that runs later, so one of them stands for both: groups are gone through
// in their order, and from every different memory that they may leave every option of the next group is run.
// That is all choices there are. Where it takes more than `kMaxExhaustive` runs, every pair of options of
// two groups is run instead, of which one run covers many.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/replay/report.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

struct TunedGroup {
  std::vector<int> steps;  // of the judged forward, in order
  struct Option {
    int index = 0;       // of the alternative
    int64_t equals = 1;  // alternatives, of all launches of the group, that do the same, itself among them
    std::string config;
  };
  std::vector<Option> options;  // besides the default; different from it and from each other
};
// Those with any option, by their first step. Left out is what has the same kernel, grid, arguments and
// preparations as another option; on a CPU kernels with the same text are the same.
std::vector<TunedGroup> tuned_groups(const TraceAnalysis& candidate, replay::Device device);

// Of each group 0 for its default, n for options[n - 1].
using OptionChoice = std::vector<int>;
replay::Choices choices_of(const std::vector<TunedGroup>& groups, const OptionChoice& choice);
// "BLOCK=64 with BLOCK_M=32, BLOCK_N=32"; empty for the defaults.
std::string describe_choice(const std::vector<TunedGroup>& groups, const OptionChoice& choice);

// The call that tunes, in which alternatives run again and again before the chosen one, on the same memory:
// what one run leaves and the autotuner's hooks do not undo, the next one finds. Each run has every launch
// that tunes measure all of its alternatives, an odd number of times in all (of two that undo each other one
// is left), and one choice: the defaults, the smallest grids, the largest ones. None where nothing tunes.
//
// A launch tunes that is the first of its tuner in a forward, where the first forward with this tuner has as
// many of its launches: an additional one there (on scratch memory, before a graph is captured) tunes for
// all.
std::vector<replay::ConfiguredRun> tuning_runs(const TraceAnalysis& candidate, replay::Device device);

constexpr size_t kMaxExhaustive = 256;

struct ConfigurationRun {
  enum class End {
    kAgrees,
    kCannotRun,  // the GPU does not take it: passed over, as an autotuner does
    kStop,       // a verdict was found, or time is up
  } end = End::kAgrees;
  std::map<int, uint64_t> left{};  // digests by step, see TrialReport::left
};
// `digests`: whether `left` is asked for.
using RunConfiguration = std::function<Result<ConfigurationRun>(const OptionChoice& choice, bool digests)>;

struct ConfigurationsRun {
  size_t runs = 0;
  bool stopped = false;
  bool pairs_alone = false;  // more than two options together were not all run
};
Result<ConfigurationsRun> run_configurations(const std::vector<TunedGroup>& groups,
                                             const RunConfiguration& run);

}  // namespace nereid::verify
