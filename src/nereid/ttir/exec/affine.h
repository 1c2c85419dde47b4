// Linear forms: base + sum of stride[d] * index[d] over the lanes of a tile, exact (no lane wraps).
#pragma once

#include <cstdint>
#include <optional>

#include "nereid/ttir/exec/machine.h"

namespace nereid::ttir {

struct Affine {
  int64_t base = 0;
  int64_t stride[kLazyRank] = {};

  static std::optional<Affine> of(const Value& value) {
    Affine a;
    if (value.form == Form::kUniform) {
      a.base = value.base;
      return a;
    }
    if (value.form != Form::kAffine) return std::nullopt;
    a.base = value.base;
    for (int d = 0; d < kLazyRank; ++d) a.stride[d] = value.stride[d];
    return a;
  }
  bool uniform(int rank) const {
    for (int d = 0; d < rank; ++d)
      if (stride[d] != 0) return false;
    return true;
  }
};

struct Range {
  int64_t low = 0, high = 0;  // the least and the greatest lane
};
// Nothing where a lane does not fit 64 bits.
std::optional<Range> range_of(const Affine& a, const int32_t* shape, int rank);
bool fits(const Range& range, Elem elem);

// a + scale * b of lazy values (uniform or affine), with its range; false on overflow.
bool add_scaled(const Value& a, const Value& b, int64_t scale, const int32_t* shape, int rank, Affine& sum,
                Range& range);
// a + scale * b, coefficient by coefficient; nothing on overflow.
std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale);
std::optional<Affine> times(const Affine& a, int64_t factor);

// The result of an instruction as a uniform or affine value, replacing what the slot held.
void set_affine(Machine& m, int32_t slot, const Affine& a, int rank);
// The lanes for which `a REL 0` along one dimension, as a box (or all, or none); false where it is no box.
bool set_comparison(Machine& m, const Instruction& i, const Affine& a, Predicate predicate);
// A box that may be full or empty.
void set_box(Machine& m, int32_t slot, const int32_t* low, const int32_t* high, const int32_t* shape,
             int rank);

}  // namespace nereid::ttir
