// Error metrics of whole tensors by the kernels of error_metrics_kernels.h and error_sums_kernels.h: one pass
// each, over tensors in their own dtypes. The numbers are those of `by_operators` (error_metrics.h): counts
// and positions exactly, sums but for the order of their terms. docs/tolerance.md says which of them a
// verdict uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/replay/worker/compare/error_metrics_kernels.h"
#include "nereid/replay/worker/compare/error_sums_kernels.h"

namespace nereid::replay {

// Runs the kernels on one kind of device. `parameters` is the kernel's structure, copied before this returns.
class KernelLauncher {
 public:
  virtual ~KernelLauncher() = default;
  virtual void launch(kernels::Kernel kernel, int64_t blocks, const void* parameters, size_t bytes) const = 0;
};

class FusedMetrics {
 public:
  explicit FusedMetrics(std::unique_ptr<KernelLauncher> launcher) : launcher_(std::move(launcher)) {}

  // Whether the kernels read tensors of this dtype.
  static bool reads(c10::ScalarType type);

  // As in error_metrics.h. A range's tensors are contiguous, of dtypes that the kernels read.
  Scale scale_of(const ElementRange& range) const { return scale_statistics(range).scale; }
  // In the same pass: of the truth's finite elements, and how many the reference's own has, each whatever the
  // other is.
  struct ScaleStatistics {
    Scale scale, truth;
    int64_t own_finite = 0;
  };
  ScaleStatistics scale_statistics(const ElementRange& range) const;
  ReferenceError own_error(const ElementRange& range, const at::Tensor& other, double scale) const;
  CandidateError scaled_error(const ElementRange& range, double scale, double limit) const;
  CandidateError plain_error(const ElementRange& range, double rtol, double atol, bool of_got) const;
  // Of the range's own and of its got, in one pass. An error is wrong where it is infinite.
  struct ErrorPair {
    ReferenceError own;
    CandidateError got;
  };
  ErrorPair error_pair(const ElementRange& range, double scale) const;
  // As in error_tail.h, of all elements. `errors`: float32, each element's, or undefined.
  ErrorTail tail(const ElementRange& range, const at::Tensor& answer, double scale,
                 const at::Tensor& errors) const;
  // Whether all elements are close, as at::isclose has it. `second` has as many elements, or one.
  bool all_close(const at::Tensor& first, const at::Tensor& second, double rtol, double atol,
                 bool equal_nan) const;

  // Element i is in group (i / inner) % size / per, of `groups`; or, where `by_value`, in the group of its
  // sign and exponent (terms::exponent_group). Periods (inner * size) that are shorter than the tensor divide
  // each other.
  struct Family {
    int64_t inner = 1, size = 1, per = 1, groups = 1;
    bool by_value = false;
  };
  struct Ulps {
    double epsilon = 0, smallest = 0;
  };
  // For each group of each family in order: of the truth, where no answer is given, count, t, t^2 and ulp^2;
  // else of error e: e, e^2, et, e^2t and e^2t^2 (error_statistics.h). By value: the count and
  // ulp^2, or e and e^2 alone.
  using GroupSums = std::vector<std::array<double, kernels::kSums>>;
  GroupSums group_sums(const ElementRange& range, const at::Tensor& answer,
                       const std::vector<Family>& families, double scale, Ulps ulps) const;
  // Of the truth, of the error of the range's own and of that of its got, in the same passes.
  struct AllSums {
    GroupSums truth, own, got;
  };
  AllSums all_sums(const ElementRange& range, const std::vector<Family>& families, double scale,
                   Ulps ulps) const;

  // Clears `agreed` (bool) where other differs from the truth by more than `limit` of it.
  void keep_agreeing(const at::Tensor& agreed, const at::Tensor& truth, const at::Tensor& other,
                     double limit) const;

 private:
  class Summing;
  template <typename Part>
  std::vector<Part> parts(kernels::Kernel kernel, kernels::MetricParameters parameters,
                          const at::Tensor& like) const;
  CandidateError got_error(const kernels::MetricParameters& parameters, const at::Tensor& like) const;
  void sum_families(Summing& summing, const std::vector<Family>& families, int64_t elements) const;
  template <typename Parameters>
  void launch(kernels::Kernel kernel, int64_t blocks, const Parameters& parameters) const {
    launcher_->launch(kernel, blocks, &parameters, sizeof parameters);
  }

  std::unique_ptr<KernelLauncher> launcher_;
};

// The metrics of tensors on devices of `type` from now on, in this process; null ends it.
void use_fused_metrics(std::unique_ptr<FusedMetrics> metrics, c10::DeviceType type = c10::kCUDA);
// Those that can be used for these tensors, or null. Undefined tensors are left out.
const FusedMetrics* fused_metrics(std::initializer_list<at::Tensor> tensors);

}  // namespace nereid::replay
