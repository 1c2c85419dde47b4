#include "nereid/replay/integer_uses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "nereid/replay/structure.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::Arg;
using trace::StorageId;
using trace::ValueId;

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Which argument of these operators is an index, and what it indexes.
struct Indexing {
  size_t index = 0;
  int dim_argument = -1;  // the argument that names the dimension
  int fixed_dim = 0;      // where none does
};
std::optional<Indexing> indexing(std::string_view op) {
  if (one_of(op, {"embedding", "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"}))
    return Indexing{.index = 1};
  if (one_of(op, {"index_select", "gather", "scatter", "scatter_add", "scatter_reduce", "index_add",
                  "index_copy", "index_fill", "index_reduce", "_index_put_impl"}))
    return Indexing{.index = 2, .dim_argument = 1};
  if (op == "take_along_dim") return Indexing{.index = 1, .dim_argument = 2};
  if (one_of(op, {"nll_loss", "nll_loss_forward", "nll_loss_nd", "nll_loss2d", "nll_loss2d_forward",
                  "cross_entropy_loss", "multi_margin_loss"}))
    return Indexing{.index = 1, .fixed_dim = 1};
  return std::nullopt;
}

class Follower {
 public:
  Follower(const trace::Trace& trace, ValueId value)
      : trace_(trace), is_mask_(this->value(value).dtype == trace::DType::kBool) {
    same_.insert(storage_of(value));
  }

  IntegerUse run() {
    find_positions();
    for (const auto& step : judged_forward(trace_)->steps) {
      if (const auto* call = std::get_if<trace::Call>(&step))
        follow(*call);
      else
        launch(std::get<trace::Launch>(step));
    }
    return use_;
  }

 private:
  StorageId storage_of(ValueId value) const { return trace_.values.at(static_cast<size_t>(value)).storage; }
  const trace::Value& value(ValueId id) const { return trace_.values.at(static_cast<size_t>(id)); }
  bool holds(const std::set<StorageId>& set, const Arg& arg) const {
    return std::ranges::any_of(trace::tensors_in(arg),
                               [&](ValueId v) { return set.contains(storage_of(v)); });
  }
  bool takes(const std::set<StorageId>& set, const trace::Call& call) const {
    return std::ranges::any_of(call.args, [&](const Arg& arg) { return holds(set, arg); }) ||
           std::ranges::any_of(call.kwargs, [&](const auto& arg) { return holds(set, arg.second); });
  }

  // What arange() makes, and its views and copies.
  void find_positions() {
    for (const auto& phase : trace_.phases)
      for (const auto& step : phase.steps) {
        const auto* call = std::get_if<trace::Call>(&step);
        if (!call) continue;
        const auto name = trace::split_name(call->op).name;
        const bool copies =
            one_of(name, {"_to_copy", "to", "clone"}) || trace::listed(call->op) == trace::Listed::kView;
        const auto from = call->args.empty() ? std::vector<ValueId>() : trace::tensors_in(call->args[0]);
        const auto known = from.empty() ? positions_.end() : positions_.find(storage_of(from[0]));
        for (const auto made : trace::tensors_in(call->result)) {
          if (name == "arange" && counts_from_zero(*call))
            positions_.emplace(storage_of(made), trace::element_count(value(made)));
          else if (copies && known != positions_.end())
            positions_.emplace(storage_of(made), known->second);
        }
      }
  }

  static bool counts_from_zero(const trace::Call& call) {
    const auto is = [&](size_t i, int64_t number) {
      const auto* found = call.args.size() > i ? std::get_if<int64_t>(&call.args[i].node) : nullptr;
      return call.args.size() <= i || (found && *found == number);
    };
    return call.args.size() < 2 || (is(0, 0) && is(2, 1));
  }

  void note_positions(const trace::Call& call, std::string_view name) {
    if (!one_of(name, {"lt", "le", "gt", "ge"})) return;
    for (const auto& arg : call.args)
      for (const auto other : trace::tensors_in(arg))
        if (const auto found = positions_.find(storage_of(other)); found != positions_.end())
          use_.positions = std::min(use_.positions, found->second);
  }

