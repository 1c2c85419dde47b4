#include "nereid/compiler/import/cell_loops.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "nereid/trace/access.h"
#include "nereid/trace/op_class.h"

namespace nereid::compiler {
namespace {

constexpr size_t kMinSteps = 3;
constexpr std::array<std::string_view, 4> kCells = {"aten::rnn_tanh_cell", "aten::rnn_relu_cell",
                                                    "aten::gru_cell", "aten::lstm_cell"};

class LoopFinder {
 public:
  LoopFinder(const trace::Trace& trace, const std::vector<const trace::Call*>& calls)
      : trace_(trace), calls_(calls) {}

  std::vector<CellLoop> run() {
    std::map<size_t, size_t> next;  // of a cell's call, the one that starts from its results
    std::set<size_t> follows;
    for (size_t i = 0; i < calls_.size(); ++i)
      if (const auto before = before_of(i); before && !next.contains(*before))
        next[*before] = i, follows.insert(i);
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (follows.contains(i) || !next.contains(i)) continue;
      CellLoop loop{.calls = {i}};
      for (auto found = next.find(i); found != next.end(); found = next.find(found->second))
        loop.calls.push_back(found->second);
      loop.at = loop.calls.back();  // at the latest
      if (loop.calls.size() >= kMinSteps) loops_.push_back(std::move(loop));
    }
    // A loop that is not taken changes where the inputs of others are.
    while (std::erase_if(loops_, [&](CellLoop& loop) { return !place(loop); }) > 0) continue;
    return std::move(loops_);
  }

 private:
  const trace::Value& value(trace::ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }
  trace::StorageId storage(trace::ValueId id) const { return value(id).storage; }

  static bool is_cell(const trace::Call& call) {
    const std::string_view op = call.op;
    return std::ranges::find(kCells, op.substr(0, op.find('.'))) != kCells.end() && call.args.size() >= 4;
  }
  static std::vector<trace::ValueId> results(const trace::Call& call) {
    return trace::tensors_in(call.result);
  }
  static std::vector<trace::ValueId> inputs(const trace::Call& call) {
    std::vector<trace::ValueId> all;
    for (const auto& arg : call.args)
      for (const trace::ValueId id : trace::tensors_in(arg)) all.push_back(id);
    for (const auto& [key, arg] : call.kwargs)
      for (const trace::ValueId id : trace::tensors_in(arg)) all.push_back(id);
    return all;
  }

  bool same_place(trace::ValueId a, trace::ValueId b) const {
    return storage(a) == storage(b) && value(a).offset == value(b).offset &&
           value(a).sizes == value(b).sizes && value(a).strides == value(b).strides;
  }

  // The call before i of the same cell, whose results are what i starts from.
  std::optional<size_t> before_of(size_t i) const {
    const trace::Call& call = *calls_[i];
    if (!is_cell(call)) return std::nullopt;
    const auto from = trace::tensors_in(call.args[1]);
    for (size_t j = i; j-- > 0;) {
      const trace::Call& other = *calls_[j];
      if (other.op != call.op || results(other) != from || other.args.size() != call.args.size()) continue;
      const auto x = trace::tensors_in(call.args[0]), before = trace::tensors_in(other.args[0]);
      if (x.size() != 1 || before.size() != 1 || value(x[0]).sizes.size() != 2 ||
          value(x[0]).sizes != value(before[0]).sizes)
        return std::nullopt;
      for (size_t a = 2; a < call.args.size(); ++a)
        if (!std::ranges::equal(trace::tensors_in(call.args[a]), trace::tensors_in(other.args[a]),
                                [&](trace::ValueId one, trace::ValueId two) { return same_place(one, two); }))
          return std::nullopt;
      return j;
    }
    return std::nullopt;
  }

  const CellLoop* loop_with(size_t call) const {
    for (const CellLoop& loop : loops_)
      if (std::ranges::find(loop.calls, call) != loop.calls.end()) return &loop;
    return nullptr;
  }

  // Where a value's memory is written, as calls are imported; -1: before all of them.
  int64_t written_at(trace::ValueId id, size_t before) const {
    int64_t at = -1;
    for (size_t j = 0; j < before; ++j) {
      if (trace::listed_class(calls_[j]->op) == trace::OpClass::kView ||
          std::ranges::none_of(results(*calls_[j]),
                               [&](trace::ValueId made) { return storage(made) == storage(id); }))
        continue;
      const CellLoop* loop = loop_with(j);
      at = std::max(at, static_cast<int64_t>(loop == nullptr ? j : loop->at));
    }
    return at;
  }

  // Sets where the loop is imported; false: it cannot be.
  bool place(CellLoop& loop) {
    const size_t first = loop.calls.front(), last = loop.calls.back();
    int64_t ready = -1;
    for (const size_t call : loop.calls)
      ready = std::max(ready, written_at(trace::tensors_in(calls_[call]->args[0])[0], call));
    loop.at = ready < static_cast<int64_t>(first) ? first : last;
    if (ready > static_cast<int64_t>(last)) return false;
    std::set<trace::StorageId> states, cells, used;
    for (const size_t call : loop.calls) {
      const auto made = results(*calls_[call]);
      states.insert(storage(made[0]));
      if (made.size() > 1 && call != last) cells.insert(storage(made[1]));
      if (made.size() > 1 && call == last) states.insert(storage(made[1]));
      for (const trace::ValueId id : inputs(*calls_[call])) used.insert(storage(id));
    }
    for (size_t j = first; j < calls_.size(); ++j) {
      if (std::ranges::find(loop.calls, j) != loop.calls.end()) continue;
      const CellLoop* other = loop_with(j);
      const size_t at = other == nullptr ? j : other->at;
      const bool view = trace::listed_class(calls_[j]->op) == trace::OpClass::kView;
      for (const trace::ValueId id : inputs(*calls_[j])) {
        if (cells.contains(storage(id))) return false;
        if (states.contains(storage(id)) && at <= loop.at && !view) return false;
      }
      if (j > last || view) continue;
      for (const trace::ValueId id : results(*calls_[j]))  // what it reads, or makes, written in place
        if (used.contains(storage(id)) && (is_in_place(*calls_[j]) || written_at(id, j) >= 0)) return false;
    }
    return !reads_cells_at_the_end(cells);
  }

  static bool is_in_place(const trace::Call& call) {
    return call.op.substr(0, call.op.find('.')).ends_with("_");
  }

  bool reads_cells_at_the_end(const std::set<trace::StorageId>& cells) const {
    return std::ranges::any_of(trace::tensors_in(trace_.phases.back().output),
                               [&](trace::ValueId id) { return cells.contains(storage(id)); });
  }

  const trace::Trace& trace_;
  const std::vector<const trace::Call*>& calls_;
  std::vector<CellLoop> loops_ = {};
};

}  // namespace

std::vector<CellLoop> cell_loops(const trace::Trace& trace, const std::vector<const trace::Call*>& calls) {
  return LoopFinder(trace, calls).run();
}

}  // namespace nereid::compiler
