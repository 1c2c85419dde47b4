#include "nereid/compiler/transforms/kernel_mapping.h"

#include <algorithm>
#include <set>

#include "nereid/compiler/codegen/contraction_tile.h"
#include "nereid/compiler/codegen/emit.h"

namespace nereid::compiler {
namespace {

// The kernel's columns as dimensions of these sizes; nothing where they are others.
std::optional<std::vector<Index>> columns_of_sizes(const TileKernel& kernel, const Extents& sizes,
                                                   bool folded) {
  if (sizes.empty()) return std::vector<Index>{};
  const auto first = static_cast<int>(kernel.rows.size());
  std::vector<Index> all;
  if (sizes == kernel.columns) {
    for (size_t c = 0; c < sizes.size(); ++c) all.push_back(Index::dimension(first + static_cast<int>(c)));
    return all;
  }
  if (element_count(sizes) != kernel.column_count() || !(folded || refines(sizes, kernel.columns)))
    return std::nullopt;
  Index linear;
  const auto strides = row_major(kernel.columns);
  for (size_t c = 0; c < strides.size(); ++c)
    linear = linear + Index::dimension(first + static_cast<int>(c)) * strides[c];
  return unravel(linear, sizes, kernel.extents());
}

}  // namespace

const Member* made_by(const Graph& graph, const TileKernel& kernel, TensorId tensor) {
  const NodeId maker = graph.tensors[static_cast<size_t>(tensor)].node;
  const auto found = std::ranges::find_if(kernel.members, [&](const Member& m) { return m.node == maker; });
  return maker < 0 || found == kernel.members.end() ? nullptr : &*found;
}

std::optional<KnownDimensions> known_dimensions(const Graph& graph, const TileKernel& kernel,
                                                const Node& each, const Extents& sizes, bool& follows) {
  KnownDimensions known(sizes.size());
  for (const ExprId read : graph.exprs.below(each.body)) {
    const Expr& expr = graph.exprs[read];
    if (expr.kind != Expr::Kind::kLoad) continue;
    const Member* maker = made_by(graph, kernel, expr.tensor);
    if (maker == nullptr) continue;
    follows = true;
    const Extents& own_sizes = graph.tensors[static_cast<size_t>(expr.tensor)].sizes;
    std::set<size_t> done;
    for (size_t own = 0; own < sizes.size(); ++own) {
      Index index;
      Size below = 1;
      for (const size_t d : flattened(expr.at, own_sizes, static_cast<int>(own), sizes)) {
        index = index + maker->at[d] * below;
        below = below * own_sizes[d];
        done.insert(d);
      }
      if (below == 1) continue;
      KnownDimension& place = known[own];
      if (place.index && (!(*place.index == index) || place.group != 1)) return std::nullopt;
      place.index = index;
    }
    for (size_t d = 0; d < expr.at.size(); ++d) {
      if (done.contains(d)) continue;
      if (expr.at[d] == maker->at[d]) {
        if (expr.at[d].is_constant()) continue;
      }
      const int64_t size = graph.tensors[static_cast<size_t>(expr.tensor)].sizes[d];
      if (expr.at[d].is_constant() && size == 1) continue;
      if (const auto group = group_of(expr.at[d], sizes, size)) {
        KnownDimension& place = known[static_cast<size_t>(group->first)];
        if (place.index && (!(*place.index == maker->at[d]) || place.group != group->second))
          return std::nullopt;
        place = {maker->at[d], group->second};
        continue;
      }
      const auto digits = digits_of(expr.at[d], sizes, size);
      if (digits.empty()) return std::nullopt;
      for (const auto& [dimension, stride] : digits) {
        const int64_t extent = sizes[static_cast<size_t>(dimension)];
        Index own = quotient(maker->at[d], stride, kernel.extents());
        if (digits.size() > 1 && stride * extent < size) own = remainder(own, extent, kernel.extents());
        KnownDimension& place = known[static_cast<size_t>(dimension)];
        if (place.index && (!(*place.index == own) || place.group != 1)) return std::nullopt;
        place.index = own;
      }
    }
  }
  return known;
}

std::vector<int> reduced_before(const Graph& graph, const TileKernel& kernel, const Node& each) {
  std::vector<int> rows;
  for (const TensorId read : graph.reads(each))
    if (const Member* maker = made_by(graph, kernel, read)) {
      if (maker->across.empty()) return {};
      rows = maker->across;
    }
  return rows;
}

std::optional<std::vector<Index>> completed_mapping(const TileKernel& kernel, const Node& each,
                                                    const KnownDimensions& known, bool after_contraction,
                                                    const std::vector<int>& across) {
  for (size_t d = 0; d < known.size(); ++d)  // two dimensions of its own are not one of the kernel's
    for (size_t other = 0; other < d; ++other)
      if (known[d].index && known[other].index && *known[d].index == *known[other].index &&
          !known[d].index->is_constant())
        return std::nullopt;
  std::set<int> covered;
  for (const auto& [index, group] : known)
    for (size_t d = 0; index && d < kernel.extents().size(); ++d)
      if (index->uses(static_cast<int>(d))) covered.insert(static_cast<int>(d));
  for (size_t r = 0; r < kernel.rows.size(); ++r)
    if (kernel.rows[r] > 1 && !covered.contains(static_cast<int>(r)) &&
        std::ranges::find(across, static_cast<int>(r)) == across.end())
      return std::nullopt;
  Extents rest;  // of what does not follow
  bool groups = false;
  for (size_t d = 0; d < each.sizes.size(); ++d) {
    if (known[d].index && known[d].group == 1) continue;
    groups = groups || known[d].group > 1;
    if (known[d].index || each.sizes[d] > 1)
      rest.push_back(known[d].index ? Size(known[d].group) : each.sizes[d]);
  }
  const auto columns = columns_of_sizes(kernel, rest, groups);
  const bool taken = !covered.empty() && *covered.rbegin() >= static_cast<int>(kernel.rows.size());
  if (!columns || (!rest.empty() && (after_contraction || taken))) return std::nullopt;
  std::vector<Index> map(each.sizes.size());
  size_t next = 0;
  for (size_t d = 0; d < each.sizes.size(); ++d) {
    const auto& [index, group] = known[d];
    if (index)
      map[d] = group == 1 ? *index : *index * group + (*columns)[next++];
    else if (each.sizes[d] > 1)
      map[d] = (*columns)[next++];
    if (index && map[d].bounds(kernel.extents()).high < each.sizes[d] - 1) return std::nullopt;
  }
  return map;
}

std::optional<std::vector<Index>> in_tile(const Graph& graph, const TileKernel& kernel, const Node& each,
                                          const Target& target) {
  const bool simple = each.reduction == Reduction::kSum || each.reduction == Reduction::kMax ||
                      each.reduction == Reduction::kMin;
  if (!simple || each.scan || !each.at.empty() || is_contraction(graph, each) ||
      graph.exprs[each.body].type != DType::kF32 ||
      graph.nodes[static_cast<size_t>(kernel.members.front().node)].window_factor)
    return std::nullopt;
  const auto product = as_contraction(graph, kernel);
  const Extents extents = each.extents();
  bool follows = false;
  const auto known = known_dimensions(graph, kernel, each, extents, follows);
  if (!product || !known || !follows) return std::nullopt;
  std::vector<Index> map(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    const auto& [index, group] = (*known)[d];
    if (extents[d] == 1) continue;
    if (!index || group != 1 || index->bounds(kernel.extents()).high != extents[d] - 1) return std::nullopt;
    for (size_t other = 0; other < d; ++other)
      if (map[other] == *index) return std::nullopt;
    map[d] = *index;
  }
  const int64_t batch = product_of(kernel.rows, product->batch);
  for (const auto& [own, others] : {std::pair(product->n, product->m), std::pair(product->m, product->n)}) {
    const int64_t whole = product_of(kernel.rows, own), rest = product_of(kernel.rows, others);
    if (whole < 2 || whole > kWholeSide || rest < 2 ||
        batch * ((rest + kWarpGroupTile - 1) / kWarpGroupTile) < target.multiprocessors ||
        element_count(each.sizes) * whole != kernel.row_count())
      continue;
    std::set<int> all, reduced;
    for (const int d : own)
      if (kernel.rows[static_cast<size_t>(d)] > 1) all.insert(d);
    bool keeps = true;  // of the others
    for (size_t d = 0; d < map.size(); ++d)
      for (size_t r = 0; r < kernel.rows.size(); ++r) {
        const auto row = static_cast<int>(r);
        if (d >= each.sizes.size() && map[d] == Index::dimension(row)) reduced.insert(row);
        if (d < each.sizes.size() && all.contains(row) && map[d].uses(row)) keeps = false;
      }
    const bool same = std::ranges::all_of(kernel.members, [&](const Member& m) {
      return m.across.empty() || std::set<int>(m.across.begin(), m.across.end()) == all;
    });
    if (keeps && same && reduced == all) return map;
  }
  return std::nullopt;
}

}  // namespace nereid::compiler
