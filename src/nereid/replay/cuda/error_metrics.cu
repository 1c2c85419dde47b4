// CUDA kernels of replay/worker/compare/error_metrics_kernels.h. Compiled by compile_kernels.py when the
// project is built; tests/gpu/selftest compares their results with PyTorch's operators.
#include "nereid/replay/worker/compare/error_metrics_kernels.h"

using namespace nereid::replay::kernels;

using Whole = DeviceBlock<kThreads>;

extern "C" __global__ void __launch_bounds__(kThreads) nereid_scale(const MetricParameters p) {
  __shared__ ScalePart slots[kThreads];
  scale_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_own_error(const MetricParameters p) {
  __shared__ OwnPart slots[kThreads];
  own_error_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_got_error(const MetricParameters p) {
  __shared__ GotPart slots[kThreads];
  got_error_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_runs(const SumParameters p) {
  __shared__ Sums slots[kThreads];
  runs_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_columns(const SumParameters p) {
  columns_block(Whole(), p);
}

extern "C" __global__ void __launch_bounds__(kValueThreads) nereid_values(const SumParameters p) {
  __shared__ __align__(16) ValueSums tables[2 * kExponents * kTables];
  values_block(DeviceBlock<kValueThreads>(), p, tables);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_fold(const FoldParameters p) {
  __shared__ Sums slots[kThreads];
  fold_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_agree(const AgreeParameters p) {
  agree_block(Whole(), p);
}
