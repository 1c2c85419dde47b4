// How PyTorch lays tensors out: the strides that its operators give their results.
//
// The rules are those of PyTorch 2.11's fake tensors, which differ from those of real ones where dimensions
// have one element: torch/_prims_common for what works element by element, torch/_refs for views.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nereid::ops {

using Sizes = std::vector<int64_t>;

struct Laid {
  Sizes sizes, strides;
  bool operator==(const Laid&) const = default;
};

Sizes row_major(const Sizes& sizes);
// The last axis but the channels' is the fastest: [n, c, h, w] with c in the place of the last. Of rank 4 and
// 5.
Sizes channels_last(const Sizes& sizes);
int64_t count_of(const Sizes& sizes);

bool is_row_major(const Laid& laid);
bool is_channels_last(const Laid& laid);
// What PyTorch's suggest_memory_format answers: that strides look like those of channels last.
bool suggests_channels_last(const Laid& laid);

Sizes broadcast(std::span<const Laid> operands);
// As a larger shape, what is repeated by strides of 0.
Laid expanded(const Laid& operand, const Sizes& sizes);
// Of a result that is computed element by element: dense, its dimensions in the order of the operands'
// strides.
Laid elementwise(std::span<const Laid> operands);

// Whether the same elements can be seen as `sizes` without a copy.
bool can_be_seen_as(const Laid& laid, const Sizes& sizes);
// The strides that they have then. Of dimensions of one element they are not those of computeStride, but
// those that fake tensors get (torch/_refs, _reshape_view_helper).
Sizes strides_after_view(const Laid& laid, const Sizes& sizes);

}  // namespace nereid::ops
