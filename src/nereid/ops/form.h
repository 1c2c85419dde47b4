// The ways an operator may be applied: ranks, axes, broadcasts, windows. Everything but sizes.
//
// A form is read from the result to its operands: each size of an operand is a size of the result, or one
// that the operator does away with (`inner`: the axis summed over, the input features), or made of one. So
// the shapes of a whole program follow from its result's shape and the inner sizes, which are all free: no
// equations are left to solve, and assignments can be counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nereid/ops/operator.h"

namespace nereid::ops {

inline constexpr int kMaxRank = 5;
inline constexpr int kMaxSlots = 3;
inline constexpr int kMaxInner = 5;

struct Shape {
  uint8_t rank = 0;
  std::array<int32_t, kMaxRank> dims{};
  bool operator==(const Shape&) const = default;
  int64_t elements() const {
    int64_t product = 1;
    for (int d = 0; d < rank; ++d) product *= dims[static_cast<size_t>(d)];
    return product;
  }
};

struct Term {
  enum Kind : uint8_t {
    kOut,    // the result's size `index`
    kInner,  // the inner size `index`
    kOne,
    kTwice,     // 2 * out
    kHalfUp,    // ceil(out / 2)
    kHalfDown,  // floor(out / 2)
    kProduct,   // out[index] * out[index + 1]
  };
  Kind kind = kOut;
  uint8_t index = 0;
  bool operator==(const Term&) const = default;
};

struct Slot {
  uint8_t rank = 0;
  std::array<Term, kMaxRank> dims{};
  bool operator==(const Slot&) const = default;
};

struct Form {
  uint8_t out_rank = 0, slots = 1, inner = 0;
  Slot slot[kMaxSlots];
  uint8_t computed = 1;  // bit i: slot i may be an earlier result (else it is a fresh input)
  // Size classes (sizes.h) that the result's and the inner sizes must be in.
  std::array<uint8_t, kMaxRank> low{}, high{5, 5, 5, 5, 5};
  uint8_t inner_low = 1;
  bool preserving = false;  // slot 0 has the result's shape
  bool work_is_product =
      false;       // multiply-adds: the product of the result's and the inner sizes (and the window)
  Slot parameter;  // the largest tensor of the operator's own; rank 0 where there is none
  uint8_t window_classes = 0;  // size classes that a convolution's window adds to its weight and its work
  // Attributes, where the rule has them.
  int8_t dim = -1, dim2 = -1, dim3 = -1;  // axes of operand 0
  bool all = false, depthwise = false;
  bool keep = false;  // the axis that is reduced stays, one long
  uint8_t kernel = 0, stride = 1, padding = 0;
  std::array<int8_t, kMaxRank> order{};  // of a permutation
};

// Every form of the rule, in a fixed order.
const std::vector<Form>& forms(Rule rule);

int32_t size_of(Term term, const Shape& out, const std::array<int32_t, kMaxInner>& inner);
Shape operand_shape(const Slot& slot, const Shape& out, const std::array<int32_t, kMaxInner>& inner);

}  // namespace nereid::ops
