#include "nereid/compiler/codegen/tiles/tile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/helpers.h"

namespace nereid::compiler {

TileText::TileText(Graph& of, const Fused& with, const TileKernel& tiles, const std::string& name,
                   const KernelChoice& chosen, const Target& target)
    : graph(of),
      fused(with),
      tile(cut(of, tiles, chosen, target)),
      choice(chosen),
      kernel(tiles),
      rows(tiles.row_count()),
      columns(tiles.column_count()),
      has_columns(!tiles.columns.empty()),
      write(of, names,
            {{has_columns ? "row" : "i", rows, ends_with_blocks(rows, tile.rows, chosen.masked), is_wide()},
             {"column", columns, ends_with_blocks(columns, tile.columns, chosen.masked)}}) {
  out.name = name;
  names.taken.insert({"start", "tiles"});
  const Extents& extents = write.extents();
  const std::vector<Index> by = flat_dimensions();
  for (const Member& member : kernel.members) {
    Member flat = member;
    flat.body = graph.exprs.substitute(member.body, by, extents);
    for (Index& index : flat.at) index = substitute(index, by, extents);
    members.push_back(std::move(flat));
  }
}

std::vector<Index> TileText::flat_dimensions() const {
  const Extents& extents = write.extents();
  std::vector<Index> by = unravel(Index::dimension(kRow), kernel.rows, extents);
  for (auto& index : unravel(Index::dimension(kColumn), kernel.columns, extents))
    by.push_back(std::move(index));
  return by;
}

std::string TileText::reduced(const Member& member, const std::string& text) {
  return reduced_text(member.reduction, text, axis(), out.helpers, grows(member)) + keepdims();
}

std::string TileText::masked(const Member& member, const std::string& text) const {
  return ends_with_blocks(columns, tile.columns, choice.masked)
             ? text
             : fmt::format("tl.where(column < {}, {}, {})", hole(columns), text, identity(member));
}

void TileText::keep_result(const Member& member, const std::string& text) {
  const TensorId id = node_of(member).out;
  write.set_result(id, text);
  if (!fused.stored[static_cast<size_t>(id)]) return;
  const Index at = write.address(id, member.at);
  std::vector<int> dimensions{kRow};
  if (member.whole) dimensions.push_back(kColumn);
  std::string place = write.place(names.pointer(graph, id), at);
  if (has_columns && tile.rows > 1 && !member.whole && !at.uses(kRow))
    place += " + tl.zeros([BLOCK_ROWS, 1], tl.int32)";
  const bool once = tile.parts > 1 && !member.whole;  // all programs of the row have it
  const std::string where = write.mask_of(dimensions, {write.beyond(id, member.at), once ? "part == 0" : ""});
  write.line(where.empty() ? fmt::format("tl.store({}, {})", place, text)
                           : fmt::format("tl.store({}, {}, mask={})", place, text, where));
}

void TileText::keep_scanned(const Member& member, const std::string& text) {
  const DType type = compute_type(graph.tensors[static_cast<size_t>(node_of(member).out)].type);
  const bool wider = type != type_of(member);
  keep_result(member, write.let(identifier(node_of(member).name),
                                wider ? fmt::format("({}).to({})", text, type_text(type)) : text));
}

std::string TileText::wide(const Member& member) {
  const std::string element = write.value(member.body);
  return uses_column(member.body)
             ? element
             : fmt::format("tl.zeros({}, {}) + {}", block_shape(), type_text(type_of(member)), element);
}

std::string TileText::pair(const Member& member, const std::string& block) const {
  return fmt::format("({}, tl.zeros({}, tl.int32) + column)", masked(member, block), block_shape());
}

void TileText::write_earlier_steps(size_t m) {
  const Exprs& exprs = graph.exprs;
  const int step = node_of(members[m]).word().step;
  std::set<TensorId> to_come;
  for (size_t later = m; later < members.size(); ++later) to_come.insert(node_of(members[later]).out);
  std::vector<ExprId> results;
  for (size_t later = m + 1; later < members.size(); ++later)
    for (const ExprId id : exprs.below(members[later].body))
      if (exprs[id].kind == Expr::Kind::kApply && exprs.step_of(id) >= 0 && exprs.step_of(id) < step &&
          std::ranges::none_of(exprs.below(id), [&](ExprId under) {
            return exprs[under].kind == Expr::Kind::kLoad && to_come.contains(exprs[under].tensor);
          }))
        results.push_back(id);
  std::ranges::stable_sort(results, {}, [&](ExprId id) { return exprs.step_of(id); });
  for (const ExprId id : results) write.value(id);
}

std::string TileText::helper(const Member& member) {
  std::string name = combine_name(member.reduction, member.scan);  // of places and extrema
  if (member.reduction == Reduction::kSum || member.reduction == Reduction::kProd) return name;
  if (std::ranges::find(out.helpers, name) == out.helpers.end()) out.helpers.push_back(name);
  return name;
}

}  // namespace nereid::compiler
