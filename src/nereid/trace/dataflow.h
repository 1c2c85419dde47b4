// Data flow through the steps of one phase: who made what a step reads.
#pragma once

#include <vector>

#include "nereid/trace/access.h"
#include "nereid/trace/trace.h"

namespace nereid::trace {

// Bytes that flow from the step that wrote them to one that reads them.
struct Flow {
  int from = kBefore;  // a step, or kBefore: they were there when the phase began
  int to = 0;          // a step, or the number of steps: the phase's output
  StorageId storage = -1;
  ValueId value = -1;  // as the reader sees them

  static constexpr int kBefore = -1;
};

struct DataFlow {
  std::vector<StepAccess> accesses;  // of each step
  std::vector<Flow> flows;           // in the order of the readers
  bool complete =
      true;  // false: too much to follow, `flows` ends early and every step is said to reach the output
  std::vector<bool> reaches_output;  // of each step: something that it writes reaches the phase's output

  // Steps from which something reaches this value as it is at the end of the phase.
  std::vector<bool> steps_behind(const Trace& trace, ValueId value) const;
};

// Ranges of bytes are kept apart: two halves of a buffer that different steps write are two values. What a
// launch may write does not hide what was there before, so a flow is one that may be, and what is no flow
// cannot be.
DataFlow follow(const Trace& trace, const Phase& phase, const KernelUses& uses);

}  // namespace nereid::trace
