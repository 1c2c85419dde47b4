#include "nereid/tracer/reference_inputs.h"

#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::tracer {
namespace {

using namespace trace;

// Copies arguments into a smaller trace, and of the values and storages what they name.
class Extract {
 public:
  explicit Extract(const Trace& from) : from_(from) {}

  Arg take(const Arg& arg) {
    Arg copy = arg;
    rename(copy);
    return copy;
  }
  Trace& trace() { return to_; }

 private:
  void rename(Arg& arg) {
    if (auto* tensor = std::get_if<TensorRef>(&arg.node)) {
      tensor->value = value(tensor->value);
    } else if (auto* list = std::get_if<List>(&arg.node)) {
      for (Arg& item : list->items) rename(item);
    } else if (auto* dict = std::get_if<Dict>(&arg.node)) {
      for (auto& item : dict->items) rename(item.second);
    }
  }

  ValueId value(ValueId id) {
    const auto [found, is_new] = values_.try_emplace(id, static_cast<ValueId>(to_.values.size()));
    if (is_new) {
      Value copy = from_.values[static_cast<size_t>(id)];
      copy.storage = storage(copy.storage, !is_floating(copy.dtype));
      to_.values.push_back(std::move(copy));
    }
    return found->second;
  }

  StorageId storage(StorageId id, bool integral) {
    const auto [found, is_new] = storages_.try_emplace(id, static_cast<StorageId>(to_.storages.size()));
    const Storage& original = from_.storages[static_cast<size_t>(id)];
    if (is_new) {
      to_.storages.push_back(original);
      to_.storages.back().data.clear();
      to_.storages.back().role = Role::kInput;
    }
    if (integral) to_.storages[static_cast<size_t>(found->second)].data = original.data;
    return found->second;
  }

  const Trace& from_;
  Trace to_;
  std::map<ValueId, ValueId> values_;
  std::map<StorageId, StorageId> storages_;
};

}  // namespace

Json reference_inputs(const Trace& reference) {
  Extract extract(reference);
  extract.trace().init_inputs = extract.take(reference.init_inputs);
  for (const Phase& phase : reference.phases) {
    if (phase.kind != PhaseKind::kMakeInputs) continue;
    Phase inputs;
    inputs.kind = PhaseKind::kMakeInputs;
    inputs.call = phase.call;
    inputs.inputs = extract.take(phase.inputs);
    extract.trace().phases.push_back(std::move(inputs));
  }
  const Json document = encode(extract.trace());
  Json inputs = Json::array();
  for (const Json& phase : document.at("phases")) inputs.push_back(phase.at("inputs"));
  return {{"storages", document.at("storages")},
          {"values", document.at("values")},
          {"inputs", inputs},
          {"init_inputs", document.at("init_inputs")}};
}

}  // namespace nereid::tracer
