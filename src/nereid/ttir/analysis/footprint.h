// How many points and bytes affine accesses reach, without walking them.
//
// A domain is a box of variables cut by linear constraints. It is split into boxes without constraints, and
// the image of a box under an address is a lattice of runs of bytes: both take time by the number of
// variables, not by their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nereid/ttir/analysis/symbolic.h"

namespace nereid::ttir::symbolic {

// Runs of bytes at low + sum of stride[d] * index[d]; strides fall, and no two runs overlap.
struct Lattice {
  int64_t low = 0, run = 0;
  struct Step {
    int64_t stride = 0, size = 0;
    auto operator<=>(const Step&) const = default;
  };
  std::vector<Step> steps{};

  double bytes() const;
  int64_t high() const;  // one past the last byte
  auto operator<=>(const Lattice&) const = default;
};

// The number of values of `variables` for which the conjunction holds.
double count_points(Atoms& atoms, const std::vector<AtomId>& variables, const Conjunction& where);

// The bytes [address, address + bytes) over all values of `variables` for which the conjunction holds; the
// lattices may overlap. Throws TooComplex where the address or a constraint is no such form.
std::vector<Lattice> footprint(Atoms& atoms, const std::vector<AtomId>& variables, const Expr& address,
                               int64_t bytes, const Conjunction& where);

// Distinct bytes of a union. Exact where low == high.
struct BytesBetween {
  double low = 0, high = 0;
};
BytesBetween distinct_bytes(std::vector<Lattice> all);

}  // namespace nereid::ttir::symbolic
