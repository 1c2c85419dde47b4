#include "nereid/compiler/codegen/emit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/transforms/moments.h"

namespace nereid::compiler {
namespace {

constexpr int kRow = 0, kColumn = 1;  // the two dimensions that a kernel's indices are written in

class TileEmitter {
 public:
  TileEmitter(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
              const KernelChoice& choice, const Target& target)
      : graph_(graph),
        fused_(fused),
        tile_(cut(graph, kernel, choice, target)),
        choice_(choice),
        kernel_(kernel),
        rows_(kernel.row_count()),
        columns_(kernel.column_count()),
        has_columns_(!kernel.columns.empty()),
        write_(graph, names_,
               {{has_columns_ ? "row" : "i", rows_, ends_with_blocks(rows_, tile_.rows, choice.masked),
                 is_wide()},
                {"column", columns_, ends_with_blocks(columns_, tile_.columns, choice.masked)}}) {
    out_.name = name;
    names_.taken.insert({"start", "tiles"});
    rewrite(kernel);
  }

  Result<KernelText> run() {
    if (tile_.parts > 1) {
      in_parts();
      finish();
      return std::move(out_);
    }
    const bool wide = is_wide();
    const std::string all = wide ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    const bool shared = tile_.column_tiles > 1;
    const std::string program = shared ? fmt::format("({} // tiles)", all) : all;
    if (shared) write_.line(fmt::format("tiles = triton.cdiv({}, BLOCK_COLUMNS)", hole(columns_)));
    if (!has_columns_)
      write_.line(fmt::format("i = {1}{0} * BLOCK + tl.arange(0, BLOCK){2}", program,
                              tile_.one_a_thread ? "tl.max_contiguous(" : "",
                              tile_.one_a_thread ? ", 1)" : ""));
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
    if (tile_.parts == 1) return;
    std::vector<const Node*> nodes;
    for (const Member& member : members_) nodes.push_back(&node_of(member));
    moments_ = moments_in(graph_, nodes);
    for (Moments& each : moments_) each.element = graph_.exprs.substitute(each.element, by, extents);
  }

  bool is_wide() const { return rows_ * columns_ >= (int64_t{1} << 31); }
  const Node& node_of(const Member& member) const { return graph_.nodes[static_cast<size_t>(member.node)]; }
  bool uses_column(ExprId id) const { return has_columns_ && graph_.exprs.uses(id, kColumn); }
  std::string shared_text() const {
    return tile_.column_tiles > 1 ? blocks_text(columns_, tile_.columns) : "";
  }
  std::string block_shape() const {
    return tile_.rows == 1 ? "[BLOCK_COLUMNS]" : "[BLOCK_ROWS, BLOCK_COLUMNS]";
  }
  std::string column_range() const {
    return tile_.rows == 1 ? "tl.arange(0, BLOCK_COLUMNS)" : "tl.arange(0, BLOCK_COLUMNS)[None, :]";
  }
  DType type_of(const Member& member) const { return graph_.exprs[member.body].type; }
  std::string nothing(const Member& member) const { return nothing_text(member.reduction, type_of(member)); }
  bool grows(const Member& member) const { return member.scan && trace::is_floating(type_of(member)); }
  const char* keep() const { return tile_.rows == 1 ? "" : "[:, None]"; }
  int axis() const { return tile_.rows == 1 ? 0 : 1; }
  std::string row_shape() const { return tile_.rows == 1 ? "[]" : "[BLOCK_ROWS, 1]"; }

  std::string reduced(const Member& member, const std::string& text) {
    return reduced_text(member.reduction, text, axis(), out_.helpers, grows(member)) + keep();
  }

  // What is beyond the last column does not count.
  std::string masked(const Member& member, const std::string& text) const {
    return ends_with_blocks(columns_, tile_.columns, choice_.masked)
               ? text
               : fmt::format("tl.where(column < {}, {}, {})", hole(columns_), text, nothing(member));
  }

