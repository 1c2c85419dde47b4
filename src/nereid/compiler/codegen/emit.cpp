#include "nereid/compiler/codegen/emit.h"

#include <fmt/format.h>

#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/codegen/tiles/column_loops.h"
#include "nereid/compiler/codegen/tiles/shared_rows.h"
#include "nereid/compiler/codegen/tiles/tile_text.h"

namespace nereid::compiler {
namespace {

// The program's row or rows, or of a kernel without columns its elements.
void write_rows(TileText& t) {
  const std::string all = t.is_wide() ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
  const bool shared = t.tile.column_tiles > 1;
  const std::string program = shared ? fmt::format("({} // tiles)", all) : all;
  if (shared) t.write.line(fmt::format("tiles = triton.cdiv({}, BLOCK_COLUMNS)", hole(t.columns)));
  const auto start = [&](const std::string& line, const char* block) {
    t.write.line(line);
    t.names.starts.emplace_back(line, fmt::format("{} * {}", program, block));
  };
  if (!t.has_columns)
    start(fmt::format("i = {1}{0} * BLOCK + tl.arange(0, BLOCK){2}", program,
                      t.tile.one_a_thread ? "tl.max_contiguous(" : "", t.tile.one_a_thread ? ", 1)" : ""),
          "BLOCK");
  else if (t.tile.rows == 1)
    t.write.line(fmt::format("row = {}", program));
  else
    start(fmt::format("row = {} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]", program), "BLOCK_ROWS");
}

void write_one_block(TileText& t) {
  if (t.tile.column_tiles > 1)
    t.write.line(fmt::format("column = {}tl.program_id(0) % tiles * BLOCK_COLUMNS + {}{}",
                             t.tile.one_a_thread ? "tl.max_contiguous(" : "", t.column_range(),
                             t.tile.one_a_thread ? ", 1)" : ""));
  else if (t.has_columns)
    t.write.line(fmt::format("column = {}", t.column_range()));
  for (size_t m = 0; m < t.members.size(); ++m) {
    const Member& member = t.members[m];
    t.write_earlier_steps(m);
    if (member.reduction == Reduction::kNone) {
      t.keep_result(member, t.write.value(member.body));
      continue;
    }
    const std::string block = t.wide(member), wish = identifier(t.node_of(member).name);
    if (is_place(member.reduction)) {
      const std::string name = t.names.fresh(wish), best = t.names.fresh(wish + "_of");
      const std::string combine = t.helper(member);
      t.write.line(member.scan ? fmt::format("{}, {} = tl.associative_scan({}, {}, {})", best, name,
                                             t.pair(member, block), t.axis(), combine)
                               : fmt::format("{}, {} = tl.reduce({}, {}, {})", best, name,
                                             t.pair(member, block), t.axis(), combine));
      t.keep_result(
          member, t.write.let(wish, fmt::format("{}{}.to(tl.int64)", name, member.scan ? "" : t.keepdims())));
      continue;
    }
    if (member.scan)
      t.keep_scanned(member, scanned_text(member.reduction, t.masked(member, block), t.axis(),
                                          t.type_of(member), t.out.helpers));
    else
      t.keep_result(member, t.write.let(wish, t.reduced(member, t.masked(member, block))));
  }
}

// The grid of a kernel none of whose rows is shared, and the sizes of its blocks.
void set_launch(TileText& t) {
  if (!t.has_columns) {
    t.out.constants.push_back({"BLOCK", t.tile.rows});
  } else {
    if (t.tile.rows > 1) t.out.constants.push_back({"BLOCK_ROWS", t.tile.rows});
    const bool whole =
        !t.tile.looped && t.tile.column_tiles == 1 && t.tile.columns == power_of_two(t.columns);
    t.out.constants.push_back({"BLOCK_COLUMNS", t.tile.columns, "", whole ? t.columns.text() : ""});
  }
  t.out.programs = (t.rows + t.tile.rows - 1) / t.tile.rows * t.tile.column_tiles;
  t.out.grid = product_text({blocks_text(t.rows, t.tile.rows), t.shared_text()});
  t.out.num_warps = t.tile.warps;
  t.out.choice = {
      .rows = t.tile.rows, .columns = t.has_columns ? t.tile.columns : 0, .warps = t.out.num_warps};
}

Result<KernelText> emit_tile(TileText& t) {
  set_launch(t);
  if (t.tile.parts > 1) {
    write_shared_rows(t);
  } else {
    write_rows(t);
    if (t.tile.looped)
      NEREID_TRY_STATUS(write_column_loops(t));
    else
      write_one_block(t);
  }
  close_kernel(t.out, t.graph, t.names, t.kernel, t.write.take_lines());
  return std::move(t.out);
}

}  // namespace

Result<KernelText> emit(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
                        const KernelChoice& choice, const Target& target) {
  const Node& first = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  if (first.flash) return emit_flash(graph, fused, kernel, name, choice, target);
  if (first.recurrence) return emit_recurrence(graph, kernel, name, choice, target);
  if (const auto contraction = as_contraction(graph, kernel))
    return emit_contraction(graph, fused, kernel, *contraction, name, choice, target);
  TileText tile(graph, fused, kernel, name, choice, target);
  return emit_tile(tile);
}

}  // namespace nereid::compiler
