// Compiled with the product's flags: without optimization these loops take most of a test's time.
#include "tests/support/host_kernels.h"

#include <type_traits>
#include <vector>

namespace nereid::replay {
namespace {

class HostLauncher : public KernelLauncher {
 public:
  void launch(kernels::Kernel kernel, int64_t blocks, const void* parameters, size_t) const override {
    for (int64_t b = 0; b < blocks; ++b) run(kernel, b, parameters);
  }

 private:
  template <typename T>
  static const T& as(const void* parameters) {
    return *static_cast<const T*>(parameters);
  }
  static void run(kernels::Kernel kernel, int64_t index, const void* parameters) {
    using namespace kernels;
    const HostBlock<kThreads> block{index};
    const auto& metric = as<MetricParameters>(parameters);
    if (kernel >= Kernel::kRuns) return run_sums(kernel, index, parameters);
    unsigned counts[kTailTables * kPowers];
    switch (kernel) {
      case Kernel::kScale:
        return scale_block(block, metric, std::vector<ScalePart>(kThreads).data());
      case Kernel::kReferenceError:
        return own_error_block(block, metric, std::vector<ReferencePart>(kThreads).data());
      case Kernel::kCandidateError:
        return got_error_block(block, metric, std::vector<CandidatePart>(kThreads).data());
      case Kernel::kErrorPair:
        return error_pair_block(block, metric, std::vector<ErrorParts>(kThreads).data());
      case Kernel::kTail:
        return tail_block(block, as<TailParameters>(parameters), counts);
      case Kernel::kClose:
        return close_block(block, as<CloseParameters>(parameters), counts);
      default:
        return agree_block(block, as<AgreeParameters>(parameters));
    }
  }
  static void run_sums(kernels::Kernel kernel, int64_t index, const void* parameters) {
    using namespace kernels;
    const HostBlock<kThreads> block{index};
    const auto& p = as<SumParameters>(parameters);
    SumsOf<kSums> sums[kThreads];
    SumsOf<kAllSums> all_sums[kThreads];
    const auto values = [&]<int kMany>(std::integral_constant<int, kMany>) {
      std::vector<SumsOf<kMany>> tables(2 * kExponents * value_tables(kMany));
      values_block<kMany>(HostBlock<kValueThreads>{index}, p, tables.data());
    };
    switch (kernel) {
      case Kernel::kRuns:
        return runs_block<kSums>(block, p, sums);
      case Kernel::kColumns:
        return columns_block<kSums>(block, p);
      case Kernel::kValues:
        return values(std::integral_constant<int, kValueSums>());
      case Kernel::kAllRuns:
        return runs_block<kAllSums>(block, p, all_sums);
      case Kernel::kAllColumns:
        return columns_block<kAllSums>(block, p);
      case Kernel::kAllValues:
        return values(std::integral_constant<int, kAllValueSums>());
      default:
        return fold_block(block, as<FoldParameters>(parameters), all_sums);
    }
  }
};

}  // namespace

std::unique_ptr<FusedMetrics> on_the_host() {
  return std::make_unique<FusedMetrics>(std::make_unique<HostLauncher>());
}

}  // namespace nereid::replay
