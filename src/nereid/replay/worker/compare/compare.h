// The candidate's output against the reference's, in float64 and in its own dtype.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "nereid/replay/report.h"
#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/replay/worker/compare/error_statistics.h"
#include "nereid/replay/worker/compare/error_tail.h"
#include "nereid/replay/worker/compare/index_outputs.h"

namespace nereid::replay {

// What does not change while a reference's truth and its own output stay what they are: these tensors.
struct ReferenceErrors {
  at::Tensor own_output, truth, agreed;
  Scale scale = {};
  double unit = 1;  // that errors are measured in
  std::optional<ReferenceError> own = {};
  // Of the truth's finite elements, and how many `own_output` has, whatever the other is: where kernels of
  // our own measured them in the same pass.
  std::optional<Scale> whole_truth = {};
  std::optional<int64_t> own_finite = {};
};

// One output, all of one shape. It is looked at a few million elements at a time, or on a GPU as a whole by
// kernels of our own: nothing of its size is made.
struct OutputTensors {
  trace::DType dtype{};
  at::Tensor got;                   // the candidate's
  at::Tensor own;                   // the reference's in its own dtype
  at::Tensor truth;                 // ... in float64; integers as they are
  ReferenceError nearby = {};       // the widest of other truths (`widen`), by which the reference's own
                                    // error may be measured as well
  bool other_inputs = false;        // than the task's own
  SampleErrors nearby_errors = {};  // element by element, on other inputs
  double usual_scale = 0;           // rms of an earlier trial's truth: the unit where this one's is all zeros
  at::Tensor agreed = {};           // bool, flat: where the truth is what other truths say (`keep_agreeing`)
  // The reference rounds to 16 bits or less, or to TF32, on the way.
  bool coarse = false;
  bool near_one = false;  // it goes through functions that an approximate instruction gives relative to one
  bool tf32 = false;      // TF32 is allowed on the way: right answers may err to one side, as truncation does
  // The inputs are a few numbers again and again: so are roundings, and their mean is not zero.
  bool repeating = false;
  // Inputs are so large that most elements have come to one number (a saturated softmax): they show no
  // digits.
  bool saturated = false;
  bool upcast = true;  // the truth is float64's, not the reference's own
  // Limits of statistics are times this on other inputs than the task's own; 0: none are taken there.
  double statistics_slack = 0;
  // Made by the first comparison; samples of right answers are added by `widen`.
  mutable std::shared_ptr<ErrorStatistics> statistics = {};
  mutable std::shared_ptr<ReferenceErrors> reference_errors = {};
  std::shared_ptr<Places> places = {};  // of integers that point to values
  int chosen_at = -1;                   // the step that made them
};

// Fills all but `path`. Errors are in units of max(|truth|, rms(truth)):
//   error_limit = factor * own_error + floor * epsilon, norm_limit likewise.
// On other inputs than the task's own, no more elements may err by much than do in the reference
// (error_tail.h).
// Besides, no slice of the output may show error that rounding does not leave: see error_statistics.h.
// A position where the reference is not defined (own and truth differ in being finite, once the truth is
// rounded to the dtype's range) is not judged; where both are infinite or NaN the candidate must be the same.
// With `agreed`, a position counts as defined only where the truth is a number and that says so: what an
// operator makes of a NaN or an infinity of its inputs is convention (Triton's maximum drops a NaN, PyTorch's
// keeps it), what it makes of its neighbours is not. Integers and booleans are equal to the reference's in
// its own dtype or to the truth's; what rounding decides (the place of one of two nearly equal maxima) may be
// others as often as is allowed of errors: error is their share, own_error that of the elements where own, or
// a nearby truth, and the truth are different. Looks at `chunk` elements at once; how many changes nothing
// but the last digits of sums.
inline constexpr int64_t kChunk = int64_t{1} << 22;
OutputComparison compare(const OutputTensors& tensors, const Tolerance& tolerance, int64_t chunk = kChunk);

// Takes into `nearby` and what belongs to it, and into the statistics, how far another truth of the same
// output lies from `tensors.truth`, as compare() measures: with TF32 operands, with inputs moved by half an
// ulp. Without `kind`: kShift where TF32 is allowed, for of its samples only the rounded one is noise, and
// others would hide in its spread that they err to one side; else kNoise.
void widen(OutputTensors& tensors, const at::Tensor& near, std::optional<ErrorStatistics::Sample> kind = {});

// Takes from `agreed` the elements at which `other`, a truth with huge numbers in place of the inputs'
// infinities and NaNs, is not the truth. Undefined to begin with: all agree.
void keep_agreeing(at::Tensor& agreed, const at::Tensor& truth, const at::Tensor& other);

// Takes another truth's elements where the candidate's are closer to them: what follows from another choice
// among equal numbers.
void adopt_nearest(OutputTensors& tensors, const at::Tensor& other);

// Makes elements undefined at which `marked`, the truth with NaN for what hangs on how sums are taken,
// is not the truth. Says whether there are any.
bool mark_undefined(OutputTensors& tensors, const at::Tensor& marked);

// The number that half of the elements at least nearly are; nothing where there is none, or it is zero.
std::optional<double> saturated_at(const at::Tensor& truth);

// The units of the last place that are forgiven whatever the reference's own error is: of an element, and of
// the norm of many (of n, at least those of an element over the root of n).
double floor_ulps(trace::DType type);
double norm_floor_ulps(trace::DType type);

// Of the finite elements.
Scale scale_of(const at::Tensor& tensor);
// Their root mean square.
double rms(const at::Tensor& tensor);
double rms(const Scale& scale);

// What is known of these tensors as they are, or null.
const ReferenceErrors* known_errors(const OutputTensors& tensors);

}  // namespace nereid::replay
