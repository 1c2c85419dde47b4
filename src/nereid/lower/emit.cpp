#include "nereid/lower/emit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "nereid/lower/emit_expr.h"

namespace nereid::lower {
namespace {

constexpr int64_t kMostColumns = 8192;  // of one block; a longer row is gone over in a loop
constexpr int64_t kTile = 2048;         // elements of a block
constexpr int kRow = 0, kColumn = 1;    // the two dimensions that a kernel's indices are written in

// Votes for rows (positive) or columns lying beside each other in memory.
int rows_are_inner(const Graph& graph, const TileKernel& kernel) {
  int votes = 0;
  const auto rank = static_cast<int>(kernel.rows.size());
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body)) {
      const Expr& expr = graph.exprs[id];
      if (expr.kind != Expr::Kind::kLoad) continue;
      Index address;
      for (size_t d = 0; d < expr.at.size(); ++d)
        address = address + expr.at[d] * graph.tensors[static_cast<size_t>(expr.tensor)].strides[d];
      const auto rows = rank == 0 ? std::nullopt : address.stride(rank - 1);
      const auto columns = address.stride(rank + static_cast<int>(kernel.columns.size()) - 1);
      votes += (rows == 1 && columns != 1 ? 1 : 0) - (columns == 1 ? 1 : 0);
    }
  return votes;
}

struct Tile {
  int64_t rows = 1, columns = 1;  // of a block
  bool looped = false;            // a program goes over its columns in several blocks

  Tile(const Graph& graph, const TileKernel& kernel) {
    const int64_t all_rows = kernel.row_count(), all_columns = kernel.column_count();
    if (kernel.columns.empty()) {
      rows = std::min<int64_t>(power_of_two(all_rows), 1024);
      return;
    }
    if (rows_are_inner(graph, kernel) > 0) {
      rows = std::min<int64_t>(power_of_two(all_rows), 32);
      columns = std::min<int64_t>(power_of_two(all_columns), 64);
    } else {
      columns =
          std::min<int64_t>(power_of_two(all_columns), all_columns > kMostColumns ? 2048 : kMostColumns);
      rows = std::clamp<int64_t>(kTile / columns, 1, power_of_two(all_rows));
    }
    looped = columns < all_columns;
  }
};

class TileEmitter {
 public:
  TileEmitter(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name)
      : graph_(graph),
        fused_(fused),
        tile_(graph, kernel),
        rows_(kernel.row_count()),
        columns_(kernel.column_count()),
        has_columns_(!kernel.columns.empty()),
        write_(graph, names_,
               {{has_columns_ ? "row" : "i", rows_, tile_.rows == 1 || rows_ % tile_.rows == 0},
                {"column", columns_, columns_ % tile_.columns == 0}}) {
    out_.name = name;
    names_.taken.insert("start");
    rewrite(kernel);
  }

  Result<KernelText> run() {
    const bool wide = rows_ * columns_ >= (int64_t{1} << 31);
    const char* program = wide ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    if (!has_columns_)
      write_.line(fmt::format("i = {} * BLOCK + tl.arange(0, BLOCK)", program));
    else if (tile_.rows == 1)
      write_.line(fmt::format("row = {}", program));
    else
      write_.line(fmt::format("row = {} * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]", program));
    if (tile_.looped)
      NEREID_TRY_STATUS(in_loops());
    else
      in_one_block();
    finish();
    return std::move(out_);
  }

 private:
  // Every body in the two dimensions row and column.
  void rewrite(const TileKernel& kernel) {
    const Extents& extents = write_.extents();
    std::vector<Index> by = unravel(Index::dimension(kRow), kernel.rows, extents);
    for (auto& index : unravel(Index::dimension(kColumn), kernel.columns, extents))
      by.push_back(std::move(index));
    for (const Member& member : kernel.members) {
      Member flat = member;
      flat.body = graph_.exprs.substitute(member.body, by, extents);
      for (Index& index : flat.at) index = substitute(index, by, extents);
      members_.push_back(std::move(flat));
    }
  }

