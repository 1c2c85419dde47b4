// What an application of an operator computes and moves.
#pragma once

#include "nereid/ops/applied.h"

namespace nereid::ops {

// FLOPs by the formulas of trace/cost.h (a test compares what `nereid trace` counts); bytes: operands, the
// operator's own tensors and the result, once each, in float32 (int64 for indices, one byte for a mask).
struct Cost {
  double flops = 0, bytes = 0;
};
Cost cost_of(const Applied& applied);
// Elements of the operator's own tensors (weights, biases).
double parameter_elements(const Applied& applied);

}  // namespace nereid::ops