  // By how much a call moves these integers; nullopt where it does anything else.
  std::optional<int64_t> shift_by(const trace::Call& call, std::string_view name) const {
    if (!one_of(name, {"add", "sub"}) || call.args.size() != 2 || !call.kwargs.empty()) return std::nullopt;
    const auto* number = std::get_if<int64_t>(&call.args[1].node);
    if (!number || !holds(same_, call.args[0]) || !makes_integers(call)) return std::nullopt;
    return name == "add" ? *number : -*number;
  }
  // The shift of the moved integers that an argument holds.
  std::optional<int64_t> shift_of(const Arg& arg) const {
    for (const auto v : trace::tensors_in(arg))
      if (const auto found = shifted_.find(storage_of(v)); found != shifted_.end()) return found->second;
    return std::nullopt;
  }
  bool takes_shifted(const trace::Call& call) const {
    const auto holds = [&](const Arg& arg) { return shift_of(arg).has_value(); };
    return std::ranges::any_of(call.args, holds) ||
           std::ranges::any_of(call.kwargs, [&](const auto& arg) { return holds(arg.second); });
  }

  void launch(const trace::Launch& launch) {
    for (const auto& alternative : launch.alternatives)
      for (const auto& arg : alternative.args)
        if (const auto* pointer = std::get_if<trace::PointerArg>(&arg); pointer && pointer->value >= 0)
          if (same_.contains(storage_of(pointer->value)) || derived_.contains(storage_of(pointer->value)) ||
              shifted_.contains(storage_of(pointer->value)))
            use_.obscure = true;
  }

  void follow(const trace::Call& call) {
    const bool same = takes(same_, call), shifted = takes_shifted(call),
               derived = takes(derived_, call) || shifted;
    const auto name = trace::split_name(call.op).name;
    use_.limited |= takes(floats_, call) &&
                    (compares(name) || one_of(name, {"histc", "bucketize", "searchsorted", "_to_copy"}));
    if (!same && !derived) return;
    if (same) note_marks(call, name), note_positions(call, name);
    const auto listed = trace::listed(call.op);
    if (keeps_shifted(call, name, listed)) return;
    if (listed == trace::Listed::kView || listed == trace::Listed::kQuery ||
        listed == trace::Listed::kAllocation)
      return spread(call, same && !derived, true);
    const bool second = call.args.size() > 1 && (holds(same_, call.args[1]) || holds(derived_, call.args[1]));
    use_.limited |=
        one_of(name, {"eq", "ne", "lt", "le", "gt", "ge", "isin"}) ||
        (second && one_of(name, {"bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__",
                                 "pow", "float_power", "ldexp", "repeat_interleave"}));
    if (one_of(name, {"eq", "ne", "lt", "le", "gt", "ge", "isin", "logical_not", "logical_and", "logical_or",
                      "logical_xor", "masked_fill", "where", "any", "all", "isnan"})) {
      for (size_t i = name == "where" ? 1 : 0; i < call.args.size() && one_of(name, {"where", "masked_fill"});
           ++i)
        if (holds(same_, call.args[i]) && (name == "where" || i == 0)) use_.compared_alone = false;
      return spread(call, false,
                    true);  // what is chosen where a condition holds may be integers made of them
    }
    if (indexes(call, name)) return;
    if (one_of(name, {"_to_copy", "to", "clone", "contiguous", "copy", "repeat", "flip", "roll", "cat",
                      "stack", "expand_copy", "reshape", "_reshape_copy", "repeat_interleave"}))
      return spread(call, same && !derived, makes_masks(call));
    if (one_of(name, {"bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"}) && makes_masks(call))
      return spread(call, false, true);
    if (brings_into_range(call, name)) {
      use_.reduced = true, use_.compared_alone = false;
      return;
    }
    use_.multiplied |= one_of(name, {"mul", "multiply", "pow", "square", "prod", "cumprod", "addcmul", "mm",
                                     "bmm", "matmul", "mv", "dot", "addmm", "baddbmm", "einsum"}) &&
                       makes_integers(call);
    if (listed == trace::Listed::kPointwise || listed == trace::Listed::kReduction ||
        listed == trace::Listed::kScan || listed == trace::Listed::kContraction)
      return spread(call, false, false);
    if (listed == trace::Listed::kAttention) return spread(call, false, is_mask_);
    use_.obscure = true;
    use_.compared_alone = false;
  }