  void keep_result(const Member& member, const std::string& text) {
    const TensorId id = node_of(member).out;
    write_.set_result(id, text);
    if (!fused_.stored[static_cast<size_t>(id)]) return;
    const Index at = write_.address(id, member.at);
    std::vector<int> dimensions{kRow};
    if (member.whole) dimensions.push_back(kColumn);
    std::string place = write_.place(names_.pointer(graph_, id), at);
    if (has_columns_ && tile_.rows > 1 && !member.whole && !at.uses(kRow))
      place += " + tl.zeros([BLOCK_ROWS, 1], tl.int32)";
    const bool once = tile_.parts > 1 && !member.whole;  // all programs of the row have it
    const std::string where =
        write_.mask_of(dimensions, {write_.beyond(id, member.at), once ? "part == 0" : ""});
    write_.line(where.empty() ? fmt::format("tl.store({}, {})", place, text)
                              : fmt::format("tl.store({}, {}, mask={})", place, text, where));
  }

  // A scan may be computed in a wider type than its result is read in.
  void keep_scanned(const Member& member, const std::string& text) {
    const DType type = compute_type(graph_.tensors[static_cast<size_t>(node_of(member).out)].type);
    const bool wider = type != type_of(member);
    keep_result(member, write_.let(identifier(node_of(member).name),
                                   wider ? fmt::format("({}).to({})", text, type_text(type)) : text));
  }

  // As wide as the block, even where it is the same everywhere.
  std::string wide(const Member& member) {
    const std::string element = write_.value(member.body);
    return uses_column(member.body)
               ? element
               : fmt::format("tl.zeros({}, {}) + {}", block_shape(), type_text(type_of(member)), element);
  }

  // A pair of an element and its column, put together with others by a function of two pairs.
  std::string pair(const Member& member, const std::string& block) const {
    return fmt::format("({}, tl.zeros({}, tl.int32) + column)", masked(member, block), block_shape());
  }

  void in_one_block() {
    if (tile_.column_tiles > 1)
      write_.line(fmt::format("column = {}tl.program_id(0) % tiles * BLOCK_COLUMNS + {}{}",
                              tile_.one_a_thread ? "tl.max_contiguous(" : "", column_range(),
                              tile_.one_a_thread ? ", 1)" : ""));
    else if (has_columns_)
      write_.line(fmt::format("column = {}", column_range()));
    for (size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      write_earlier_steps(m);
      if (member.reduction == Reduction::kNone) {
        keep_result(member, write_.value(member.body));
        continue;
      }
      const std::string block = wide(member), wish = identifier(node_of(member).name);
      if (is_place(member.reduction)) {
        const std::string name = names_.fresh(wish), best = names_.fresh(wish + "_of");
        const std::string combine = helper(member);
        write_.line(member.scan ? fmt::format("{}, {} = tl.associative_scan({}, {}, {})", best, name,
                                              pair(member, block), axis(), combine)
                                : fmt::format("{}, {} = tl.reduce({}, {}, {})", best, name,
                                              pair(member, block), axis(), combine));
        keep_result(member,
                    write_.let(wish, fmt::format("{}{}.to(tl.int64)", name, member.scan ? "" : keep())));
        continue;
      }
      if (member.scan)
        keep_scanned(member, scanned_text(member.reduction, masked(member, block), axis(), type_of(member),
                                          out_.helpers));
      else
        keep_result(member, write_.let(wish, reduced(member, masked(member, block))));
    }
  }

