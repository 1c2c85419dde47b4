#include "nereid/replay/worker/block.h"

#include "nereid/replay/memory_plan.h"

namespace nereid::replay {

TensorShape shape_of(const trace::Value& value) { return {value.dtype, value.sizes}; }

void BlockLayout::add(TensorShape shape) {
  int64_t elements = 1;
  for (const auto size : shape.sizes) elements *= size;
  offsets_.push_back(bytes_);
  bytes_ += (elements * trace::element_bytes(shape.dtype) + kBlockAlignment - 1) / kBlockAlignment *
            kBlockAlignment;
  shapes_.push_back(std::move(shape));
}

c10::Storage BlockLayout::storage(const at::Tensor& block, size_t i) const {
  int64_t bytes = trace::element_bytes(shapes_[i].dtype);
  for (const auto size : shapes_[i].sizes) bytes *= size;
  auto* first = static_cast<std::byte*>(block.mutable_data_ptr()) + offsets_[i];
  c10::DataPtr data(
      first, new at::Tensor(block), [](void* held) { delete static_cast<at::Tensor*>(held); },
      block.device());
  return {c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), std::move(data), nullptr, false};
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
