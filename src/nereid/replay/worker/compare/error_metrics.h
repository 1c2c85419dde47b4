// Error metrics of a range of elements, each in one pass: in plain loops where the tensors are in this
// process's memory; where they are on a GPU, in kernels of our own (fused_metrics.h) or, without these, in
// PyTorch's operators. All give the same numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <limits>

namespace nereid::replay {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Flat contiguous tensors of one length, on one device: of float64, or where `fused_metrics` reads them of
// any floating-point dtype.
struct ElementRange {
  at::Tensor got, own, truth;
  // Bool: an element is defined only where this is true. Undefined: where own and truth agree in what is
  // finite.
  at::Tensor agreed;
  double largest = 0;  // finite number of the output's dtype: a truth beyond it is infinite
};

struct Scale {
  double squared = 0;     // sum of truth^2 over the finite elements
  int64_t count = 0;      // of the finite elements
  int64_t undefined = 0;  // elements that are not judged
  void add(const Scale& other);
};
Scale scale_of(const ElementRange& range);

// Of `other` against the truth, where both are finite: the largest |error| / max(|truth|, scale), and the sum
// of squares of the error.
struct ReferenceError {
  double largest = 0, squared = 0;
  void add(const ReferenceError& other);
  void widen(const ReferenceError& other);  // the larger of each
};
ReferenceError own_error(const ElementRange& range, const at::Tensor& other, double scale);

// Where an element's error is within its limit and where not. Positions count from the range's first
// element.
struct CandidateError {
  int64_t wrong = 0, first = -1, worst = -1;  // worst: where `largest` is
  double largest = 0;                         // in the unit of the limit; infinite where a number is missing
  double absolute = 0, relative = 0;          // largest against the truth
  double squared = 0;                         // sum over the finite elements of (got - truth)^2
  void add(const CandidateError& later, int64_t offset);
};
// Wrong: |got - truth| / max(|truth|, scale) > limit.
CandidateError scaled_error(const ElementRange& range, double scale, double limit);
// Wrong: |got - own| > rtol |own| + atol; `largest` is |got - own|. With `of_got`: rtol |got|.
CandidateError plain_error(const ElementRange& range, double rtol, double atol, bool of_got = false);

// counts[k]: the elements whose |error| / max(|truth|, scale) is at least 2^-k. Elements that are not finite
// are left out.
struct ErrorTail {
  static constexpr int kPowers = 64;
  std::array<int64_t, kPowers> counts{};
  void add(const ErrorTail& other);
  void widen(const ErrorTail& other);  // the larger of each
};
// The same by PyTorch's operators, whatever the device: what the loops are tested against.
namespace by_operators {
Scale scale_of(const ElementRange& range);
ReferenceError own_error(const ElementRange& range, const at::Tensor& other, double scale);
CandidateError scaled_error(const ElementRange& range, double scale, double limit);
CandidateError plain_error(const ElementRange& range, double rtol, double atol, bool of_got = false);
}  // namespace by_operators

}  // namespace nereid::replay
