#include "nereid/compiler/codegen/tiles/shared_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/transforms/moments.h"

namespace nereid::compiler {
namespace {

class SharedRows {
 public:
  explicit SharedRows(TileText& text) : t_(text) {
    std::vector<const Node*> nodes;
    for (const Member& member : t_.members) nodes.push_back(&t_.node_of(member));
    moments_ = moments_in(t_.graph, nodes);
    const std::vector<Index> by = t_.flat_dimensions();
    for (Moments& each : moments_)
      each.element = t_.graph.exprs.substitute(each.element, by, t_.write.extents());
  }

  void write() {
    t_.names.taken.insert({"part", "parts", "turn"});
    t_.write.line(fmt::format("part = tl.program_id(0) % {}", t_.tile.parts));
    t_.write.line(fmt::format("column = part * BLOCK_COLUMNS + {}", t_.column_range()));
    t_.write.line(fmt::format("parts = tl.arange(0, {})", power_of_two(t_.tile.parts)));
    if (!moments_.empty()) write_part_sizes();
    t_.write.begin_loop({kRow, kColumn});
    if (t_.is_wide()) t_.write.line("row = turn.to(tl.int64)");
    std::vector<Partial> partials;
    for (size_t m = 0; m < t_.members.size(); ++m) {
      const Member& member = t_.members[m];
      const Moments* moments = moments_of(member);
      if (moments != nullptr && t_.node_of(member).out != moments->rough)
        continue;  // made with the rough mean
      const auto reads = t_.graph.reads(t_.node_of(member));
      if (std::ranges::any_of(partials, [&](const Partial& partial) {
            return std::ranges::any_of(made_of(partial), [&](TensorId made) {
              return std::ranges::find(reads, made) != reads.end();
            });
          }))
        exchange(partials);
      if (partials.empty()) t_.write_earlier_steps(m);
      if (member.reduction == Reduction::kNone) {
        t_.keep_result(member, t_.write.value(member.body));
      } else if (moments != nullptr) {
        add_moments(member, *moments, partials);
      } else {
        const std::string block = t_.masked(member, t_.wide(member)),
                          name = identifier(t_.node_of(member).name);
        partials.push_back(
            {&member, name,
             t_.write.let(name + "_of_part", reduced_text(member.reduction, block, 0, t_.out.helpers))});
      }
    }
    exchange(partials);
    t_.write.end_loop(
        fmt::format("for {} in range(tl.program_id(0) // {}, {}, {}):", t_.is_wide() ? "turn" : "row",
                    t_.tile.parts, hole(t_.rows), t_.tile.groups));
  }

  void set_launch() {
    const auto size = [&](TensorId id, Extents sizes) {
      Tensor& tensor = t_.graph.tensors[static_cast<size_t>(id)];
      tensor.strides = row_major(sizes);
      tensor.sizes = std::move(sizes);
    };
    size(parts_, {exchanged_ * t_.rows, t_.tile.parts});
    size(arrived_, {exchanged_ * t_.rows});
    t_.out.starts = {{arrived_, -1, false}};
    t_.out.cooperative = true;
    t_.out.registers = t_.tile.registers;
    t_.out.programs = t_.tile.parts * t_.tile.groups;
    t_.out.grid = std::to_string(t_.out.programs);
    t_.out.choice.persistent = true;
  }

 private:
  // What a program reduced its part of a row to.
  struct Partial {
    const Member* member;
    std::string name, text;
    const Moments* moments =
        nullptr;  // the mean of the part; of the partial after it: the squares about that
  };

  const Moments* moments_of(const Member& member) const {
    const TensorId out = t_.node_of(member).out;
    for (const Moments& each : moments_)
      if (out == each.rough || out == each.rest || out == each.squares) return &each;
    return nullptr;
  }
  const Member& maker_of(TensorId out) const {
    return *std::ranges::find_if(t_.members,
                                 [&](const Member& member) { return t_.node_of(member).out == out; });
  }
  std::vector<TensorId> made_of(const Partial& partial) const {
    if (partial.moments == nullptr) return {t_.node_of(*partial.member).out};
    return {partial.moments->rough, partial.moments->rest, partial.moments->squares};
  }