  // A view or a copy of moved integers, or the call that moves them.
  bool keeps_shifted(const trace::Call& call, std::string_view name, std::optional<trace::Listed> listed) {
    auto shift = shift_by(call, name);
    const bool moved = shift.has_value();
    if (!shift && !takes(same_, call) && !takes(derived_, call) && !call.args.empty() &&
        (listed == trace::Listed::kView || one_of(name, {"_to_copy", "to", "clone"})) && makes_integers(call))
      shift = shift_of(call.args[0]);
    if (!shift) return false;
    if (moved) use_.compared_alone = false;
    for (const auto made : trace::tensors_in(call.result)) shifted_.emplace(storage_of(made), *shift);
    return true;
  }

  void note_marks(const trace::Call& call, std::string_view name) {
    const auto how = indexing(name);
    if (!one_of(name, {"eq", "ne"}) && !(how && how->fixed_dim == 1)) return;
    const auto note = [&](const Arg& arg) {
      if (const auto* number = std::get_if<int64_t>(&arg.node); number && *number < 0)
        use_.marks.insert(*number);
    };
    for (const auto& arg : call.args) note(arg);
    for (const auto& [key, arg] : call.kwargs) note(arg);
  }

  static bool compares(std::string_view name) {
    return one_of(name, {"eq", "ne", "lt", "le", "gt", "ge", "isin"});
  }

  // What is made of them is within bounds, whatever they are.
  bool brings_into_range(const trace::Call& call, std::string_view name) const {
    const auto is_number = [&](size_t i) {
      return call.args.size() > i && std::holds_alternative<int64_t>(call.args[i].node);
    };
    if (!makes_integers(call) || call.args.empty() || !holds(same_, call.args[0])) return false;
    if (name == "remainder" && is_number(1)) return std::get<int64_t>(call.args[1].node) > 0;
    return name == "clamp" && is_number(1) && is_number(2);
  }

  bool makes_integers(const trace::Call& call) const {
    return std::ranges::any_of(trace::tensors_in(call.result), [&](ValueId v) {
      return trace::is_integral(value(v).dtype) && value(v).dtype != trace::DType::kBool;
    });
  }

  bool makes_masks(const trace::Call& call) const {
    const auto made = trace::tensors_in(call.result);
    return std::ranges::all_of(made, [&](ValueId v) { return value(v).dtype == trace::DType::kBool; });
  }

  // What a call makes holds the same integers, or integers made of them; of floating-point numbers nothing is
  // asked.
  void spread(const trace::Call& call, bool same, bool compares) {
    if (!compares) use_.compared_alone = false;
    for (const auto made : trace::tensors_in(call.result)) {
      const auto type = value(made).dtype;
      if (same && trace::is_floating(type)) floats_.insert(storage_of(made));
      if (!trace::is_integral(type) || (type == trace::DType::kBool && !same)) continue;
      if (same_.contains(storage_of(made))) continue;
      (same ? same_ : derived_).insert(storage_of(made));
    }
  }

