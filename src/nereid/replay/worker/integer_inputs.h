// What trials put into a task's integer and boolean inputs, and into integer tables that a module registers.
//
// The domain is found out, never assumed: from the sample that the task's own generator made, and from what
// the reference's forward does with it (integer_uses.h). What the sample keeps is kept: sorted rows stay
// sorted and keep their ends, distinct numbers stay distinct, a permutation stays one, common factors of
// sorted numbers stay, numbers that add up to a size of the task still do, and a negative number that marks
// something (-100, -1) stays where it is.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/integer_uses.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

// Another legal content for an integer or boolean tensor, in place. `kind` is kLowest, kHighest or kRedrawn.
// `sizes`: of the task's tensors, to which counts may add up. False where there is none but its own.
bool redraw_integers(at::Tensor tensor, InputKind kind, const IntegerUse& use,
                     const std::vector<int64_t>& sizes, at::Generator generator);

// Whether one of two integer inputs follows from the other (counts and their sums, lengths and masks, a
// permutation and its inverse, begins and ends): changed apart they would be no task's inputs.
bool hang_together(const at::Tensor& a, const at::Tensor& b);

// A mask by distance: two numbers, each by column minus row alone (causal masks, bands, the identity).
bool is_banded(const at::Tensor& tensor);

}  // namespace nereid::replay
