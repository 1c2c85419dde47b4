// Sizes and strides of tensors that are never allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace nereid::lm {

using Sizes = std::vector<int64_t>;

// Strides and offset in elements.
struct Layout {
  Sizes sizes, strides;
  int64_t offset = 0;
};

Layout row_major_layout(Sizes sizes);
// Elements are one after the other, from the storage's first on. Strides of axes of size 1 do not count.
bool in_order(const Layout& layout);

// PyTorch's rules of broadcasting; nullopt where sizes do not fit.
std::optional<Sizes> broadcast(std::span<const Sizes* const> operands);

// A new tensor of these sizes that an elementwise operator makes of `operands`: it keeps the order of their
// axes, as ATen's TensorIterator does.
Layout elementwise_layout(const Sizes& sizes, std::span<const Layout* const> operands);

// The same elements under other sizes without a copy (at::detail::computeStride); nullopt where there are no
// such strides.
std::optional<Sizes> view_strides(const Layout& from, const Sizes& sizes);

// A tensor of a plan: where its elements are, and the first tensor in its storage.
struct Value {
  std::shared_ptr<const Layout> layout, whole;
  const Sizes& sizes() const { return layout->sizes; }
};
Value new_value(Layout layout);
Value view_value(const Value& of, Layout layout);

}  // namespace nereid::lm
