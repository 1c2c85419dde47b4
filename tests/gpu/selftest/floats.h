#pragma once

#include <ATen/core/Tensor.h>

namespace nereid::replay::cuda::selftest {

// What most checks' tensors are made with.
inline at::TensorOptions floats() { return at::TensorOptions().dtype(at::kFloat).device(at::kCUDA); }

}  // namespace nereid::replay::cuda::selftest
