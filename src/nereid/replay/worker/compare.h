// The candidate's output against the reference's, in float64 and in its own dtype.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "nereid/replay/report.h"

namespace nereid::replay {

// One output, all of one shape. Undefined tensors are left out of the reckoning.
struct OutputTensors {
  trace::DType dtype{};
  at::Tensor got;                  // the candidate's
  at::Tensor own;                  // the reference's in its own dtype
  at::Tensor truth;                // ... in float64; integers as they are
  std::vector<at::Tensor> nearby;  // truths that the reference's own error may be measured by as well: with
                                   // TF32 operands, with inputs moved by half an ulp
  double usual_scale = 0;          // rms of an earlier trial's truth: the unit where this one's is all zeros
  std::vector<at::Tensor> finite =
      {};  // truths with the inputs' infinities and NaNs replaced by huge numbers
};

// Fills all but `path`. Errors are in units of max(|truth|, rms(truth)):
//   error_limit = factor * own_error + floor * epsilon, norm_limit likewise.
// A position where the reference is not defined (own and truth differ in being finite, once the truth is
// rounded to the dtype's range) is not judged; where both are infinite or NaN the candidate must be the same.
// With `finite`, a position counts as defined only where the truth is a number that each of those agrees on:
// what an operator makes of a NaN or an infinity of its inputs is convention (Triton's maximum drops a NaN,
// PyTorch's keeps it), what it makes of its neighbours is not. Integers and booleans are equal to the
// reference's in its own dtype or to the truth's.
OutputComparison compare(const OutputTensors& tensors, const Tolerance& tolerance);

// The units of the last place that are forgiven whatever the reference's own error is: of an element, and of
// the norm of many (of n, at least those of an element over the root of n).
double floor_ulps(trace::DType type);
double norm_floor_ulps(trace::DType type);

// The root mean square of the finite elements.
double rms(const at::Tensor& tensor);

}  // namespace nereid::replay
