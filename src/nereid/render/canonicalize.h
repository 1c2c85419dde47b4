// Canonical form of a trace's steps: the forms that `nereid synth` samples and small models are trained on.
// Dimensions count from the front, reductions go over one dimension or over all, without keepdim; operands
// are tensors, the larger one first; a bias is there wherever there may be one. So x * 2.0, mean(dim=(2, 3)),
// amax(-1, keepdim=True) and gate * x are rewritten to equal steps in these forms. Operators outside the
// catalogue are decomposed into its operators: prelu as relu(x) + w (x - relu(x)), Huber's loss, deviations,
// gated halves, norms by running statistics, logarithms of base 2 and 10, addmm, distances of pairs of rows.
#pragma once

#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::render {

struct CanonicalSteps {
  trace::Trace trace{};         // values and storages alone, with new ones for what is made on the way
  trace::Phase forward{};       // as it was, followed by these steps
  std::vector<size_t> steps{};  // of `forward`; they give the values that the original ones gave
  // What was a number, or was not there, and is an input now: a tensor that holds it in every element.
  std::vector<std::pair<trace::ValueId, double>> numbers{};
  bool changed = false;  // any step differs from the original
};

// `steps` are calls, all of them. A call without another form stays as it is.
CanonicalSteps canonical_steps(const trace::Trace& trace, const trace::Phase& forward,
                               const std::vector<size_t>& steps);

}  // namespace nereid::render