  // The programs of a row hold a part of it each, and exchange what they reduce it to.
  void in_parts() {
    names_.taken.insert({"part", "parts", "turn"});
    write_.line(fmt::format("part = tl.program_id(0) % {}", tile_.parts));
    write_.line(fmt::format("column = part * BLOCK_COLUMNS + {}", column_range()));
    write_.line(fmt::format("parts = tl.arange(0, {})", power_of_two(tile_.parts)));
    if (!moments_.empty()) write_elements_of_parts();
    write_.begin_loop({kRow, kColumn});
    if (is_wide()) write_.line("row = turn.to(tl.int64)");
    std::vector<Partial> partials;
    for (size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      const Moments* moments = moments_of(member);
      if (moments != nullptr && node_of(member).out != moments->rough) continue;  // made with the rough mean
      const auto reads = graph_.reads(node_of(member));
      if (std::ranges::any_of(partials, [&](const Partial& partial) {
            return std::ranges::any_of(made_of(partial), [&](TensorId made) {
              return std::ranges::find(reads, made) != reads.end();
            });
          }))
        exchange(partials);
      if (partials.empty()) write_earlier_steps(m);
      if (member.reduction == Reduction::kNone) {
        keep_result(member, write_.value(member.body));
      } else if (moments != nullptr) {
        add_moments(member, *moments, partials);
      } else {
        const std::string block = masked(member, wide(member)), name = identifier(node_of(member).name);
        partials.push_back(
            {&member, name,
             write_.let(name + "_of_part", reduced_text(member.reduction, block, 0, out_.helpers))});
      }
    }
    exchange(partials);
    write_.end_loop(fmt::format("for {} in range(tl.program_id(0) // {}, {}, {}):",
                                is_wide() ? "turn" : "row", tile_.parts, hole(rows_), tile_.groups));
  }

  // What a program reduced its part of a row to.
  struct Partial {
    const Member* member;
    std::string name, text;
    const Moments* moments =
        nullptr;  // the mean of the part; of the partial after it: the squares about that
  };

  const Moments* moments_of(const Member& member) const {
    const TensorId out = node_of(member).out;
    for (const Moments& each : moments_)
      if (out == each.rough || out == each.rest || out == each.squares) return &each;
    return nullptr;
  }
  const Member& maker_of(TensorId out) const {
    return *std::ranges::find_if(members_, [&](const Member& member) { return node_of(member).out == out; });
  }
  std::vector<TensorId> made_of(const Partial& partial) const {
    if (partial.moments == nullptr) return {node_of(*partial.member).out};
    return {partial.moments->rough, partial.moments->rest, partial.moments->squares};
  }

  void write_elements_of_parts() {
    names_.taken.insert({"share_of_part", "elements_of_parts"});
    const std::string count = hole(columns_, Size::Place::kTerm);
    write_.line(
        fmt::format("share_of_part = 1.0 / tl.minimum({} - part * BLOCK_COLUMNS, BLOCK_COLUMNS)", count));
    write_.line(
        fmt::format("elements_of_parts = tl.minimum(tl.maximum({} - parts * BLOCK_COLUMNS, 0), "
                    "BLOCK_COLUMNS).to(tl.float32)",
                    count));
  }

  // The part's own mean, and the squares of the distances from that.
  void add_moments(const Member& member, const Moments& moments, std::vector<Partial>& partials) {
    const std::string x = write_.value(moments.element), divisor = write_.value(moments.divisor);
    const auto add = [&](TensorId out, const std::string& text) {
      const std::string name = identifier(node_of(maker_of(out)).name);
      const std::string sum = fmt::format("tl.sum({}, axis=0)", masked(member, text));
      partials.push_back({&member, name, write_.let(name + "_of_part", sum), &moments});
    };
    add(moments.rough, fmt::format("{} * share_of_part", x));
    const std::string distance = write_.let("distance", fmt::format("{} - {}", x, partials.back().text));
    add(moments.squares, fmt::format("{} * {} * {}", distance, divisor, distance));
  }

  // Those of the row, of its parts' means and squares.
  void finish_moments(const Moments& moments, const std::vector<std::string>& parts) {
    const auto keep = [&](TensorId out, const std::string& text) {
      const std::string name =
          write_.let(identifier(node_of(maker_of(out)).name), fmt::format("tl.sum({}, axis=0)", text));
      keep_result(maker_of(out), name);
      return name;
    };
    const std::string share = write_.value(moments.share), divisor = write_.value(moments.divisor);
    const std::string mean =
        keep(moments.rough, fmt::format("{} * (elements_of_parts * {})", parts[0], share));
    const std::string distance = write_.let("distance_of_parts", fmt::format("{} - {}", parts[0], mean));
    keep(moments.rest, fmt::format("{} * (elements_of_parts * {})", distance, share));
    keep(moments.squares,
         fmt::format("{} + {} * (elements_of_parts * {}) * {}", parts[1], distance, divisor, distance));
  }

