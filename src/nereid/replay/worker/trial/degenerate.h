// Whether outputs say anything: numbers that are all one, the same as others, or not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/worker/compare/compare.h"

namespace nereid::replay {

// Whether all elements are one number; one alone says nothing.
bool is_constant(const at::Tensor& tensor);
// Whether no element differs by more than `limit` in units of max(|second|, scale).
bool is_close(const at::Tensor& first, const at::Tensor& second, double scale, double limit);
// Of floating-point elements.
double finite_share(const std::vector<OutputTensors>& outputs);

}  // namespace nereid::replay
