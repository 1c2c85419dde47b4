// Which device tensors live on. libtorch's CUDA half is opened here, on first use: programs link its CPU half
// alone.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::lm {

// "cpu", "cuda", "cuda:N", or "auto": a GPU where there is one. To be called before anything else asks
// libtorch for CUDA.
Result<c10::Device> open_device(const std::string& name);

// A copy there of what is on the host. To a GPU it is asynchronous: through pinned memory, in its stream's
// order.
at::Tensor sent_to(const at::Tensor& on_host, at::Device device);
at::Tensor sent_to(const std::vector<int32_t>& numbers, at::Device device);  // int32

}  // namespace nereid::lm
