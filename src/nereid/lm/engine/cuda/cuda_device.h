// The engine's device where there is a GPU: CUDA graphs, and our own kernels through the driver.
#pragma once

#include <memory>

#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/lm/engine/runner/runner.h"

namespace nereid::lm {

// The device that lm::open_device opened; the CPU's where `device` is the CPU. Our kernels are left out where
// `own_kernels` is false.
Result<std::unique_ptr<Device>> open_engine_device(at::Device device, const Installation& installation,
                                                   bool own_kernels = true);

}  // namespace nereid::lm
