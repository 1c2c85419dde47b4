// Parameters and buffers that decide something alone: they are clamped, or compared, before an input joins
// them (a learned temperature's bounds). A single number among them shows one side of a bound in each trial.
#pragma once

#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

struct DecidingState {
  std::vector<trace::ValueId> values;  // in the order of the trace's state
  std::vector<bool> near_bounds;       // of each: integers that are compared alone, and go where a bound is
  std::vector<double> bounds;          // that they, or what is computed of them alone, are compared with

  // What one element may become: see side_of().
  int choices() const;
  // Trials after which each single number among them was all of that.
  int trials = 0;
};
// Of the judged forward. Of integers those that it computes floating-point numbers of, or compares with
// numbers: others may be sizes.
DecidingState deciding_state(const trace::Trace& trace);

// PyTorch's own count of a batch norm's calls, which no forward computes with.
bool counts_batches(const trace::State& state);

// What an element becomes by this choice, as `times` itself (one, where it is zero; where it is smaller, too,
// if `at_least_one`) `plus` a number: much larger or smaller, zero, of the other sign, next to a bound on
// either side, or at it. `by_chance` is in [0, 1).
struct Side {
  double times = 0, plus = 0;
  bool at_least_one = false;
};
Side side_of(const DecidingState& state, int choice, double by_chance);
// The first choice that is a bound's.
int first_at_bounds();

}  // namespace nereid::replay
