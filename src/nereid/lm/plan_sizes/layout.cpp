#include "nereid/lm/plan_sizes/layout.h"

#include <algorithm>
#include <numeric>

namespace nereid::lm {
namespace {

// An operand's strides along the axes of `sizes`; 0 where it is broadcast.
Sizes along(const Layout& operand, const Sizes& sizes) {
  Sizes strides(sizes.size(), 0);
  const size_t begin = sizes.size() - operand.sizes.size();
  for (size_t d = 0; d < operand.sizes.size(); ++d)
    if (operand.sizes[d] != 1 || sizes[begin + d] == 1) strides[begin + d] = operand.strides[d];
  return strides;
}

// Whether axis `a` is the outer one of two (1), the inner one (-1), or either would do.
int compare_axes(const Sizes& sizes, const std::vector<Sizes>& strides, size_t a, size_t b) {
  for (const Sizes& own : strides) {
    if (own[a] == 0 || own[b] == 0) continue;
    if (own[a] != own[b]) return own[a] < own[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

Layout row_major_layout(Sizes sizes) {
  Layout layout{.sizes = std::move(sizes), .strides = {}};
  layout.strides.resize(layout.sizes.size());
  int64_t stride = 1;
  for (size_t d = layout.sizes.size(); d-- > 0; stride *= std::max<int64_t>(layout.sizes[d], 1))
    layout.strides[d] = stride;
  return layout;
}

bool in_order(const Layout& layout) {
  int64_t stride = 1;
  for (size_t d = layout.sizes.size(); d-- > 0; stride *= layout.sizes[d])
    if (layout.sizes[d] != 1 && layout.strides[d] != stride) return false;
  return layout.offset == 0;
}

std::optional<Sizes> broadcast(std::span<const Sizes* const> operands) {
  Sizes result;
  for (const Sizes* operand : operands) {
    if (operand->size() > result.size()) result.insert(result.begin(), operand->size() - result.size(), 1);
    const size_t begin = result.size() - operand->size();
    for (size_t d = 0; d < operand->size(); ++d) {
      int64_t& size = result[begin + d];
      if (size == 1)
        size = (*operand)[d];
      else if ((*operand)[d] != 1 && (*operand)[d] != size)
        return std::nullopt;
    }
  }
  return result;
}

Layout elementwise_layout(const Sizes& sizes, std::span<const Layout* const> operands) {
  std::vector<Sizes> strides;
  for (const Layout* operand : operands) strides.push_back(along(*operand, sizes));
  std::vector<size_t> order(sizes.size());  // the innermost axis first
  std::iota(order.rbegin(), order.rend(), 0);
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t at = i, before = i; before-- > 0;) {
      const int compared = compare_axes(sizes, strides, order[before], order[at]);
      if (compared < 0) break;
      if (compared > 0) std::swap(order[before], order[at]), at = before;
    }
  Layout made{.sizes = sizes, .strides = Sizes(sizes.size())};
  int64_t stride = 1;
  for (const size_t axis : order) {
    made.strides[axis] = stride;
    stride *= std::max<int64_t>(sizes[axis], 1);
  }
  return made;
}

std::optional<Sizes> view_strides(const Layout& from, const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  if (from.sizes.empty()) return strides;
  auto at = static_cast<int64_t>(sizes.size()) - 1;
  int64_t base = from.strides.back(), whole = 1, covered = 1;
  for (size_t d = from.sizes.size(); d-- > 0;) {
    whole *= from.sizes[d];
    if (d != 0 && (from.sizes[d - 1] == 1 || from.strides[d - 1] == whole * base)) continue;
    for (; at >= 0 && (covered < whole || sizes[static_cast<size_t>(at)] == 1); --at) {
      strides[static_cast<size_t>(at)] = covered * base;
      covered *= sizes[static_cast<size_t>(at)];
    }
    if (covered != whole) return std::nullopt;
    if (d > 0) base = from.strides[d - 1], whole = covered = 1;
  }
  return at == -1 ? std::optional(strides) : std::nullopt;
}

Value new_value(Layout layout) {
  const auto own = std::make_shared<const Layout>(std::move(layout));
  return {.layout = own, .whole = own};
}

Value view_value(const Value& of, Layout layout) {
  return {.layout = std::make_shared<const Layout>(std::move(layout)), .whole = of.whole};
}

}  // namespace nereid::lm
