#include "nereid/ops/layout.h"

#include <algorithm>
#include <numeric>

namespace nereid::ops {
namespace {

// Dimensions in `order`, the slowest first.
Sizes strides_in(const Sizes& sizes, std::span<const size_t> order) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= std::max<int64_t>(sizes[order[i]], 1);
  }
  return strides;
}

// Dimensions from the fastest to the slowest, by an insertion sort in which some pairs are tied.
std::vector<size_t> by_stride(const Sizes& sizes, std::span<const Laid> operands) {
  const auto after = [&](size_t a, size_t b) {
    for (const Laid& each : operands) {
      const int64_t of_a = each.strides[a], of_b = each.strides[b];
      if (of_a == 0 || of_b == 0) continue;
      if (of_a != of_b) return of_a < of_b ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int comparison = after(order[before], order[at]);
      if (comparison < 0) break;
      if (comparison > 0) std::swap(order[before], order[at]), at = before;
    }
  }
  return order;
}

}  // namespace

Sizes row_major(const Sizes& sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return strides_in(sizes, order);
}

Sizes channels_last(const Sizes& sizes) {
  std::vector<size_t> order = {0};
  for (size_t d = 2; d < sizes.size(); ++d) order.push_back(d);
  order.push_back(1);
  return strides_in(sizes, order);
}

int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool is_row_major(const Laid& laid) {
  int64_t expected = 1;
  for (size_t d = laid.sizes.size(); d-- > 0; expected *= laid.sizes[d])
    if (laid.sizes[d] != 1 && laid.strides[d] != expected) return false;
  return true;
}

bool is_channels_last(const Laid& laid) {
  if (laid.sizes.size() != 4 && laid.sizes.size() != 5) return false;
  const Sizes wanted = channels_last(laid.sizes);
  for (size_t d = 0; d < wanted.size(); ++d)
    if (laid.sizes[d] != 1 && laid.strides[d] != wanted[d]) return false;
  return true;
}

// is_channels_last_strides_2d and its kin (c10/core/MemoryFormat.h).
bool suggests_channels_last(const Laid& laid) {
  const size_t rank = laid.sizes.size();
  if (rank != 4 && rank != 5) return false;
  if (laid.strides[1] == 0) return false;
  int64_t least = 0;
  std::vector<size_t> order = {1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  for (const size_t d : order) {
    if (laid.sizes[d] == 0 || laid.strides[d] < least) return false;
    // [n, 1, h, w] with the strides of its channels last is ambiguous, and is contiguous.
    if (d == 0 && least == laid.strides[1]) return false;
    least = laid.strides[d];
    if (laid.sizes[d] > 1) least *= laid.sizes[d];
  }
  return true;
}

Sizes broadcast(std::span<const Laid> operands) {
  Sizes sizes;
  for (const Laid& each : operands) {
    if (each.sizes.size() > sizes.size()) sizes.insert(sizes.begin(), each.sizes.size() - sizes.size(), 1);
    const size_t missing = sizes.size() - each.sizes.size();
    for (size_t d = 0; d < each.sizes.size(); ++d)
      if (each.sizes[d] != 1) sizes[missing + d] = each.sizes[d];
  }
  return sizes;
}

// inferExpandGeometry in aten/src/ATen/ExpandUtils.cpp.
Laid expanded(const Laid& operand, const Sizes& sizes) {
  Laid made{sizes, Sizes(sizes.size(), 0)};
  const size_t missing = sizes.size() - operand.sizes.size();
  for (size_t d = sizes.size(); d-- > 0;) {
    const bool there = d >= missing;
    if (there ? operand.sizes[d - missing] != sizes[d] : sizes[d] != 1) continue;
    if (there)
      made.strides[d] = operand.strides[d - missing];
    else
      made.strides[d] = d + 1 < sizes.size() ? sizes[d + 1] * made.strides[d + 1] : 1;
  }
  return made;
}

// compute_elementwise_output_logical_to_physical_perm in torch/_prims_common.
Laid elementwise(std::span<const Laid> operands) {
  const Sizes sizes = broadcast(operands);
  std::vector<Laid> lie;
  for (const Laid& each : operands) lie.push_back(expanded(each, sizes));
  const bool rows = std::ranges::all_of(lie, is_row_major);
  const bool last = sizes.size() == 4 && std::ranges::all_of(lie, is_channels_last);
  if (rows && !last) return {sizes, row_major(sizes)};
  if (last && !rows) return {sizes, channels_last(sizes)};
  std::vector<size_t> order = by_stride(sizes, lie);
  std::ranges::reverse(order);
  return {sizes, strides_in(sizes, order)};
}

// From behind, in chunks of dimensions that are together in memory (at::detail::computeStride).
bool can_be_seen_as(const Laid& laid, const Sizes& sizes) {
  if (laid.sizes.empty()) return true;
  size_t left = sizes.size();  // dimensions of the view that have no place yet
  int64_t base = laid.strides.back(), chunk = 1;
  for (size_t d = laid.sizes.size(); d-- > 0;) {
    chunk *= laid.sizes[d];
    const bool ends = d == 0 || (laid.sizes[d - 1] != 1 && laid.strides[d - 1] != chunk * base);
    if (!ends) continue;
    int64_t seen = 1;
    while (left > 0 && (seen < chunk || sizes[left - 1] == 1)) seen *= sizes[--left];
    if (seen != chunk) return false;
    if (d > 0) base = laid.strides[d - 1], chunk = 1;
  }
  return left == 0;
}

// From the front: each dimension is one that is there, or is split off one or several that are taken
// together.
Sizes strides_after_view(const Laid& laid, const Sizes& sizes) {
  if (laid.sizes.empty()) return Sizes(sizes.size(), 1);
  if (sizes.size() == 1 && is_row_major(laid)) return {1};
  Laid at = laid;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d >= at.sizes.size()) {  // of one element, at the end
      at.sizes.push_back(1), at.strides.push_back(at.strides.back());
      continue;
    }
    if (at.sizes[d] == sizes[d]) continue;
    while (at.sizes[d] % sizes[d] != 0) {
      if (at.sizes[d] == 1 || at.sizes[d + 1] != 1)
        at.strides[d] = at.sizes[d] == 1 ? at.strides[d + 1] : std::min(at.strides[d], at.strides[d + 1]);
      at.sizes[d] *= at.sizes[d + 1];
      const auto next = static_cast<ptrdiff_t>(d + 1);
      at.sizes.erase(at.sizes.begin() + next), at.strides.erase(at.strides.begin() + next);
    }
    if (at.sizes[d] == sizes[d]) continue;
    const int64_t inner = at.sizes[d] / sizes[d], stride = at.strides[d];
    const auto behind = static_cast<ptrdiff_t>(d + 1);
    at.sizes[d] = sizes[d], at.strides[d] = stride * inner;
    at.sizes.insert(at.sizes.begin() + behind, inner), at.strides.insert(at.strides.begin() + behind, stride);
  }
  at.strides.resize(sizes.size());
  return at.strides;
}

}  // namespace nereid::ops
