// Which device tensors live on. libtorch's CUDA half is opened here, when it is asked for: programs link its CPU half alone.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "nereid/base/result.h"

namespace nereid::model {

// "cpu", "cuda", "cuda:N", or "auto": a GPU where there is one. To be called before anything else asks libtorch for CUDA.
Result<c10::Device> open_device(const std::string& name);

}  // namespace nereid::model
