// How tensors are in a shared block: one after the other, contiguous, each at a multiple of 256 bytes. Both
// sides work it out from the traces.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {

struct TensorShape {
  trace::DType dtype{};
  std::vector<int64_t> sizes;
};
TensorShape shape_of(const trace::Value& value);

// The same elements, bools as bytes: a copy of bools makes 1 of every byte but 0.
inline at::Tensor bools_as_bytes(const at::Tensor& tensor) {
  return tensor.scalar_type() == c10::kBool ? tensor.view(c10::kByte) : tensor;
}
inline at::Tensor copy_of(const at::Tensor& tensor) {
  return bools_as_bytes(tensor).clone().view(tensor.scalar_type());
}

class BlockLayout {
 public:
  void add(TensorShape shape);
  size_t count() const { return shapes_.size(); }
  int64_t bytes() const { return bytes_; }
  const TensorShape& shape(size_t i) const { return shapes_[i]; }
  // The i-th tensor's bytes as a storage of their own, which keeps the block alive.
  c10::Storage storage(const at::Tensor& block, size_t i) const;
  // The i-th tensor, over the block's bytes.
  at::Tensor at(const at::Tensor& block, size_t i) const;

 private:
  std::vector<TensorShape> shapes_;
  std::vector<int64_t> offsets_;
  int64_t bytes_ = 0;
};

}  // namespace nereid::replay