  // Whether the call looks something up by them; then the bound is taken.
  bool indexes(const trace::Call& call, std::string_view name) {
    if (one_of(name, {"index", "_unsafe_index", "index_put", "_unsafe_index_put", "_index_put_impl"}) &&
        call.args.size() > 1) {
      look_up_in_parts(call);
      return true;
    }
    if (name == "one_hot" && call.args.size() > 1) {
      const auto* classes = std::get_if<int64_t>(&call.args[1].node);
      use_.compared_alone = false;
      use_.obscure |= !classes || *classes < 0 || !holds(same_, call.args[0]);
      if (classes && *classes >= 0) use_.bound = std::min(use_.bound, *classes);
      return true;
    }
    const auto how = indexing(name);
    if (!how || call.args.size() <= how->index || call.args.empty()) return false;
    use_.scattered |= name.starts_with("scatter") ||
                      one_of(name, {"index_add", "index_copy", "index_fill", "index_reduce"});
    const auto looked_up = trace::tensors_in(call.args[0]);
    if (looked_up.empty()) return false;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto shift = shift_of(call.args[i]);
      if (holds(derived_, call.args[i]) && i == how->index) use_.obscure = true;
      if (shift && i != how->index) use_.obscure = true;
      if (!holds(same_, call.args[i]) && !shift) continue;
      use_.compared_alone = false;
      if (i == how->index) {
        const auto& table = value(looked_up[0]);
        int64_t dim = how->fixed_dim;
        if (how->dim_argument >= 0 && static_cast<size_t>(how->dim_argument) < call.args.size()) {
          const auto* named = std::get_if<int64_t>(&call.args[static_cast<size_t>(how->dim_argument)].node);
          dim = named ? *named : INT64_MAX;
        } else if (how->fixed_dim == 1 && table.sizes.size() == 1) {
          dim = 0;
        }
        bound(table, dim, shift.value_or(0));
      } else if (i > how->index && name.find("embedding_bag") != name.npos) {
        use_.obscure = true;  // offsets
      }
    }
    if (holds(same_, call.args[0]) || holds(derived_, call.args[0]))
      spread(call, holds(same_, call.args[0]), false);
    return true;
  }

  // x[:, i, j]: a list with a place for each dimension.
  void look_up_in_parts(const trace::Call& call) {
    const auto looked_up = trace::tensors_in(call.args[0]);
    const auto* parts = std::get_if<trace::List>(&call.args[1].node);
    use_.scattered |= trace::split_name(call.op).name.find("put") != std::string_view::npos;
    use_.compared_alone = false;
    if (looked_up.empty() || !parts) {
      use_.obscure = true;
      return;
    }
    for (size_t i = 0; i < parts->items.size(); ++i) {
      const auto indices = trace::tensors_in(parts->items[i]);
      if (indices.empty()) continue;
      if (value(indices[0]).dtype == trace::DType::kBool) {
        if (holds(same_, parts->items[i]) || holds(derived_, parts->items[i])) use_.obscure = true;
        if (std::ranges::any_of(parts->items, [&](const Arg& part) { return shift_of(part).has_value(); }))
          use_.obscure = true;
        return;  // it stands for several dimensions
      }
      if (holds(derived_, parts->items[i])) use_.obscure = true;
      const auto shift = shift_of(parts->items[i]);
      if (holds(same_, parts->items[i]) || shift)
        bound(value(looked_up[0]), static_cast<int64_t>(i), shift.value_or(0));
    }
    if (holds(same_, call.args[0]) || holds(derived_, call.args[0]))
      spread(call, holds(same_, call.args[0]), false);
  }

  void bound(const trace::Value& table, int64_t dim, int64_t shift = 0) {
    const auto rank = static_cast<int64_t>(table.sizes.size());
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank) {
      use_.obscure = true;
      return;
    }
    use_.bound = std::min(use_.bound, table.sizes[static_cast<size_t>(dim)] - shift);
    use_.least = std::max(use_.least, -shift);
  }

  const trace::Trace& trace_;
  const bool is_mask_;
  std::set<StorageId> same_, derived_;      // hold these integers; hold integers made of them
  std::map<StorageId, int64_t> shifted_;    // hold these integers, moved by a number
  std::map<StorageId, int64_t> positions_;  // hold 0, 1, 2, ...: how many
  std::set<StorageId> floats_;              // hold these integers as floating-point numbers
  IntegerUse use_;
};

}  // namespace

bool handles_nans(const trace::Trace& trace) {
  return std::ranges::any_of(judged_forward(trace)->steps, [](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call) return false;
    const auto name = trace::split_name(call->op).name;
    const auto compared = trace::tensors_in(trace::Arg{trace::List{call->args, false}});
    if (one_of(name, {"eq", "ne"}) && compared.size() == 2 && compared[0] == compared[1])
      return true;  // x != x
    return one_of(name, {"nan_to_num", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "nansum",
                         "nanmean", "nanmedian", "nanquantile", "fmax", "fmin"});
  });
}

IntegerUse use_of(const trace::Trace& trace, ValueId value) { return Follower(trace, value).run(); }

}  // namespace nereid::replay
