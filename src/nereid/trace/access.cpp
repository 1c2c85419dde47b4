#include "nereid/trace/access.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "nereid/trace/op_table.h"

namespace nereid::trace {
namespace {

const Arg* argument(const Call& call, size_t position, std::string_view name) {
  if (position < call.args.size()) return &call.args[position];
  for (const auto& [key, arg] : call.kwargs)
    if (key == name) return &arg;
  return nullptr;
}

bool is_true(const Arg* arg) {
  if (arg == nullptr) return false;
  if (const auto* flag = std::get_if<bool>(&arg->node)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&arg->node)) return *number != 0;
  return false;
}

// Appends the tensors of the arguments that a row such as "3 running_mean,4 running_var?5" names.
void append_listed(const Call& call, std::string_view row, std::vector<ValueId>& found) {
  if (const size_t question = row.find('?'); question != row.npos) {
    size_t condition = 0;
    std::from_chars(row.data() + question + 1, row.data() + row.size(), condition);
    if (!is_true(argument(call, condition, condition == 5 ? "training" : ""))) return;
    row = row.substr(0, question);
  }
  while (!row.empty()) {
    const std::string_view item = row.substr(0, row.find(','));
    row.remove_prefix(std::min(row.size(), item.size() + 1));
    size_t position = 0;
    const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), position);
    const std::string_view name = item.substr(static_cast<size_t>(end - item.data()) + 1);
    if (const Arg* arg = argument(call, position, name)) {
      const auto tensors = tensors_in(*arg);
      found.insert(found.end(), tensors.begin(), tensors.end());
    }
  }
}

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1))
    if ((at == 0 || words[at - 1] == ' ') &&
        (at + word.size() == words.size() || words[at + word.size()] == ' '))
      return true;
  return false;
}

// Overwrites its first argument whatever that held.
bool overwrites_self(const OpName& op) {
  if (!op.in_place) return false;
  if (op.name == "bernoulli") return op.overload == "float" || op.overload == "Tensor" || op.overload.empty();
  return has_word(
      "copy fill zero uniform normal random exponential cauchy geometric log_normal _foreach_copy "
      "_foreach_zero",
      op.name);
}

// The position of an argument whose shape and dtype alone matter; -1: none.
int shape_only_argument(const OpName& op) {
  if (op.name.ends_with("_like") || op.name.starts_with("new_") || op.name == "_shape_as_tensor") return 0;
  if (op.name.ends_with("_as") && op.name != "as")
    return 1;  // expand_as, view_as, reshape_as, type_as, resize_as
  return -1;
}

// Running statistics of a norm that trains: they do not reach its result.
bool updates_statistics(const Call& call) {
  return listed_writes(call.op).find('?') != std::string_view::npos && is_true(argument(call, 5, "training"));
}

// Every byte between the first and the last element belongs to some element.
bool is_dense(const Value& value) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < value.sizes.size(); ++d)
    if (value.sizes[d] != 1) dims.emplace_back(value.strides[d], value.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t next = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != 0 && stride > next) return false;
    next = std::max(next, stride * (size - 1) + next);
  }
  return true;
}

class Collector {
 public:
  explicit Collector(const Trace& trace) : trace_(trace) {}

  Access of_value(ValueId id, bool covers) const {
    const Value& value = trace_.values[static_cast<size_t>(id)];
    const auto [first, last] = byte_extent(value);
    return {.storage = value.storage,
            .first = first,
            .last = last,
            .value = id,
            .covers = covers && is_dense(value)};
  }
  Access of_storage(ValueId id, bool covers) const {
    const StorageId storage = trace_.values[static_cast<size_t>(id)].storage;
    return {.storage = storage,
            .first = 0,
            .last = trace_.storages[static_cast<size_t>(storage)].bytes,
            .value = id,
            .covers = covers};
  }
  StorageId storage_of(ValueId id) const { return trace_.values[static_cast<size_t>(id)].storage; }

 private:
  const Trace& trace_;
};

