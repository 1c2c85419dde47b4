// PyTorch's words for the trace's types, and the patterns that unwritten memory holds.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Storage.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "nereid/replay/report.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// The traced program, not the worker, is at fault. Caught once per request; the replay adds where.
struct Failed : std::runtime_error {
  Failed(Failure::Kind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  Failure::Kind kind;
  std::optional<Where> where;
};

[[noreturn]] inline void refuse(const std::string& message) {
  throw Failed(Failure::Kind::kRefused, message);
}

// While one of these lives, operators run as under torch.no_grad() and nothing is recorded.
struct ReplayMode {
  // Autograd's own kernels stay in the way: a parameter's view must know that it is one's, for matmul asks.
  at::NoGradGuard no_grad;
};

c10::ScalarType scalar_type(trace::DType type);
trace::DType dtype_of(c10::ScalarType type);  // throws Failed for types that a trace does not know

// The tensor that a value describes, over `storage` (which must hold at least the value's extent).
at::Tensor view_of(const trace::Value& value, const c10::Storage& storage);
// All of a storage as bytes.
at::Tensor bytes_of(const c10::Storage& storage, int64_t bytes);

// Fills with what a kernel would not mistake for an answer: signalling NaNs, 0x5A5A... in integers, `truth`
// in booleans. The pattern of `type` goes over the whole storage.
void poison(const c10::Storage& storage, int64_t bytes, trace::DType type, bool truth = true);

// Whether two contiguous tensors of one size hold the same bits, NaNs included. Looks at a part at a time.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

// The distance from 1 to the next number: 2^-23 for f32.
double epsilon(trace::DType type);
double largest_finite(trace::DType type);

}  // namespace nereid::replay
