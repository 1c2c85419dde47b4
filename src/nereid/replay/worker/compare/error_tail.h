// Errors that one limit for all elements does not see, where few elements cancel and make it wide: by how
// many elements err by how much, and by what right answers err by at each element. docs/tolerance.md derives
// both tests, "Few wide elements".
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/replay/worker/compare/error_statistics.h"

namespace nereid::replay {

// `answer` against the range's truth. By plain loops over float64 on a CPU, by kernels of our own on a GPU,
// else by PyTorch's operators, at eight parts of 4 million elements at most.
ErrorTail error_tail(const ElementRange& range, const at::Tensor& answer, double scale);

struct TailExcess {
  double error = 0;  // in units of max(|truth|, scale)
  int64_t elements = 0, allowed = 0;
};
// Where more elements of an answer err by `factor * t + floor` than its reference's errors of at least t
// explain, for some t: the worst such error. `reference`: of the reference's own answer and of samples of
// other right ones, the larger of each count.
std::optional<TailExcess> excess(const ErrorTail& answer, const ErrorTail& reference, double factor,
                                 double floor);

// The same of samples of right answers, the larger of each count, and of each element (flat, float32) the
// largest relative error; undefined where there is no sample, or too many elements.
struct SampleErrors {
  ErrorTail tail;
  at::Tensor largest;
  void add(const ElementRange& range, const at::Tensor& answer, double scale, int64_t elements);
  void widen(const SampleErrors& other);
};

struct LocalExcess {
  int64_t elements = 0;
  double error = 0, limit = 0;  // at the worst of them, in units of max(|truth|, scale)
};
// The elements whose relative error is above `least`, and above `factor` times what samples of right answers
// err by there, beyond `floor`. Where that is small by chance, what is usual among all elements counts.
std::optional<LocalExcess> local_excess(const at::Tensor& errors, const at::Tensor& samples, double least,
                                        double factor, double floor);

// Both tests of an answer, range by range.
class WideElements {
 public:
  struct Limits {
    double own_error = 0;  // the largest of right answers
    double factor = 0, floor = 0;
  };
  WideElements(double scale, int64_t elements) : scale_(scale), elements_(elements) {}
  // The range's `got`, against its `own` and the samples.
  void add(const ElementRange& range);
  std::optional<SystematicError> check(const SampleErrors& samples, const Limits& limits) const;

 private:
  double scale_;
  int64_t elements_;
  SampleErrors got_, own_;
};

}  // namespace nereid::replay