std::vector<ValueId> argument_tensors(const Call& call) {
  std::vector<ValueId> found;
  for (const Arg& arg : call.args) {
    const auto tensors = tensors_in(arg);
    found.insert(found.end(), tensors.begin(), tensors.end());
  }
  for (const auto& [name, arg] : call.kwargs) {
    const auto tensors = tensors_in(arg);
    found.insert(found.end(), tensors.begin(), tensors.end());
  }
  return found;
}

// Storages of the results that are none of the arguments': the call made them.
std::vector<ValueId> fresh_results(const Trace& trace, const Call& call) {
  std::set<StorageId> known;
  for (const ValueId id : argument_tensors(call)) known.insert(trace.values[static_cast<size_t>(id)].storage);
  std::vector<ValueId> fresh;
  for (const ValueId id : tensors_in(call.result))
    if (known.insert(trace.values[static_cast<size_t>(id)].storage).second) fresh.push_back(id);
  return fresh;
}

// Keyword arguments that are written (out= and its kin).
bool writes_keywords(const OpName& op) {
  return !op.name.starts_with("sym_constrain_range") && !(op.name == "segment_reduce" && op.overload.empty());
}

std::vector<ValueId> out_arguments(const Call& call) {
  std::vector<ValueId> found;
  if (!writes_keywords(split_name(call.op))) return found;
  for (const auto& [name, arg] : call.kwargs) {
    if (!is_out_name(name)) continue;
    const auto tensors = tensors_in(arg);
    found.insert(found.end(), tensors.begin(), tensors.end());
  }
  return found;
}

// By position, not by value: what is overwritten may also be read, as in x.copy_(x).
std::vector<ValueId> read_arguments(const Call& call, bool self_updates) {
  std::vector<ValueId> read;
  const OpName op = split_name(call.op);
  if (listed(call.op) == Listed::kAllocation) return read;
  const int shape_only = shape_only_argument(op);
  for (size_t position = 0; position < call.args.size(); ++position) {
    if (static_cast<int>(position) == shape_only || (position == 0 && overwrites_self(op))) continue;
    if (self_updates && (position == 3 || position == 4)) continue;  // running_mean, running_var
    const auto tensors = tensors_in(call.args[position]);
    read.insert(read.end(), tensors.begin(), tensors.end());
  }
  for (const auto& [name, arg] : call.kwargs) {
    if (writes_keywords(op) && is_out_name(name)) continue;
    if (self_updates && (name == "running_mean" || name == "running_var")) continue;
    const auto tensors = tensors_in(arg);
    read.insert(read.end(), tensors.begin(), tensors.end());
  }
  return read;
}

}  // namespace

std::vector<ValueId> written_arguments(const Call& call) {
  std::vector<ValueId> found;
  const auto kind = listed(call.op);
  if (kind == Listed::kView || kind == Listed::kQuery) return found;
  const std::string_view row = listed_writes(call.op);
  if (!row.empty()) {
    append_listed(call, row, found);
  } else if (split_name(call.op).in_place && !call.args.empty()) {
    found = tensors_in(call.args[0]);
  }
  const auto outs = out_arguments(call);
  found.insert(found.end(), outs.begin(), outs.end());
  return found;
}

bool writes_nothing(const Trace& trace, const Call& call) {
  return written_arguments(call).empty() && fresh_results(trace, call).empty();
}

