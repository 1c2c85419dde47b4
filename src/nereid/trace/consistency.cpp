#include "nereid/trace/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

namespace nereid::trace {
namespace {

using Reason = std::optional<std::string>;

const Phase* phase_of(const Trace& trace, PhaseKind kind, int call) {
  for (const Phase& phase : trace.phases)
    if (phase.kind == kind && phase.call == call) return &phase;
  return nullptr;
}

// Compares the inputs of two traces: as trees, and tensor by tensor.
class GivenInputs {
 public:
  GivenInputs(const Trace& given, const Trace& found) : given_(given), found_(found) {}

  bool same(const Arg& given, const Arg& found) {
    // What the tracer has no word for comes back as it can.
    if (std::holds_alternative<Opaque>(given.node)) return true;
    // An object is made again from its fields, as a class that the candidate has; its tensors are those
    // given.
    if (const auto* dict = std::get_if<Dict>(&given.node); dict != nullptr && dict->kind != Dict::Kind::kDict)
      return same_tensors(tensors_in(given), tensors_in(found));
    if (given.node.index() != found.node.index()) return false;
    if (const auto* tensor = std::get_if<TensorRef>(&given.node))
      return same_tensor(tensor->value, std::get<TensorRef>(found.node).value);
    if (const auto* list = std::get_if<List>(&given.node)) {
      const auto& other = std::get<List>(found.node);
      return list->tuple == other.tuple && list->items.size() == other.items.size() &&
             std::equal(list->items.begin(), list->items.end(), other.items.begin(),
                        [this](const Arg& a, const Arg& b) { return same(a, b); });
    }
    if (const auto* dict = std::get_if<Dict>(&given.node)) {
      const auto& other = std::get<Dict>(found.node);
      return dict->items.size() == other.items.size() &&
             std::equal(dict->items.begin(), dict->items.end(), other.items.begin(),
                        [this](const DictItem& a, const DictItem& b) {
                          return a.first == b.first && same(a.second, b.second);
                        });
    }
    return same_scalar(given, found);
  }

 private:
  bool same_tensors(const std::vector<ValueId>& given, const std::vector<ValueId>& found) {
    return std::equal(given.begin(), given.end(), found.begin(), found.end(),
                      [this](ValueId a, ValueId b) { return same_tensor(a, b); });
  }
  static bool same_number(double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b);
  }
  static bool same_scalar(const Arg& given, const Arg& found) {
    if (const auto* flag = std::get_if<bool>(&given.node)) return *flag == std::get<bool>(found.node);
    if (const auto* number = std::get_if<int64_t>(&given.node))
      return *number == std::get<int64_t>(found.node);
    if (const auto* number = std::get_if<double>(&given.node))
      return same_number(*number, std::get<double>(found.node));
    if (const auto* number = std::get_if<std::complex<double>>(&given.node)) {
      const auto& other = std::get<std::complex<double>>(found.node);
      return same_number(number->real(), other.real()) && same_number(number->imag(), other.imag());
    }
    if (const auto* text = std::get_if<Text>(&given.node))
      return text->text == std::get<Text>(found.node).text;
    if (const auto* named = std::get_if<Named>(&given.node))
      return named->kind == std::get<Named>(found.node).kind &&
             named->name == std::get<Named>(found.node).name;
    return true;  // None
  }

  bool same_tensor(ValueId given, ValueId found) {
    const Value& a = given_.values[static_cast<size_t>(given)];
    const Value& b = found_.values[static_cast<size_t>(found)];
    if (a.dtype != b.dtype || a.sizes != b.sizes || a.strides != b.strides || a.offset != b.offset)
      return false;
    const Storage& from = given_.storages[static_cast<size_t>(a.storage)];
    const Storage& to = found_.storages[static_cast<size_t>(b.storage)];
    if (to.role != Role::kInput || to.device != from.device || to.bytes < from.bytes) return false;
    if (!to.data.empty() && to.data != from.data) return false;
    // What shared a storage still does, and nothing else.
    const auto [there, is_new] = pairs_.try_emplace(a.storage, b.storage);
    return there->second == b.storage && (!is_new || taken_.insert(b.storage).second);
  }

