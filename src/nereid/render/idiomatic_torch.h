// Operators as people write them. What PyTorch records for some of them is no text that a small model knows:
// masks and indices in ATen's words, a pool of lines as one of pictures, a loss as a dozen calls, some of
// them in place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::render {

// How many steps from this one on are one operator to people, which PyTorch computes by several calls and
// partly in place: a cosine similarity, a hinge embedding loss (its mean). 0 where they are not.
size_t composite_at(const trace::Phase& forward, size_t step);

// As people write it, where the steps are one operator by mask, by index or by signs, a pool of lines, or a
// composite; nothing where they are not. Its inputs are the same in the same order, but indices, and what a
// pool goes over, have the sizes that it is written with, and the output those that follow from them.
struct IdiomaticText {
  std::string source{};
  std::vector<std::vector<int64_t>> sizes{};  // of the inputs
};
std::optional<IdiomaticText> idiomatic_torch(const trace::Trace& trace, const trace::Phase& forward,
                                             const std::vector<size_t>& steps,
                                             const std::vector<trace::ValueId>& inputs,
                                             const std::vector<trace::ValueId>& outputs);

}  // namespace nereid::render
