// Steps of a trace as a small language model knows them. What our models are taught is what `nereid synth` samples: dimensions counted from the
// front, reductions over one dimension or over all, results without what was reduced, tensors as operands, the larger one first, a bias wherever there may
// be one. Others write x * 2.0, mean(dim=(2, 3)), amax(-1, keepdim=True), gate * x: the same computed in other words, which are put in their place here. Operators that few are taught are told as what they are made of (prelu as
// relu(x) + w (x - relu(x)), Huber's loss, deviations, halves that gate each other, norms by running statistics): each part is one that was taught.
#pragma once

#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::render {

struct CanonicalSteps {
  trace::Trace trace{};         // values and storages alone, with new ones for what is made on the way
  trace::Phase forward{};       // as it was, and these steps behind it
  std::vector<size_t> steps{};  // of `forward`; they give the values that the original ones gave
  // What was a number, or was not there, and is an input now: a tensor that holds it in every element.
  std::vector<std::pair<trace::ValueId, double>> numbers{};
  bool changed = false;  // any is told otherwise than it was
};

// `steps` are calls, all of them. What there are no other words for stays as it is.
CanonicalSteps canonical_steps(const trace::Trace& trace, const trace::Phase& forward,
                               const std::vector<size_t>& steps);

}  // namespace nereid::render