  // All partial results of the row, when all of its programs have stored theirs.
  void exchange(std::vector<Partial>& partials) {
    if (partials.empty()) return;
    const int64_t first = exchanged_;
    exchanged_ += static_cast<int64_t>(partials.size());
    const auto place = [&](size_t i) {
      const Size before = (first + static_cast<int64_t>(i)) * rows_;
      return fmt::format("{} + {} * {}", shared_memory(parts_, "parts", DType::kF32),
                         before == 0 ? "row" : fmt::format("({} + row)", hole(before, Size::Place::kTerm)),
                         tile_.parts);
    };
    for (size_t i = 0; i < partials.size(); ++i)
      write_.line(fmt::format("tl.store({} + part, {})", place(i), partials[i].text));
    const std::string counter =
        fmt::format("{} + row{}", shared_memory(arrived_, "arrived", DType::kI32),
                    first == 0 ? "" : fmt::format(" + {}", hole(first * rows_, Size::Place::kTerm)));
    write_.line(fmt::format("tl.atomic_add({}, 1, sem=\"release\")", counter));
    write_.line(fmt::format("while tl.atomic_add({}, 0, sem=\"acquire\") < {}:", counter, tile_.parts));
    write_.line("    pass");
    std::vector<std::string> of_moments;
    for (size_t i = 0; i < partials.size(); ++i) {
      const auto& [of, name, text, moments] = partials[i];
      const bool all = power_of_two(tile_.parts) == tile_.parts;
      const std::string where =
          all ? "" : fmt::format(", mask=parts < {}, other={}", tile_.parts, nothing(*of));
      const std::string block = write_.let(
          name + "_of_parts", fmt::format("tl.load({} + parts{}, cache_modifier=\".cg\")", place(i), where));
      if (moments == nullptr) {
        keep_result(*of, write_.let(name, reduced_text(of->reduction, block, 0, out_.helpers)));
        continue;
      }
      of_moments.push_back(block);
      if (of_moments.size() == 2) finish_moments(*moments, std::exchange(of_moments, {}));
    }
    partials.clear();
  }

  // Memory that the programs of a row share: an element for each reduction, row and part, or for each
  // exchange and row. Its size is known when all is written.
  std::string shared_memory(TensorId& id, const std::string& name, DType type) {
    if (id < 0) {
      id = static_cast<TensorId>(graph_.tensors.size());
      graph_.tensors.push_back({.type = type,
                                .sizes = {},
                                .strides = {},
                                .node = members_.front().node,
                                .name = out_.name + "_" + name});
    }
    return names_.pointer(graph_, id);
  }

  void finish_parts() {
    const auto size = [&](TensorId id, Extents sizes) {
      Tensor& tensor = graph_.tensors[static_cast<size_t>(id)];
      tensor.strides = row_major(sizes);
      tensor.sizes = std::move(sizes);
    };
    size(parts_, {exchanged_ * rows_, tile_.parts});
    size(arrived_, {exchanged_ * rows_});
    out_.starts = {{arrived_, -1, false}};
    out_.cooperative = true;
    out_.registers = tile_.registers;
    out_.programs = tile_.parts * tile_.groups;
    out_.grid = std::to_string(out_.programs);
    out_.choice.persistent = true;
  }

  // What later members do of steps before this one's, as far as no result that it reads is still to come.
  void write_earlier_steps(size_t m) {
    const Exprs& exprs = graph_.exprs;
    const int step = node_of(members_[m]).word().step;
    std::set<TensorId> to_come;
    for (size_t later = m; later < members_.size(); ++later) to_come.insert(node_of(members_[later]).out);
    std::vector<ExprId> results;
    for (size_t later = m + 1; later < members_.size(); ++later)
      for (const ExprId id : exprs.below(members_[later].body))
        if (exprs[id].kind == Expr::Kind::kApply && exprs.step_of(id) >= 0 && exprs.step_of(id) < step &&
            std::ranges::none_of(exprs.below(id), [&](ExprId under) {
              return exprs[under].kind == Expr::Kind::kLoad && to_come.contains(exprs[under].tensor);
            }))
          results.push_back(id);
    std::ranges::stable_sort(results, {}, [&](ExprId id) { return exprs.step_of(id); });
    for (const ExprId id : results) write_.value(id);
  }

