// Whether what came out of two orders of programs is the same but for rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace nereid::replay {

// In words where two tensors of one shape and type differ by more than another order of summation explains,
// for the worst element. Floating-point numbers may differ by 2^-12 of the largest element (f16, bf16: 2^-5,
// as each atomic rounds to them; f8: 2^-2; f64: 2^-32); infinities, NaNs, integers and booleans must be the
// same.
std::optional<std::string> order_difference(const at::Tensor& ascending, const at::Tensor& shuffled);

}  // namespace nereid::replay
