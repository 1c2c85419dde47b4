#include "nereid/compiler/codegen/tiles/column_loops.h"

#include <fmt/format.h>

#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/helpers.h"

namespace nereid::compiler {
namespace {

class ColumnLoops {
 public:
  explicit ColumnLoops(TileText& text) : t_(text) {}

  Status write() {
    std::vector<bool> done(t_.members.size(), false);
    for (size_t left = t_.members.size(); left > 0;) {
      std::vector<size_t> of_rows, over_columns;
      std::vector<bool> turn(t_.members.size(), false);
      for (size_t m = 0; m < t_.members.size(); ++m) {
        if (done[m] || !ready(m, done, turn)) continue;
        const bool of_row = t_.members[m].reduction == Reduction::kNone && !t_.members[m].whole;
        (of_row ? of_rows : over_columns).push_back(m);
        turn[m] = !of_row;
      }
      if (of_rows.empty() && over_columns.empty())
        return input_error("{}: members wait for each other", t_.out.name);
      for (const size_t m : of_rows) t_.keep_result(t_.members[m], t_.write.value(t_.members[m].body));
      if (of_rows.empty()) one_loop(over_columns);
      const auto& finished = of_rows.empty() ? over_columns : of_rows;
      for (const size_t m : finished) done[m] = true;
      left -= finished.size();
    }
    return ok_status();
  }

 private:
  // What has an element for each column can be read in the turn in which it is made.
  bool ready(size_t m, const std::vector<bool>& done, const std::vector<bool>& turn) {
    for (const TensorId read : t_.graph.reads(t_.node_of(t_.members[m])))
      for (size_t other = 0; other < t_.members.size(); ++other)
        if (t_.node_of(t_.members[other]).out == read && !done[other] &&
            !(turn[other] && t_.members[other].whole))
          return false;
    return true;
  }

  // What a member carries from one turn of the loop to the next.
  struct Carried {
    std::string value, place;
  };

  Carried begin(const Member& member) {
    if (member.reduction == Reduction::kNone) return {};
    const std::string wish = identifier(t_.node_of(member).name) + (member.scan ? "_before" : "_of_block");
    const std::string shape = member.scan ? t_.row_shape() : t_.block_shape();
    Carried carried{t_.write.let(wish, fmt::format("tl.full({}, {}, {})", shape, t_.identity(member),
                                                   type_text(t_.type_of(member)))),
                    ""};
    if (is_place(member.reduction))
      carried.place = t_.write.let(
          wish + "_place", fmt::format("tl.full({}, {}, tl.int32)", shape, member.scan ? -1 : 2147483647));
    return carried;
  }

  void turn_of(const Member& member, const Carried& carried) {
    if (member.reduction == Reduction::kNone) {
      t_.keep_result(member, t_.write.value(member.body));
      return;
    }
    const std::string combine = t_.helper(member), block = t_.wide(member);
    if (is_place(member.reduction)) {
      const std::string both = fmt::format("{}, {}", carried.value, carried.place);
      if (!member.scan) {
        t_.write.line(fmt::format("{} = {}({}, {}, column)", both, combine, both, t_.masked(member, block)));
        return;
      }
      const std::string best = t_.names.fresh("best"), place = t_.names.fresh("place");
      t_.write.line(fmt::format("{}, {} = tl.associative_scan({}, {}, {})", best, place,
                                t_.pair(member, block), t_.axis(), combine));
      t_.write.line(fmt::format("{}, {} = {}({}, {}, {})", best, place, combine, both, best, place));
      t_.keep_result(
          member, t_.write.let(identifier(t_.node_of(member).name), fmt::format("{}.to(tl.int64)", place)));
      const std::string row_best = t_.names.fresh("row_best"), row_place = t_.names.fresh("row_place");
      t_.write.line(fmt::format("{}, {} = tl.reduce({}, {}, {})", row_best, row_place, t_.pair(member, block),
                                t_.axis(), combine));
      t_.write.line(fmt::format("{} = {}({}, {}{}, {}{})", both, combine, both, row_best, t_.keepdims(),
                                row_place, t_.keepdims()));
      return;
    }
    const std::string inside = t_.masked(member, block);
    if (!member.scan) {
      t_.write.line(fmt::format("{} = {}", carried.value, combined(member.reduction, carried.value, inside)));
      return;
    }
    const std::string kept = t_.write.let("block", inside);
    const std::string scanned =
        scanned_text(member.reduction, kept, t_.axis(), t_.type_of(member), t_.out.helpers);
    t_.keep_scanned(member, combined(member.reduction, carried.value, scanned, t_.grows(member)));
    t_.write.line(
        fmt::format("{} = {}", carried.value,
                    combined(member.reduction, carried.value, t_.reduced(member, kept), t_.grows(member))));
  }

  void one_loop(const std::vector<size_t>& turn) {
    std::vector<Carried> carried;
    for (const size_t m : turn) carried.push_back(begin(t_.members[m]));
    t_.write.begin_loop({kColumn});
    t_.write.line(fmt::format("column = start + {}", t_.column_range()));
    for (size_t t = 0; t < turn.size(); ++t) turn_of(t_.members[turn[t]], carried[t]);
    t_.write.end_loop(fmt::format("for start in range(0, {}, BLOCK_COLUMNS):", hole(t_.columns)));
    for (size_t t = 0; t < turn.size(); ++t) {
      const Member& member = t_.members[turn[t]];
      if (member.reduction == Reduction::kNone || member.scan) continue;
      const std::string wish = identifier(t_.node_of(member).name);
      if (!is_place(member.reduction)) {
        t_.keep_result(member, t_.write.let(wish, t_.reduced(member, carried[t].value)));
        continue;
      }
      const std::string name = t_.names.fresh(wish), best = t_.names.fresh(wish + "_of");
      t_.write.line(fmt::format("{}, {} = tl.reduce(({}, {}), {}, {})", best, name, carried[t].value,
                                carried[t].place, t_.axis(), t_.helper(member)));
      t_.keep_result(member, t_.write.let(wish, fmt::format("{}{}.to(tl.int64)", name, t_.keepdims())));
    }
  }

  TileText& t_;
};

}  // namespace

Status write_column_loops(TileText& text) { return ColumnLoops(text).write(); }

}  // namespace nereid::compiler
