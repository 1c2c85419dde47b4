// Scalars of pointwise operators on 16-bit tensors, rounded to the tensors' dtype as PyTorch does.
#pragma once

#include "nereid/trace/trace.h"

namespace nereid::replay {

// Which operators round their scalars, each kind with all before it (docs/tolerance.md, "Scalars").
// `kByCuda`: powers, remainders and comparisons, as CUDA kernels do; `kByCpu`: sums and differences, too, as
// CPU kernels do; `kAlways`: every pointwise operator, as arithmetic in 16 bits does.
enum class RoundedScalars { kByCuda, kByCpu, kAlways };

// Rounds them in the judged forward, in the trace as it was traced (its own dtypes). False where that leaves
// every scalar of that kind, which is those that the kind before it does not round, as it is.
bool round_scalars(trace::Trace& trace, RoundedScalars kind);

}  // namespace nereid::replay
