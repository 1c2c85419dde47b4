// An operator applied: a form with sizes and constants.
#pragma once

#include <array>

#include "nereid/ops/form.h"
#include "nereid/ops/operator.h"
#include "nereid/ops/window.h"

namespace nereid::ops {

struct Applied {
  const Operator* op = nullptr;
  const Form* form = nullptr;
  Shape out;
  std::array<Shape, kMaxSlots> operands;
  std::array<int32_t, kMaxInner> inner{};
  std::array<uint8_t, 2> constants{};  // which of the values that `a` and `b` may take
  Window window{};                     // of what has one
  bool bias = true;
  int32_t groups = 0;  // of a group norm
  Cut cut{};           // of what takes part of an axis, or fills it
  // How axes of reductions, of operators along an axis and of transposes are written.
  enum Axes : uint8_t { kFromStart, kLastFromEnd, kFromEnd } axes = kFromStart;
  bool bare_axes = false, listed_axes = false;  // sum(1), not sum(dim=1); [0, 1], not (0, 1)
  bool short_transpose = false;                 // x.t() of a matrix
  // Which size of a reshape's result is written as -1.
  enum Inferred : uint8_t { kNone, kFirst, kLast } inferred = kNone;
};
// Whether axis `dim` of the result is that one.
bool is_inferred(const Applied& applied, size_t dim);
// Axis `dim` of the first operand as it is written: -1 for the last one, where it is counted from the end.
int written_axis(const Applied& applied, int dim);
Applied apply(const Operator& op, const Form& form, const Shape& out,
              const std::array<int32_t, kMaxInner>& inner, const LayerOptions& details = {});

// Whether every size is at least 1, and 2 where the form needs that to mean something.
bool is_sound(const Applied& applied);
int operand_count(const Applied& applied);  // slots, but of `stack` as many as the new axis is long
int group_count(const Applied& applied);    // of a group norm
int32_t groups_of(const Applied& convolution);
int64_t index_bound(const Applied& applied);        // operands that are indices are in [0, this)
int64_t contracted_length(const Applied& applied);  // what a product sums over; 1 of others
int spatial_axes(const Applied& applied);

}  // namespace nereid::ops