  const Trace& given_;
  const Trace& found_;
  std::map<StorageId, StorageId> pairs_;
  std::set<StorageId> taken_;
};

Reason wrong_phases(const Trace& trace, int calls) {
  std::vector<std::pair<PhaseKind, int>> expected = {{PhaseKind::kModule, 0}, {PhaseKind::kInit, 0}};
  for (int call = 0; call < calls; ++call) {
    expected.emplace_back(PhaseKind::kMakeInputs, call);
    expected.emplace_back(PhaseKind::kForward, call);
  }
  const auto is = [](const Phase& phase, const std::pair<PhaseKind, int>& other) {
    return phase.kind == other.first && phase.call == other.second;
  };
  if (!std::equal(trace.phases.begin(), trace.phases.end(), expected.begin(), expected.end(), is))
    return fmt::format("its phases are not module, init and then the inputs and forward of {} calls", calls);
  return {};
}

Reason wrong_inputs(const Trace& candidate, const Trace& reference) {
  std::set<StorageId> inputs;
  const auto take = [&](const Arg& tree) {
    for (const ValueId value : tensors_in(tree))
      inputs.insert(candidate.values[static_cast<size_t>(value)].storage);
  };
  if (!GivenInputs(reference, candidate).same(reference.init_inputs, candidate.init_inputs))
    return "the constructor's arguments are not those that were given";
  take(candidate.init_inputs);
  for (const Phase& phase : candidate.phases) {
    if (phase.kind != PhaseKind::kMakeInputs) continue;
    const Phase* given = phase_of(reference, PhaseKind::kMakeInputs, phase.call);
    if (given == nullptr || !GivenInputs(reference, candidate).same(given->inputs, phase.inputs))
      return fmt::format("the inputs of call {} are not those that were given", phase.call);
    if (!phase.steps.empty())
      return fmt::format("the inputs of call {} are made by steps of its own", phase.call);
    take(phase.inputs);
    // The same tree of the same trace.
    const Phase* forward = phase_of(candidate, PhaseKind::kForward, phase.call);
    if (forward == nullptr || tensors_in(forward->inputs) != tensors_in(phase.inputs) ||
        !GivenInputs(candidate, candidate).same(phase.inputs, forward->inputs))
      return fmt::format("forward of call {} got other inputs than were made for it", phase.call);
  }
  for (size_t s = 0; s < candidate.storages.size(); ++s) {
    const Storage& storage = candidate.storages[s];
    if (storage.role == Role::kInput && !inputs.contains(static_cast<StorageId>(s)))
      return fmt::format("storage {} is called an input and is none", s);
  }
  return {};
}

// Walks the steps in their order and sees what has been made.
class Making {
 public:
  explicit Making(const Trace& trace) : trace_(trace), made_(trace.storages.size()) {
    for (size_t s = 0; s < trace.storages.size(); ++s)
      made_[s] = trace.storages[s].role == Role::kConstant || !trace.storages[s].data.empty() ||
                 trace.storages[s].bytes == 0;
    take(trace.init_inputs);
  }

  Reason wrong() {
    for (const Phase& phase : trace_.phases) {
      take(phase.inputs);
      for (size_t i = 0; i < phase.steps.size(); ++i)
        if (const StorageId unmade = unmade_in(phase.steps[i]); unmade >= 0)
          return fmt::format("step {} of {} uses storage {}, which nothing has made", i, name_of(phase),
                             unmade);
      if (const StorageId unmade = first_unmade(phase.output); unmade >= 0)
        return fmt::format("{} returns storage {}, which nothing has made", name_of(phase), unmade);
    }
    for (const State& state : trace_.state)
      if (!is_made(state.value)) return fmt::format("the state {} was never made", state.name);
    return {};
  }

 private:
  static std::string name_of(const Phase& phase) {
    switch (phase.kind) {
      case PhaseKind::kModule:
        return "the module";
      case PhaseKind::kInit:
        return "the constructor";
      case PhaseKind::kMakeInputs:
        return fmt::format("the inputs of call {}", phase.call);
      case PhaseKind::kForward:
        return fmt::format("forward of call {}", phase.call);
    }
    return "?";
  }

  StorageId storage_of(ValueId value) const { return trace_.values[static_cast<size_t>(value)].storage; }
  bool is_made(ValueId value) const { return made_[static_cast<size_t>(storage_of(value))]; }
  void take(const Arg& arg) {
    for (const ValueId value : tensors_in(arg)) made_[static_cast<size_t>(storage_of(value))] = true;
  }
  StorageId first_unmade(const Arg& arg) const {
    for (const ValueId value : tensors_in(arg))
      if (!is_made(value)) return storage_of(value);
    return -1;
  }

  StorageId unmade_in_call(const Call& call) {
    StorageId unmade = -1;
    for (const Arg& arg : call.args)
      if (unmade < 0) unmade = first_unmade(arg);
    for (const auto& [name, arg] : call.kwargs)
      if (unmade < 0) unmade = first_unmade(arg);
    take(call.result);
    return unmade;
  }

  StorageId unmade_in(const Step& step) {
    if (const auto* call = std::get_if<Call>(&step)) return unmade_in_call(*call);
    const auto& launch = std::get<Launch>(step);
    for (const Alternative& alternative : launch.alternatives) {
      if (const StorageId unmade = unmade_in_calls(alternative.before); unmade >= 0) return unmade;
      for (const LaunchArg& arg : alternative.args) {
        ValueId value = -1;
        if (const auto* pointer = std::get_if<PointerArg>(&arg)) value = pointer->value;
        if (const auto* descriptor = std::get_if<DescriptorArg>(&arg)) value = descriptor->value;
        if (value >= 0 && !is_made(value)) return storage_of(value);
      }
    }
    return launch.tuning ? unmade_in_tuning(*launch.tuning) : -1;
  }

  StorageId unmade_in_calls(const std::vector<Call>& calls) {
    StorageId unmade = -1;
    for (const Call& call : calls)
      if (unmade < 0) unmade = unmade_in_call(call);
    return unmade;
  }

  StorageId unmade_in_tuning(const Tuning& tuning) {
    StorageId unmade = -1;
    for (const auto& run : tuning.runs)
      for (const auto* calls : {&run.before, &run.after})
        if (unmade < 0) unmade = unmade_in_calls(*calls);
    return unmade < 0 ? unmade_in_calls(tuning.reset) : unmade;
  }

  const Trace& trace_;
  std::vector<bool> made_;
};

}  // namespace

std::optional<std::string> find_forgery(const Trace& candidate, const Trace& reference, int calls) {
  if (auto reason = wrong_phases(candidate, calls)) return reason;
  if (auto reason = wrong_inputs(candidate, reference)) return reason;
  return Making(candidate).wrong();
}

}  // namespace nereid::trace