  const Node& node_of(const Member& member) const { return graph_.nodes[static_cast<size_t>(member.node)]; }
  bool uses_column(ExprId id) const { return has_columns_ && graph_.exprs.uses(id, kColumn); }
  std::string block_shape() const {
    return tile_.rows == 1 ? "[BLOCK_COLUMNS]" : "[BLOCK_ROWS, BLOCK_COLUMNS]";
  }
  std::string column_range() const {
    return tile_.rows == 1 ? "tl.arange(0, BLOCK_COLUMNS)" : "tl.arange(0, BLOCK_COLUMNS)[None, :]";
  }
  DType type_of(const Member& member) const { return graph_.exprs[member.body].type; }
  std::string nothing(const Member& member) const {
    return constant_text(identity(member.reduction), type_of(member));
  }

  std::string reduced(const Member& member, const std::string& text) {
    const char* keep = tile_.rows == 1 ? "" : "[:, None]";
    const int axis = tile_.rows == 1 ? 0 : 1;
    const auto with = [&](const char* helper) {
      if (std::ranges::find(out_.helpers, helper) == out_.helpers.end()) out_.helpers.emplace_back(helper);
      return fmt::format("tl.reduce({}, {}, {}){}", text, axis, helper, keep);
    };
    switch (member.reduction) {
      case Reduction::kSum:
        return fmt::format("tl.sum({}, axis={}){}", text, axis, keep);
      case Reduction::kProd:
        return with("product_of");
      case Reduction::kMax:
        return with("larger_of");
      case Reduction::kMin:
        return with("smaller_of");
      case Reduction::kArgMax:
        return fmt::format("tl.argmax({}, axis={}){}", text, axis, keep);
      case Reduction::kArgMin:
        return fmt::format("tl.argmin({}, axis={}){}", text, axis, keep);
      default:
        return text;
    }
  }

  static std::string accumulated(Reduction reduction, const std::string& sum, const std::string& now) {
    switch (reduction) {
      case Reduction::kProd:
        return fmt::format("{} * {}", sum, now);
      case Reduction::kMax:
        return fmt::format("tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)", sum, now);
      case Reduction::kMin:
        return fmt::format("tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)", sum, now);
      default:
        return fmt::format("{} + {}", sum, now);
    }
  }

  // What lies beyond the last column does not count.
  std::string masked(const Member& member, const std::string& text) const {
    return columns_ % tile_.columns == 0
               ? text
               : fmt::format("tl.where(column < {}, {}, {})", columns_, text, nothing(member));
  }

  void keep_result(const Member& member, const std::string& text) {
    const TensorId id = node_of(member).out;
    if (!member.whole) write_.set_result(id, text);
    if (!fused_.stored[static_cast<size_t>(id)]) return;
    const Index at = write_.address(id, member.at);
    std::vector<int> dimensions{kRow};
    if (member.whole) dimensions.push_back(kColumn);
    std::string place = write_.place(names_.pointer(graph_, id), at);
    if (has_columns_ && tile_.rows > 1 && !member.whole && !at.uses(kRow))
      place += " + tl.zeros([BLOCK_ROWS, 1], tl.int32)";
    const std::string where = write_.mask_of(dimensions);
    write_.line(where.empty() ? fmt::format("tl.store({}, {})", place, text)
                              : fmt::format("tl.store({}, {}, mask={})", place, text, where));
  }

  void in_one_block() {
    if (has_columns_) write_.line(fmt::format("column = {}", column_range()));
    for (const Member& member : members_) {
      const std::string element = write_.value(member.body);
      if (member.reduction == Reduction::kNone) {
        keep_result(member, element);
        continue;
      }
      // As wide as the block, even where it is the same everywhere.
      const std::string block = uses_column(member.body) ? element
                                                         : fmt::format("tl.zeros({}, {}) + {}", block_shape(),
                                                                       type_text(type_of(member)), element);
      keep_result(member,
                  write_.let(identifier(node_of(member).name), reduced(member, masked(member, block))));
    }
  }

  // Members that need no result of each other share a loop over the columns.
  Status in_loops() {
    std::vector<bool> done(members_.size(), false);
    for (size_t left = members_.size(); left > 0;) {
      std::vector<size_t> of_rows, over_columns;
      for (size_t m = 0; m < members_.size(); ++m)
        if (!done[m] && ready(m, done))
          (members_[m].reduction == Reduction::kNone && !members_[m].whole ? of_rows : over_columns)
              .push_back(m);
      if (of_rows.empty() && over_columns.empty())
        return input_error("{}: members wait for each other", out_.name);
      for (const size_t m : of_rows) keep_result(members_[m], write_.value(members_[m].body));
      if (of_rows.empty()) NEREID_TRY_STATUS(one_loop(over_columns));
      const auto& finished = of_rows.empty() ? over_columns : of_rows;
      for (const size_t m : finished) done[m] = true;
      left -= finished.size();
    }
    return ok_status();
  }

