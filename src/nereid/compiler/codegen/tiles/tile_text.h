// The text of one kernel of maps, reductions and scans, whatever the order in which its columns are gone
// over: elements, masks, reductions and stores of its members.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/tile.h"

namespace nereid::compiler {

inline constexpr int kRow = 0, kColumn = 1;  // the two dimensions that a kernel's indices are written in

struct TileText {
  TileText(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
           const KernelChoice& choice, const Target& target);
  TileText(const TileText&) = delete;

  bool is_wide() const { return rows * columns >= (int64_t{1} << 31); }
  const Node& node_of(const Member& member) const { return graph.nodes[static_cast<size_t>(member.node)]; }
  bool uses_column(ExprId id) const { return has_columns && graph.exprs.uses(id, kColumn); }
  std::string shared_text() const { return tile.column_tiles > 1 ? blocks_text(columns, tile.columns) : ""; }
  std::string block_shape() const {
    return tile.rows == 1 ? "[BLOCK_COLUMNS]" : "[BLOCK_ROWS, BLOCK_COLUMNS]";
  }
  std::string column_range() const {
    return tile.rows == 1 ? "tl.arange(0, BLOCK_COLUMNS)" : "tl.arange(0, BLOCK_COLUMNS)[None, :]";
  }
  DType type_of(const Member& member) const { return graph.exprs[member.body].type; }
  std::string identity(const Member& member) const {
    return identity_text(member.reduction, type_of(member));
  }
  bool grows(const Member& member) const { return member.scan && trace::is_floating(type_of(member)); }
  const char* keepdims() const { return tile.rows == 1 ? "" : "[:, None]"; }
  int axis() const { return tile.rows == 1 ? 0 : 1; }
  std::string row_shape() const { return tile.rows == 1 ? "[]" : "[BLOCK_ROWS, 1]"; }

  // The kernel's dimensions, rows and columns, as the two dimensions row and column.
  std::vector<Index> flat_dimensions() const;
  std::string reduced(const Member& member, const std::string& text);
  // What is beyond the last column does not count.
  std::string masked(const Member& member, const std::string& text) const;
  void keep_result(const Member& member, const std::string& text);
  // A scan may be computed in a wider type than its result is read in.
  void keep_scanned(const Member& member, const std::string& text);
  // As wide as the block, even where it is the same everywhere.
  std::string wide(const Member& member);
  // A pair of an element and its column, put together with others by a function of two pairs.
  std::string pair(const Member& member, const std::string& block) const;
  // What later members do of steps before this one's, as far as no result that it reads is still to come.
  void write_earlier_steps(size_t m);
  // The name of the function that combines two elements, or two pairs of an element and its place.
  std::string helper(const Member& member);

  Graph& graph;
  const Fused& fused;
  const Tile tile;
  const KernelChoice choice;
  const TileKernel& kernel;
  const Size rows, columns;
  const bool has_columns;
  KernelNames names{};
  ExprWriter write;
  std::vector<Member> members{};  // of the kernel, over flat_dimensions()
  KernelText out{};
};

}  // namespace nereid::compiler
