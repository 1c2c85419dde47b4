// What the files about integer inputs share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nereid::replay {

// Elements: the structure of a larger tensor is not looked for.
inline constexpr int64_t kMaxSearched = int64_t{1} << 22;

inline const auto kLong = at::TensorOptions().dtype(c10::kLong);

inline bool all_true(const at::Tensor& truths) { return truths.all().item().toBool(); }

inline at::Tensor as_long(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, c10::kLong, false, true).contiguous();
}

}  // namespace nereid::replay
