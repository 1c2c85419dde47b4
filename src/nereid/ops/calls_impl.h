// What the parts of calls.cpp share.
#pragma once

#include <string_view>
#include <unordered_map>

#include "nereid/ops/calls.h"

namespace nereid::ops {

// One application being recorded.
struct Calling {
  Recording& to;
  const Applied& applied;
  Spelling spelling;
  std::span<const Tensor> x, own;

  Laid laid(size_t operand = 0) const { return to.laid(x[operand]); }
  int64_t dim() const { return applied.form->dim; }
  int64_t written_dim() const { return written_axis(applied, applied.form->dim); }
  bool whole() const { return applied.form->all; }
  bool module() const { return spelling == Spelling::kModule; }
  bool method() const { return spelling == Spelling::kMethod; }
  // A constant as Python reads it: an integer or a float.
  Arg constant(char which) const;
  // The result's shape.
  Sizes out() const;
  int axes() const { return spatial_axes(applied); }
  Sizes each_axis(int64_t value) const { return Sizes(static_cast<size_t>(axes()), value); }

  // A call whose result is computed element by element of all of `operands`.
  Tensor elementwise(std::string_view op, std::initializer_list<Tensor> operands, std::vector<Arg> more = {},
                     DType type = DType::kF32);
  // A new dense result, row by row.
  Tensor fresh(std::string_view op, std::vector<Arg> args, const Sizes& sizes, Recording::Named named = {},
               DType type = DType::kF32);
  // aten::view where the elements lie so, else a copy. `requested`: the sizes as they are written.
  Tensor reshape(Tensor tensor, const Sizes& sizes) { return reshape(tensor, sizes, sizes); }
  Tensor reshape(Tensor tensor, const Sizes& sizes, const Sizes& requested);
  Tensor look_as(std::string_view op, Tensor tensor, const Sizes& sizes) {
    return look_as(op, tensor, sizes, sizes);
  }
  Tensor look_as(std::string_view op, Tensor tensor, const Sizes& sizes, const Sizes& requested);
  Tensor contiguous(Tensor tensor);
  Tensor expand(Tensor tensor, const Sizes& sizes);
  Tensor transpose(Tensor tensor, size_t a, size_t b, std::string_view op, std::vector<Arg> more);
};

using Record = std::optional<Tensor> (*)(Calling&);
using Records = std::unordered_map<std::string_view, Record>;  // by the operator's name
void add_pointwise_records(Records& records);
void add_reduction_records(Records& records);
void add_layout_records(Records& records);
void add_layer_records(Records& records);
void add_contraction_records(Records& records);
void add_loss_records(Records& records);

}  // namespace nereid::ops