  bool ready(size_t m, const std::vector<bool>& done) {
    for (const TensorId read : graph_.reads(node_of(members_[m])))
      for (size_t other = 0; other < members_.size(); ++other)
        if (node_of(members_[other]).out == read && !done[other]) return false;
    return true;
  }

  Status one_loop(const std::vector<size_t>& turn) {
    std::vector<std::string> sums;
    for (const size_t m : turn) {
      const Member& member = members_[m];
      if (member.reduction == Reduction::kArgMax || member.reduction == Reduction::kArgMin)
        return input_error("{}: the position of an extremum over {} elements", out_.name, columns_);
      sums.push_back(member.reduction == Reduction::kNone
                         ? ""
                         : write_.let(identifier(node_of(member).name) + "_of_block",
                                      fmt::format("tl.full({}, {}, {})", block_shape(), nothing(member),
                                                  type_text(type_of(member)))));
    }
    write_.begin_loop(kColumn);
    write_.line(fmt::format("column = start + {}", column_range()));
    for (size_t t = 0; t < turn.size(); ++t) {
      const Member& member = members_[turn[t]];
      const std::string element = write_.value(member.body);
      if (member.reduction == Reduction::kNone)
        keep_result(member, element);
      else
        write_.line(
            fmt::format("{} = {}", sums[t], accumulated(member.reduction, sums[t], masked(member, element))));
    }
    write_.end_loop(fmt::format("for start in range(0, {}, BLOCK_COLUMNS):", columns_));
    for (size_t t = 0; t < turn.size(); ++t) {
      const Member& member = members_[turn[t]];
      if (member.reduction == Reduction::kNone) continue;
      keep_result(member, write_.let(identifier(node_of(member).name), reduced(member, sums[t])));
    }
    return ok_status();
  }

  void finish() {
    if (!has_columns_) {
      out_.constants.emplace_back("BLOCK", tile_.rows);
    } else {
      if (tile_.rows > 1) out_.constants.emplace_back("BLOCK_ROWS", tile_.rows);
      out_.constants.emplace_back("BLOCK_COLUMNS", tile_.columns);
    }
    out_.programs = (rows_ + tile_.rows - 1) / tile_.rows;
    out_.num_warps = tile_.rows * tile_.columns >= 4096 ? 8 : 4;
    close_kernel(out_, graph_, names_, members_, write_.take_lines());
  }

  Graph& graph_;
  const Fused& fused_;
  const Tile tile_;
  const int64_t rows_, columns_;
  const bool has_columns_;
  KernelNames names_;
  ExprWriter write_;
  std::vector<Member> members_;
  KernelText out_;
};

}  // namespace

void close_kernel(KernelText& kernel, const Graph& graph, const KernelNames& names,
                  const std::vector<Member>& members, const std::vector<std::string>& lines) {
  std::vector<std::string> parameters, words;
  for (const auto& [name, tensor] : names.pointers) {
    kernel.pointers.push_back({name, tensor});
    parameters.push_back(name);
  }
  for (const auto& constant : kernel.constants) parameters.push_back(constant.first + ": tl.constexpr");
  for (const Member& member : members) {
    const std::string& word = graph.nodes[static_cast<size_t>(member.node)].name;
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  kernel.comment = fmt::format("{}", fmt::join(words, ", "));
  kernel.text = fmt::format("@triton.jit\ndef {}({}):\n    # {}\n", kernel.name, fmt::join(parameters, ", "),
                            kernel.comment);
  for (const auto& line : lines) kernel.text += "    " + line + "\n";
}

Result<KernelText> emit(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name) {
  if (const auto contraction = as_contraction(graph, kernel))
    return emit_contraction(graph, fused, kernel, *contraction, name);
  return TileEmitter(graph, fused, kernel, name).run();
}

std::string helper_text(const std::string& name) {
  const std::string head = fmt::format("@triton.jit\ndef {}(a, b):\n    ", name);
  if (name == "product_of") return head + "return a * b\n";
  const char* which = name == "larger_of" ? "maximum" : "minimum";
  return head + fmt::format("return tl.{}(a, b, propagate_nan=tl.PropagateNan.ALL)\n", which);
}

}  // namespace nereid::lower
