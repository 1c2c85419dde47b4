// What trials put into a task's integer and boolean inputs, and into integer tables that a module registers.
//
// The domain is found out, never assumed: from the sample that the task's own generator made, and from what
// the reference's forward does with it (integer_uses.h). What the sample keeps is kept: sorted rows stay
// sorted and keep their ends, distinct numbers stay distinct, a permutation stays one, common factors of
// sorted numbers stay, numbers that add up to a size of the task still do, and a negative number that marks
// something (-100, -1) stays where it is. Where one input follows from another (offsets from lengths), the
// other is redrawn and it is computed anew; where they are related in a way that gives no rule, both stay.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/integer_uses.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

// Another legal content for an integer or boolean tensor, in place. `kind` is kLowest, kHighest or kRedrawn;
// with kFlipped numbers that the forward computes with, and nothing else, get another sign and become larger,
// with kFar nearly as large as their type allows.
// False where there is none but its own.
struct IntegerLimits {
  std::vector<int64_t> sizes{};  // of the task's tensors, to which counts may add up
  std::vector<int64_t>
      numbers{};  // single integers that forward is given: no step of offsets and no index may
                  // pass the smallest of them that the sample does not pass (max_seqlen)
  std::vector<std::vector<int64_t>> shapes{};  // of the task's tensors: of a padded one, [n, most, ...] next
                                               // to n counts, none may pass the second size
  std::vector<int64_t> rows{};  // of positions that some input is compared with: neither a count nor a step
                                // of offsets may pass them
  bool keeps_sum = false;       // their sums are another input's, and end where the sample's do
};
bool redraw_integers(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                     const IntegerLimits& limits, at::Generator generator);

// One integer input of a call, and what the reference does with it.
struct IntegerInput {
  at::Tensor tensor;
  IntegerUse use{};
  bool fixed = false;  // the host has read it
};
// Redraws all of them together, so that what one says of another stays true. Says whether anything changed.
bool redraw_together(const std::vector<IntegerInput>& inputs, InputDistribution kind, IntegerLimits limits,
                     at::Generator generator);

// Whether one of two integer inputs follows from the other (counts and their sums, lengths and masks, a
// permutation and its inverse, begins and ends): changed apart they would be no task's inputs.
bool are_related(const at::Tensor& a, const at::Tensor& b);

// A mask by distance: two numbers, each by column minus row alone (causal masks, bands, the identity).
bool is_banded(const at::Tensor& tensor);

}  // namespace nereid::replay
