#include "nereid/trace/op_class.h"

#include <algorithm>

#include "nereid/trace/access.h"
#include "nereid/trace/op_table.h"

namespace nereid::trace {
namespace {

OpClass class_of(Listed listed) {
  switch (listed) {
    case Listed::kQuery:
      return OpClass::kQuery;
    case Listed::kView:
      return OpClass::kView;
    case Listed::kAllocation:
      return OpClass::kAllocation;
    case Listed::kFill:
      return OpClass::kFill;
    case Listed::kCast:
      return OpClass::kCast;
    case Listed::kCopy:
      return OpClass::kCopy;
    case Listed::kConcatenation:
      return OpClass::kConcatenation;
    case Listed::kRandom:
      return OpClass::kRandom;
    case Listed::kPointwise:
      return OpClass::kPointwise;
    case Listed::kLoss:
    case Listed::kReduction:
      return OpClass::kReduction;
    case Listed::kScan:
      return OpClass::kScan;
    case Listed::kContraction:
      return OpClass::kContraction;
    case Listed::kConvolution:
      return OpClass::kConvolution;
    case Listed::kAttention:
      return OpClass::kAttention;
    case Listed::kNormalisation:
      return OpClass::kNormalisation;
    case Listed::kPooling:
      return OpClass::kPooling;
    case Listed::kRecurrent:
      return OpClass::kRecurrent;
    case Listed::kIndexing:
      return OpClass::kIndexing;
    case Listed::kSort:
      return OpClass::kSort;
    case Listed::kOther:
      return OpClass::kOther;
  }
  return OpClass::kOther;
}

// What is free bookkeeping when the data is integers: work over indices, not arithmetic that could replace a
// kernel.
bool can_be_bookkeeping(OpClass c) {
  return c == OpClass::kPointwise || c == OpClass::kIndexing || c == OpClass::kSort ||
         c == OpClass::kReduction || c == OpClass::kScan;
}

template <typename F>
void each_tensor(const Call& call, F f) {
  for (const Arg& arg : call.args)
    for (const ValueId id : tensors_in(arg)) f(id);
  for (const auto& [name, arg] : call.kwargs)
    for (const ValueId id : tensors_in(arg)) f(id);
  for (const ValueId id : tensors_in(call.result)) f(id);
}

// index_put and put with accumulate=True add up what falls on one place.
bool accumulates(const Call& call) {
  const OpName name = split_name(call.op);
  if (name.name != "index_put" && name.name != "_index_put_impl" && name.name != "_unsafe_index_put" &&
      name.name != "put")
    return false;
  const auto is_true = [](const Arg& arg) {
    const bool* flag = std::get_if<bool>(&arg.node);
    return flag != nullptr && *flag;
  };
  if (call.args.size() > 3 && is_true(call.args[3])) return true;
  return std::any_of(call.kwargs.begin(), call.kwargs.end(),
                     [&](const auto& item) { return item.first == "accumulate" && is_true(item.second); });
}

}  // namespace

std::string_view to_string(OpClass c) {
  switch (c) {
    case OpClass::kQuery:
      return "query";
    case OpClass::kView:
      return "view";
    case OpClass::kAllocation:
      return "allocation";
    case OpClass::kFill:
      return "fill";
    case OpClass::kCast:
      return "cast";
    case OpClass::kCopy:
      return "copy";
    case OpClass::kConcatenation:
      return "concatenation";
    case OpClass::kBookkeeping:
      return "index bookkeeping";
    case OpClass::kRandom:
      return "random draw";
    case OpClass::kPointwise:
      return "pointwise";
    case OpClass::kIndexing:
      return "indexing";
    case OpClass::kPooling:
      return "pooling";
    case OpClass::kSort:
      return "sort";
    case OpClass::kReduction:
      return "reduction";
    case OpClass::kScan:
      return "scan";
    case OpClass::kNormalisation:
      return "normalisation";
    case OpClass::kRecurrent:
      return "recurrent layer";
    case OpClass::kContraction:
      return "contraction";
    case OpClass::kConvolution:
      return "convolution";
    case OpClass::kAttention:
      return "attention";
    case OpClass::kOther:
      return "other work";
  }
  return "other work";
}

bool is_free(OpClass c) { return c <= OpClass::kBookkeeping; }
bool may_be_small(OpClass c) {
  return c == OpClass::kPointwise || c == OpClass::kRandom || c == OpClass::kIndexing;
}

OpClass listed_class(std::string_view op) {
  const auto found = listed(op);
  return found ? class_of(*found) : OpClass::kOther;
}

OpFacts::OpFacts(const Trace& trace) : trace_(trace), integers_only_(trace.storages.size(), true) {
  for (const Value& value : trace.values)
    if (is_floating(value.dtype)) integers_only_[static_cast<size_t>(value.storage)] = false;
}

bool OpFacts::over_integers_only(const Call& call) const {
  bool integers = true;
  each_tensor(call, [&](ValueId id) {
    integers &= holds_integers_only(trace_.values[static_cast<size_t>(id)].storage);
  });
  return integers;
}

bool OpFacts::as_large_as_its_input(const Call& call) const {
  const auto results = tensors_in(call.result);
  if (results.empty() || call.args.empty()) return false;
  const auto inputs = tensors_in(call.args[0]);
  const auto count = [&](ValueId id) { return element_count(trace_.values[static_cast<size_t>(id)]); };
  return !inputs.empty() && count(results[0]) == count(inputs[0]);
}

OpClass OpFacts::classify_as_work(const Call& call) const {
  const auto found = listed(call.op);
  OpClass c = found ? class_of(*found) : OpClass::kOther;
  if (found == Listed::kLoss && as_large_as_its_input(call)) c = OpClass::kPointwise;
  if (accumulates(call)) c = OpClass::kReduction;
  for (const std::string& part : call.parts) c = std::max(c, listed_class(part));
  if (found && c > OpClass::kAllocation && writes_nothing(trace_, call)) return OpClass::kView;
  if (found && c == OpClass::kView && !writes_nothing(trace_, call))
    c = OpClass::kCopy;  // reshape, contiguous
  return c;
}

OpClass OpFacts::classify(const Call& call) const {
  const OpClass c = classify_as_work(call);
  return can_be_bookkeeping(c) && over_integers_only(call) ? OpClass::kBookkeeping : c;
}

}  // namespace nereid::trace
