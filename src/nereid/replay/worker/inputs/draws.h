// Numbers drawn for a tensor's elements, on its device, and its parts.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>

namespace nereid::replay {

// A generator that draws on the tensor's device, seeded by the given one: hundreds of millions of numbers
// take a GPU a millisecond, and a CPU seconds.
at::Generator generator_on(const at::Tensor& tensor, const at::Generator& generator);

// Calls body(part, index of its first element in row-major order) for parts of the tensor, which bound what
// is made on the way.
void for_parts(const at::Tensor& tensor, const std::function<void(at::Tensor, int64_t)>& body,
               int64_t first = 0);

// What is drawn for each element of `like`, on its device; by its generator_on().
at::TensorOptions options_of(const at::Tensor& like, c10::ScalarType type);
// N(0, 1), in float32.
at::Tensor normal(const at::Tensor& like, const at::Generator& generator);
// 1 or -1, in float64.
at::Tensor up_or_down(const at::Tensor& like, const at::Generator& generator);
// U(low, high), in float32.
at::Tensor uniform(const at::Tensor& like, double low, double high, const at::Generator& generator);

}  // namespace nereid::replay
