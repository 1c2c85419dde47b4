// What a step computes and moves, counted off shapes and dtypes alone.
//
// FLOPs: a multiplication and an addition count as one each, a comparison and a transcendental function as
// one. The counts of contractions, convolutions and attention are those of torch.utils.flop_counter (which a
// test compares); for the rest they are the operations of the textbook formula per element, written at
// each in cost.cpp. Views, copies, casts, fills, random draws and indexing count none. Bytes: the distinct
// bytes of what is read and written, once each.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "nereid/trace/access.h"
#include "nereid/trace/op_class.h"
#include "nereid/trace/trace.h"

namespace nereid::trace {

struct Cost {
  double flops = 0, bytes_read = 0, bytes_written = 0;
  bool exact = true;  // false where no formula is known, or where it depends on data

  double bytes() const { return bytes_read + bytes_written; }
  Cost& operator+=(const Cost& other);
};

Cost cost_of(const Trace& trace, const Call& call);
// Of a pointwise ATen operator, by its name alone ("silu"): operations per element of the result.
double pointwise_operations(std::string_view name);

// Of a launch as its first alternative does it. FLOPs are unknown to this folder: `launch_costs` gives them.
using LaunchCosts = std::function<Cost(const Trace&, const Alternative&)>;
// Bytes of a launch's storages as far as its pointers reach them, no FLOPs, not exact: where there is nothing
// better.
Cost bounded_cost(const Trace& trace, const Launch& launch, const KernelUses& uses);

struct StepCost {
  Cost cost;
  OpClass op_class = OpClass::kOther;  // of a call
  bool launch = false;
};
// One for each step of the phase.
std::vector<StepCost> costs_of(const Trace& trace, const Phase& phase, const LaunchCosts& launch_costs);

struct Totals {
  Cost free_calls, other_calls, launches;
  int64_t calls = 0, launch_count = 0;
  Cost all() const;
};
Totals totals_of(const std::vector<StepCost>& costs);

}  // namespace nereid::trace
