// What convolutions and pools look at, axis by axis, and what else a layer leaves open.
//
// A form has a few windows, enough to be counted. `draw_details` gives an application another one: sizes of
// operands follow from the result's all the same.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace nereid::ops {

struct Applied;
struct Form;
struct Operator;

struct Window {
  using Each = std::array<uint8_t, 3>;  // by spatial axis
  Each kernel{}, stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  // Elements of the operand after what the last window sees; below zero: that it sees after the padding
  // (`ceil`). Of a transposed convolution: its output_padding.
  std::array<int8_t, 3> rest{};
  int32_t groups = 1;  // 0: each channel is one
  bool ceil = false, counts_padding = true;
  // How it is written: "(3, 3)" for "3", "kernel_size=3", padding="same".
  bool listed = false, named = false, same = false;

  bool given() const { return kernel[0] != 0; }
  bool operator==(const Window&) const = default;
  int reach(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

// Which part of an axis is taken or filled.
struct Cut {
  // Of a chunk: which of how many. Of a slice and of padding: elements before and behind. Of a concatenation:
  // what the first operand has.
  // Of a flattening: the last two axes' sizes.
  int32_t parts = 2, part = 0, before = 0, behind = 0;
  bool given = false;
  bool operator==(const Cut&) const = default;
};

// What a form leaves open.
struct LayerOptions {
  Window window{};  // not given: the form's
  bool bias = true;
  int32_t groups = 0;  // of a group norm; 0: as many as its channels suggest
  Cut cut{};
  bool operator==(const LayerOptions&) const = default;
};

bool has_window(const Operator& op);
bool is_transposed(const Operator& op);
Window window_of(const Form& form, const Operator& op);
// The size of an operand's axis, from the result's.
int32_t operand_size(const Window& window, size_t axis, bool transposed, int32_t out);
// The size of the result's axis, from the operand's.
int32_t result_size(const Window& window, size_t axis, bool transposed, int32_t in);

// Whether every window sees an element of the operand, and not its padding alone.
bool sees(const Window& window, size_t axis, bool transposed, int32_t in, int32_t out);

// `below(n)`: a number in [0, n). `keeps_shape`: the operand must stay of the result's shape.
LayerOptions draw_layer_options(const std::function<uint32_t(uint32_t)>& below, const Applied& plain,
                                bool keeps_shape);

}  // namespace nereid::ops