  std::string helper(const Member& member) {
    std::string name = combine_name(member.reduction, member.scan);  // of places and extrema
    if (member.reduction == Reduction::kSum || member.reduction == Reduction::kProd) return name;
    if (std::ranges::find(out_.helpers, name) == out_.helpers.end()) out_.helpers.push_back(name);
    return name;
  }

  // Members that need no finished result of each other share a loop over the columns.
  Status in_loops() {
    std::vector<bool> done(members_.size(), false);
    for (size_t left = members_.size(); left > 0;) {
      std::vector<size_t> of_rows, over_columns;
      std::vector<bool> turn(members_.size(), false);
      for (size_t m = 0; m < members_.size(); ++m) {
        if (done[m] || !ready(m, done, turn)) continue;
        const bool of_row = members_[m].reduction == Reduction::kNone && !members_[m].whole;
        (of_row ? of_rows : over_columns).push_back(m);
        turn[m] = !of_row;
      }
      if (of_rows.empty() && over_columns.empty())
        return input_error("{}: members wait for each other", out_.name);
      for (const size_t m : of_rows) keep_result(members_[m], write_.value(members_[m].body));
      if (of_rows.empty()) one_loop(over_columns);
      const auto& finished = of_rows.empty() ? over_columns : of_rows;
      for (const size_t m : finished) done[m] = true;
      left -= finished.size();
    }
    return ok_status();
  }

  // What has an element for each column can be read in the turn in which it is made.
  bool ready(size_t m, const std::vector<bool>& done, const std::vector<bool>& turn) {
    for (const TensorId read : graph_.reads(node_of(members_[m])))
      for (size_t other = 0; other < members_.size(); ++other)
        if (node_of(members_[other]).out == read && !done[other] && !(turn[other] && members_[other].whole))
          return false;
    return true;
  }

  // What a member carries from one turn of the loop to the next.
  struct Carried {
    std::string value, place;
  };

  Carried begin(const Member& member) {
    if (member.reduction == Reduction::kNone) return {};
    const std::string wish = identifier(node_of(member).name) + (member.scan ? "_before" : "_of_block");
    const std::string shape = member.scan ? row_shape() : block_shape();
    Carried carried{write_.let(wish, fmt::format("tl.full({}, {}, {})", shape, nothing(member),
                                                 type_text(type_of(member)))),
                    ""};
    if (is_place(member.reduction))
      carried.place = write_.let(
          wish + "_place", fmt::format("tl.full({}, {}, tl.int32)", shape, member.scan ? -1 : 2147483647));
    return carried;
  }

  void turn_of(const Member& member, const Carried& carried) {
    if (member.reduction == Reduction::kNone) {
      keep_result(member, write_.value(member.body));
      return;
    }
    const std::string combine = helper(member), block = wide(member);
    if (is_place(member.reduction)) {
      const std::string both = fmt::format("{}, {}", carried.value, carried.place);
      if (!member.scan) {
        write_.line(fmt::format("{} = {}({}, {}, column)", both, combine, both, masked(member, block)));
        return;
      }
      const std::string best = names_.fresh("best"), place = names_.fresh("place");
      write_.line(fmt::format("{}, {} = tl.associative_scan({}, {}, {})", best, place, pair(member, block),
                              axis(), combine));
      write_.line(fmt::format("{}, {} = {}({}, {}, {})", best, place, combine, both, best, place));
      keep_result(member,
                  write_.let(identifier(node_of(member).name), fmt::format("{}.to(tl.int64)", place)));
      const std::string row_best = names_.fresh("row_best"), row_place = names_.fresh("row_place");
      write_.line(fmt::format("{}, {} = tl.reduce({}, {}, {})", row_best, row_place, pair(member, block),
                              axis(), combine));
      write_.line(
          fmt::format("{} = {}({}, {}{}, {}{})", both, combine, both, row_best, keep(), row_place, keep()));
      return;
    }
    const std::string inside = masked(member, block);
    if (!member.scan) {
      write_.line(fmt::format("{} = {}", carried.value, combined(member.reduction, carried.value, inside)));
      return;
    }
    const std::string kept = write_.let("block", inside);
    const std::string scanned = scanned_text(member.reduction, kept, axis(), type_of(member), out_.helpers);
    keep_scanned(member, combined(member.reduction, carried.value, scanned, grows(member)));
    write_.line(fmt::format("{} = {}", carried.value,
                            combined(member.reduction, carried.value, reduced(member, kept), grows(member))));
  }

