// CUDA kernels of replay/worker/compare/*_kernels.h. Compiled by compile_kernels.py when the project is
// built; tests/gpu/selftest compares their results with PyTorch's operators.
#include "nereid/replay/worker/compare/error_metrics_kernels.h"
#include "nereid/replay/worker/compare/error_sums_kernels.h"

using namespace nereid::replay::kernels;

using Whole = DeviceBlock<kThreads>;
using Values = DeviceBlock<kValueThreads>;

extern "C" __global__ void __launch_bounds__(kThreads) nereid_scale(const MetricParameters p) {
  __shared__ ScalePart slots[kThreads];
  scale_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_own_error(const MetricParameters p) {
  __shared__ ReferencePart slots[kThreads];
  own_error_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_got_error(const MetricParameters p) {
  __shared__ CandidatePart slots[kThreads];
  got_error_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_both_errors(const MetricParameters p) {
  __shared__ ErrorParts slots[kThreads];
  error_pair_block(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_tail(const TailParameters p) {
  __shared__ unsigned table[kTailTables * kPowers];
  tail_block(Whole(), p, table);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_close(const CloseParameters p) {
  __shared__ unsigned table[kThreads];
  close_block(Whole(), p, table);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_agree(const AgreeParameters p) {
  agree_block(Whole(), p);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_runs(const SumParameters p) {
  __shared__ SumsOf<kSums> slots[kThreads];
  runs_block<kSums>(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_columns(const SumParameters p) {
  columns_block<kSums>(Whole(), p);
}

extern "C" __global__ void __launch_bounds__(kValueThreads) nereid_values(const SumParameters p) {
  __shared__ __align__(16) SumsOf<kValueSums> tables[2 * kExponents * value_tables(kValueSums)];
  values_block<kValueSums>(Values(), p, tables);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_all_runs(const SumParameters p) {
  __shared__ SumsOf<kAllSums> slots[kThreads];
  runs_block<kAllSums>(Whole(), p, slots);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_all_columns(const SumParameters p) {
  columns_block<kAllSums>(Whole(), p);
}

extern "C" __global__ void __launch_bounds__(kValueThreads) nereid_all_values(const SumParameters p) {
  __shared__ __align__(16) SumsOf<kAllValueSums> tables[2 * kExponents * value_tables(kAllValueSums)];
  values_block<kAllValueSums>(Values(), p, tables);
}

extern "C" __global__ void __launch_bounds__(kThreads) nereid_fold(const FoldParameters p) {
  __shared__ SumsOf<kAllSums> slots[kThreads];
  fold_block(Whole(), p, slots);
}
