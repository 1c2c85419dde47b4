// The reference in float64: its trace with every floating-point dtype upcast. What it computes is the truth
// that both the reference in its own dtype and the candidate are measured against.
//
// - f16, bf16 and f32 become f64, c32 and c64 become c128: tensors, constants, and the dtypes that calls
// name. A cast
//   that is part of the program is upcast too. fp8 stays: rounding to it is what the program means.
// - Random operators draw in the dtype they had, so that the stream is the same, and are converted.
// - With `Tf32`, contractions whose operands are f32 are marked "nereid::tf32" where PyTorch's flags let CUDA
// round their factors (worker/tf32_products.h).
// - With `order_check`, sums make NaN of what hangs on how they are taken: see `PreparedCall`.
//
// Only the judged forward is kept; the state and inputs it begins with are converted by the replay.
#pragma once

#include <optional>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// Which contractions may round their f32 operands to TF32.
struct Tf32 {
  bool convolutions = false, matmuls = false;
};
// As the trace's flags say, and everything with `allow`.
Tf32 tf32_of(const trace::Trace& trace, bool allow);
// The judged forward has a contraction of f32 that `tf32` concerns.
bool uses_tf32(const trace::Trace& trace, const Tf32& tf32);

struct Upcast {
  trace::Trace trace;
  std::vector<std::optional<trace::DType>> was;  // by storage: the dtype that was upcast, or float64
  bool same_dtype = false;                       // `keep_dtypes` made it: `was` says what is floating-point
};

// An error says, in words for a person, why this program cannot be upcast: it launches kernels, or views the
// same bytes as different types.
Result<Upcast> upcast(const trace::Trace& trace, const Tf32& tf32);

// The judged forward rounds to 16 bits or less on its way, or to what it gives.
bool is_coarse(const trace::Trace& trace);

// Marks a upcast trace's sums and contractions of what was float32 or narrower "nereid::order_check"; false
// where there are none.
bool mark_order_sensitive(Upcast& upcasted);

// The judged forward alone, in its own dtypes: to replay it from inputs that are moved a little.
Upcast keep_dtypes(const trace::Trace& trace);

}  // namespace nereid::replay