  void one_loop(const std::vector<size_t>& turn) {
    std::vector<Carried> carried;
    for (const size_t m : turn) carried.push_back(begin(members_[m]));
    write_.begin_loop({kColumn});
    write_.line(fmt::format("column = start + {}", column_range()));
    for (size_t t = 0; t < turn.size(); ++t) turn_of(members_[turn[t]], carried[t]);
    write_.end_loop(fmt::format("for start in range(0, {}, BLOCK_COLUMNS):", hole(columns_)));
    for (size_t t = 0; t < turn.size(); ++t) {
      const Member& member = members_[turn[t]];
      if (member.reduction == Reduction::kNone || member.scan) continue;
      const std::string wish = identifier(node_of(member).name);
      if (!is_place(member.reduction)) {
        keep_result(member, write_.let(wish, reduced(member, carried[t].value)));
        continue;
      }
      const std::string name = names_.fresh(wish), best = names_.fresh(wish + "_of");
      write_.line(fmt::format("{}, {} = tl.reduce(({}, {}), {}, {})", best, name, carried[t].value,
                              carried[t].place, axis(), helper(member)));
      keep_result(member, write_.let(wish, fmt::format("{}{}.to(tl.int64)", name, keep())));
    }
  }

  void finish() {
    if (!has_columns_) {
      out_.constants.push_back({"BLOCK", tile_.rows});
    } else {
      if (tile_.rows > 1) out_.constants.push_back({"BLOCK_ROWS", tile_.rows});
      const bool whole = !tile_.looped && tile_.column_tiles == 1 && tile_.columns == power_of_two(columns_);
      out_.constants.push_back({"BLOCK_COLUMNS", tile_.columns, "", whole ? columns_.text() : ""});
    }
    out_.programs = (rows_ + tile_.rows - 1) / tile_.rows * tile_.column_tiles;
    out_.grid = product_text({blocks_text(rows_, tile_.rows), shared_text()});
    out_.num_warps = tile_.warps;
    out_.choice = {.rows = tile_.rows, .columns = has_columns_ ? tile_.columns : 0, .warps = out_.num_warps};
    if (tile_.parts > 1) finish_parts();
    close_kernel(out_, graph_, names_, kernel_, write_.take_lines());
  }

  Graph& graph_;
  const Fused& fused_;
  const Tile tile_;
  const KernelChoice choice_;
  const TileKernel& kernel_;
  const Size rows_, columns_;
  const bool has_columns_;
  KernelNames names_;
  ExprWriter write_;
  std::vector<Member> members_;
  // Of a row's programs: variances among the members, partial results, counters of those that have stored
  // theirs, and how many reductions have been exchanged.
  std::vector<Moments> moments_;
  TensorId parts_ = -1, arrived_ = -1;
  int64_t exchanged_ = 0;
  KernelText out_;
};

}  // namespace

Result<KernelText> emit(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
                        const KernelChoice& choice, const Target& target) {
  const Node& first = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  if (first.flash) return emit_flash(graph, fused, kernel, name, choice, target);
  if (first.recurrence) return emit_recurrence(graph, kernel, name, choice, target);
  if (const auto contraction = as_contraction(graph, kernel))
    return emit_contraction(graph, fused, kernel, *contraction, name, choice, target);
  return TileEmitter(graph, fused, kernel, name, choice, target).run();
}

}  // namespace nereid::compiler