  void write_part_sizes() {
    t_.names.taken.insert({"share_of_part", "elements_of_parts"});
    const std::string count = hole(t_.columns, Size::Place::kTerm);
    t_.write.line(
        fmt::format("share_of_part = 1.0 / tl.minimum({} - part * BLOCK_COLUMNS, BLOCK_COLUMNS)", count));
    t_.write.line(
        fmt::format("elements_of_parts = tl.minimum(tl.maximum({} - parts * BLOCK_COLUMNS, 0), "
                    "BLOCK_COLUMNS).to(tl.float32)",
                    count));
  }

  // The part's own mean, and the squares of the distances from that.
  void add_moments(const Member& member, const Moments& moments, std::vector<Partial>& partials) {
    const std::string x = t_.write.value(moments.element), divisor = t_.write.value(moments.divisor);
    const auto add = [&](TensorId out, const std::string& text) {
      const std::string name = identifier(t_.node_of(maker_of(out)).name);
      const std::string sum = fmt::format("tl.sum({}, axis=0)", t_.masked(member, text));
      partials.push_back({&member, name, t_.write.let(name + "_of_part", sum), &moments});
    };
    add(moments.rough, fmt::format("{} * share_of_part", x));
    const std::string distance = t_.write.let("distance", fmt::format("{} - {}", x, partials.back().text));
    add(moments.squares, fmt::format("{} * {} * {}", distance, divisor, distance));
  }

  // Those of the row, of its parts' means and squares.
  void finish_moments(const Moments& moments, const std::vector<std::string>& parts) {
    const auto keep = [&](TensorId out, const std::string& text) {
      const std::string name =
          t_.write.let(identifier(t_.node_of(maker_of(out)).name), fmt::format("tl.sum({}, axis=0)", text));
      t_.keep_result(maker_of(out), name);
      return name;
    };
    const std::string share = t_.write.value(moments.share), divisor = t_.write.value(moments.divisor);
    const std::string mean =
        keep(moments.rough, fmt::format("{} * (elements_of_parts * {})", parts[0], share));
    const std::string distance = t_.write.let("distance_of_parts", fmt::format("{} - {}", parts[0], mean));
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
      const Size before = (first + static_cast<int64_t>(i)) * t_.rows;
      return fmt::format("{} + {} * {}", shared_memory(parts_, "parts", DType::kF32),
                         before == 0 ? "row" : fmt::format("({} + row)", hole(before, Size::Place::kTerm)),
                         t_.tile.parts);
    };
    for (size_t i = 0; i < partials.size(); ++i)
      t_.write.line(fmt::format("tl.store({} + part, {})", place(i), partials[i].text));
    const std::string counter =
        fmt::format("{} + row{}", shared_memory(arrived_, "arrived", DType::kI32),
                    first == 0 ? "" : fmt::format(" + {}", hole(first * t_.rows, Size::Place::kTerm)));
    t_.write.line(fmt::format("tl.atomic_add({}, 1, sem=\"release\")", counter));
    t_.write.line(fmt::format("while tl.atomic_add({}, 0, sem=\"acquire\") < {}:", counter, t_.tile.parts));
    t_.write.line("    pass");
    std::vector<std::string> of_moments;
    for (size_t i = 0; i < partials.size(); ++i) {
      const auto& [of, name, text, moments] = partials[i];
      const bool all = power_of_two(t_.tile.parts) == t_.tile.parts;
      const std::string where =
          all ? "" : fmt::format(", mask=parts < {}, other={}", t_.tile.parts, t_.identity(*of));
      const std::string block = t_.write.let(
          name + "_of_parts", fmt::format("tl.load({} + parts{}, cache_modifier=\".cg\")", place(i), where));
      if (moments == nullptr) {
        t_.keep_result(*of, t_.write.let(name, reduced_text(of->reduction, block, 0, t_.out.helpers)));
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
      id = static_cast<TensorId>(t_.graph.tensors.size());
      t_.graph.tensors.push_back({.type = type,
                                  .sizes = {},
                                  .strides = {},
                                  .node = t_.members.front().node,
                                  .name = t_.out.name + "_" + name});
    }
    return t_.names.pointer(t_.graph, id);
  }

  TileText& t_;
  std::vector<Moments> moments_;        // variances among the members
  TensorId parts_ = -1, arrived_ = -1;  // partial results, and counters of programs that have stored theirs
  int64_t exchanged_ = 0;               // reductions
};

}  // namespace

void write_shared_rows(TileText& text) {
  SharedRows rows(text);
  rows.write();
  rows.set_launch();
}

}  // namespace nereid::compiler
