#include "nereid/replay/worker/block.h"

namespace nereid::replay {

TensorShape shape_of(const trace::Value& value) { return {value.dtype, value.sizes}; }

void BlockLayout::add(TensorShape shape) {
  constexpr int64_t kAlign = 256;
  int64_t elements = 1;
  for (const auto size : shape.sizes) elements *= size;
  offsets_.push_back(bytes_);
  bytes_ += (elements * trace::element_bytes(shape.dtype) + kAlign - 1) / kAlign * kAlign;
  shapes_.push_back(std::move(shape));
}

at::Tensor BlockLayout::at(const at::Tensor& block, size_t i) const {
  trace::Value value;
  value.dtype = shapes_[i].dtype;
  value.sizes = shapes_[i].sizes;
  value.offset = offsets_[i] / trace::element_bytes(value.dtype);
  value.strides.resize(value.sizes.size());
  int64_t stride = 1;
  for (size_t d = value.sizes.size(); d-- > 0; stride *= std::max<int64_t>(value.sizes[d], 1))
    value.strides[d] = stride;
  return view_of(value, block.storage());
}

}  // namespace nereid::replay