bool draws_random(const Call& call) {
  if (!is_seeded(call.op)) return false;
  const OpName op = split_name(call.op);
  const auto position_true = [&](size_t position) { return is_true(argument(call, position, "")); };
  const auto positive = [&](size_t position, std::string_view name) {
    const Arg* arg = argument(call, position, name);
    if (arg == nullptr) return false;
    if (const auto* number = std::get_if<double>(&arg->node)) return *number != 0;
    return is_true(arg);
  };
  if (has_word("dropout alpha_dropout feature_dropout feature_alpha_dropout", op.name))
    return positive(1, "p") && position_true(2);
  if (op.name == "scaled_dot_product_attention" || op.name == "_scaled_dot_product_efficient_attention" ||
      op.name == "_scaled_dot_product_attention_math")
    return positive(op.name == "_scaled_dot_product_efficient_attention" ? 5 : 4, "dropout_p");
  if (op.name == "_scaled_dot_product_flash_attention" ||
      op.name == "_scaled_dot_product_flash_attention_for_cpu")
    return positive(3, "dropout_p");
  if (op.name == "_scaled_dot_product_cudnn_attention") return positive(5, "dropout_p");
  if (has_word("lstm gru rnn_tanh rnn_relu", op.name)) {
    const size_t dropout = op.overload == "data" ? 6 : 5;
    return positive(dropout, "dropout") && position_true(dropout + 1);
  }
  if (op.name == "rrelu") return is_true(argument(call, 3, "training"));
  if (op.name.starts_with("rrelu_with_noise")) return is_true(argument(call, 4, "training"));
  return op.name != "_fused_sdp_choice";
}

StepAccess access_of(const Trace& trace, const Call& call) {
  StepAccess access;
  access.random = draws_random(call);
  access.seeds = call.op == "nereid::manual_seed" || call.op == "nereid::restore_generator";
  const Collector collect(trace);
  const auto kind = listed(call.op);

  const auto fresh = fresh_results(trace, call);
  for (const ValueId id : fresh) {
    access.made.push_back(collect.storage_of(id));
    if (kind != Listed::kAllocation) access.writes.push_back(collect.of_storage(id, true));
  }
  const auto written = written_arguments(call);
  const bool self_updates = updates_statistics(call);
  for (const ValueId id : written) access.writes.push_back(collect.of_value(id, !self_updates));
  if (access.writes.empty()) return access;

  for (const ValueId id : read_arguments(call, self_updates))
    access.reads.push_back(collect.of_value(id, false));
  return access;
}

StepAccess access_of(const Trace& trace, const Launch& launch, const KernelUses& uses) {
  StepAccess access;
  const Collector collect(trace);
  std::set<StorageId> read, written;
  for (const Alternative& one : launch.alternatives) {
    for (const Call& call : one.before) {
      const StepAccess before = access_of(trace, call);
      access.reads.insert(access.reads.end(), before.reads.begin(), before.reads.end());
      for (Access write : before.writes) {
        write.covers &= launch.alternatives.size() == 1;
        access.writes.push_back(write);
      }
    }
    const auto known =
        uses ? uses(trace.kernels[static_cast<size_t>(one.kernel)]) : std::vector<ParameterUse>();
    // A descriptor also covers its shape and stride parameters, so positions in `known` run ahead of the
    // arguments'.
    size_t parameter = 0;
    for (const LaunchArg& arg : one.args) {
      ValueId id = -1;
      const ParameterUse use = parameter < known.size() ? known[parameter] : ParameterUse{};
      ++parameter;
      if (const auto* pointer = std::get_if<PointerArg>(&arg)) id = pointer->value;
      if (const auto* descriptor = std::get_if<DescriptorArg>(&arg)) {
        id = descriptor->value;
        parameter += 2 * descriptor->shape.size();
      }
      if (id < 0) continue;
      if (use.read && read.insert(collect.storage_of(id)).second)
        access.reads.push_back(collect.of_storage(id, false));
      if (!use.written) continue;
      if (written.insert(collect.storage_of(id)).second) {
        access.writes.push_back(collect.of_storage(id, false));
        access.writes.back().perhaps = use.chosen;
      } else if (!use.chosen) {
        for (Access& write : access.writes) write.perhaps &= write.storage != collect.storage_of(id);
      }
    }
  }
  return access;
}

StepAccess access_of(const Trace& trace, const Step& step, const KernelUses& uses) {
  if (const auto* call = std::get_if<Call>(&step)) return access_of(trace, *call);
  return access_of(trace, std::get<Launch>(step), uses);
}

}  // namespace nereid::trace
