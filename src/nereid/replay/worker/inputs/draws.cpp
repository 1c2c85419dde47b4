#include "nereid/replay/worker/inputs/draws.h"

#include <ATen/Context.h>

#include <limits>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {

at::Generator generator_on(const at::Tensor& tensor, const at::Generator& generator) {
  if (tensor.is_cpu()) return generator;
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  auto made = at::globalContext().defaultGenerator(tensor.device()).clone();
  const auto seed = at::randint(kMost, {1}, generator, at::TensorOptions().dtype(c10::kLong)).item().toLong();
  made.set_current_seed(static_cast<uint64_t>(seed));
  return made;
}

void for_parts(const at::Tensor& tensor, const std::function<void(at::Tensor, int64_t)>& body,
               int64_t first) {
  constexpr int64_t kPart = int64_t{1} << 22;  // elements
  if (tensor.numel() <= kPart) return body(tensor, first);
  const auto row = tensor.numel() / tensor.size(0), rows = std::max<int64_t>(1, kPart / row);
  for (int64_t i = 0; i < tensor.size(0); i += rows) {
    const auto part = tensor.narrow(0, i, std::min(rows, tensor.size(0) - i));
    for_parts(row > kPart ? part.select(0, 0) : part, body, first + i * row);
  }
}

at::TensorOptions options_of(const at::Tensor& like, c10::ScalarType type) {
  return at::TensorOptions().dtype(type).device(like.device());
}
at::Tensor normal(const at::Tensor& like, const at::Generator& generator) {
  return at::randn(like.sizes(), generator, options_of(like, c10::kFloat));
}
at::Tensor up_or_down(const at::Tensor& like, const at::Generator& generator) {
  return at::randint(2, like.sizes(), generator, options_of(like, c10::kDouble)).mul_(2).sub_(1);
}

at::Tensor uniform(const at::Tensor& like, double low, double high, const at::Generator& generator) {
  const auto drawn = at::rand(like.sizes(), generator, options_of(like, c10::kFloat));
  return low == 0 && high == 1 ? drawn : drawn.mul_(high - low).add_(low);
}

}  // namespace nereid::replay
