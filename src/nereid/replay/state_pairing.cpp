#include "nereid/replay/state_pairing.h"

#include <algorithm>
#include <map>
#include <set>

#include "nereid/base/hash.h"
#include "nereid/trace/notation.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

bool before_forward(const trace::Phase& phase) {
  return phase.kind == trace::PhaseKind::kModule || phase.kind == trace::PhaseKind::kInit;
}

std::optional<double> number(const trace::Arg& arg) {
  if (const auto* b = std::get_if<bool>(&arg.node)) return *b;
  if (const auto* i = std::get_if<int64_t>(&arg.node)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&arg.node)) return *d;
  return std::nullopt;
}

// What a call that makes or overwrites a tensor leaves in all of it.
std::optional<double> fill_of(const trace::Call& call, const std::string& base) {
  const auto argument = [&](size_t index, const char* name) {
    for (const auto& [key, value] : call.kwargs)
      if (key == name) return number(value);
    return index < call.args.size() ? number(call.args[index]) : std::nullopt;
  };
  if (base == "zeros" || base == "zeros_like" || base == "new_zeros" || base == "zero_") return 0;
  if (base == "ones" || base == "ones_like" || base == "new_ones") return 1;
  if (base == "full" || base == "full_like") return argument(1, "fill_value");
  if (base == "new_full") return argument(2, "fill_value");
  if (base == "fill_") return argument(1, "value");
  return std::nullopt;
}

bool covers(const trace::Trace& trace, const trace::Value& value) {
  return trace::element_count(value) * trace::element_bytes(value.dtype) ==
         trace.storages[value.storage].bytes;
}

std::vector<int64_t> without_ones(std::vector<int64_t> sizes) {
  std::erase(sizes, 1);
  return sizes;
}

bool alike(const trace::Value& a, const trace::Value& b) {
  return a.dtype == b.dtype && without_ones(a.sizes) == without_ones(b.sizes);
}

// Tensors that module and init made, besides the state: one value each, in the order of their making.
std::vector<ValueId> unregistered(const trace::Trace& trace) {
  std::set<StorageId> seen;
  for (const auto& state : trace.state) seen.insert(trace.values[state.value].storage);
  std::vector<ValueId> out;
  for (const auto& phase : trace.phases) {
    if (!before_forward(phase)) continue;
    for (const auto& step : phase.steps)
      if (const auto* call = std::get_if<trace::Call>(&step))
        for (const auto value : trace::tensors_in(call->result))
          if (covers(trace, trace.values[value]) && seen.insert(trace.values[value].storage).second)
            out.push_back(value);
  }
  return out;
}

// How module and init make what storages hold: text that is equal where the same operators made it of the
// same constants.
class Recipes {
 public:
  explicit Recipes(const trace::Trace& trace)
      : trace_(trace), texts_(trace.storages.size()), random_(texts_.size()) {
    for (const auto& phase : trace.phases)
      for (const auto& step : phase.steps)
        if (const auto* call = std::get_if<trace::Call>(&step); call && before_forward(phase)) follow(*call);
  }

  bool random(ValueId id) const { return random_[trace_.values[id].storage]; }
  // Nothing where chance had a part in it, or nothing is known.
  std::optional<std::string> of(ValueId id) const {
    const auto storage = trace_.values[id].storage;
    if (random_[storage] || texts_[storage].empty()) return std::nullopt;
    return texts_[storage];
  }

 private:
  void follow(const trace::Call& call) {
    const auto name = trace::split_name(call.op);
    bool chance = trace::listed(call.op) == trace::Listed::kRandom || name.name == "normal" ||
                  name.name == "uniform" || name.name == "bernoulli" || name.name == "exponential";
    std::set<StorageId> given;
    std::string text = call.op + "(";
    for (const auto& arg : call.args) write(arg, text, given);
    for (const auto& [key, arg] : call.kwargs) text += key + "=", write(arg, text, given);
    for (const auto storage : given) chance |= random_[storage];
    std::set<StorageId> made;
    for (const auto result : trace::tensors_in(call.result)) {
      const auto storage = trace_.values[result].storage;
      if (!given.contains(storage) || name.in_place) made.insert(storage);
    }
    if (name.in_place && !call.args.empty())
      for (const auto target : trace::tensors_in(call.args[0])) made.insert(trace_.values[target].storage);
    for (const auto storage : made) {
      random_[storage] = random_[storage] || chance;
      if (call.op == "nereid::constant") text += trace_.storages[storage].data;
      texts_[storage] = sha256_hex(texts_[storage] + text);
    }
  }

  // Tensors by how they are made; that and their view of it is what a call sees. Where they lie is no part of
  // it.
  void write(const trace::Arg& arg, std::string& text, std::set<StorageId>& given) const {
    if (const auto* list = std::get_if<trace::List>(&arg.node)) {
      text += "[";
      for (const auto& item : list->items) write(item, text, given);
      text += "]";
    } else if (const auto* tensor = std::get_if<trace::TensorRef>(&arg.node); tensor && tensor->value >= 0) {
      const auto& value = trace_.values[tensor->value];
      given.insert(value.storage);
      text += fmt::format("{}:{}:{}:{}:{},", texts_[value.storage], trace::to_string(value.dtype),
                          fmt::join(value.sizes, "x"), fmt::join(value.strides, "x"), value.offset);
    } else if (const auto* named = std::get_if<trace::Named>(&arg.node); !named || named->kind != "device") {
      text += trace::arg_text(trace_, arg) + ",";
    }
  }

  const trace::Trace& trace_;
  std::vector<std::string> texts_;
  std::vector<bool> random_;
};

}  // namespace

std::vector<bool> made_by_chance(const trace::Trace& trace) {
  const Recipes recipes(trace);
  std::vector<bool> out;
  for (const auto& state : trace.state) out.push_back(recipes.random(state.value));
  return out;
}

std::optional<double> filled_with(const trace::Trace& trace, ValueId id) {
  const auto storage = trace.values[id].storage;
  std::optional<double> content;
  bool made = false;
  for (const auto& phase : trace.phases) {
    if (!before_forward(phase)) continue;
    for (const auto& step : phase.steps) {
      const auto* call = std::get_if<trace::Call>(&step);
      if (!call) continue;
      const auto results = trace::tensors_in(call->result);
      const auto found = std::ranges::find_if(
          results, [&](ValueId result) { return trace.values[result].storage == storage; });
      if (found == results.end()) continue;
      auto base = call->op.substr(call->op.find("::") == std::string::npos ? 0 : call->op.find("::") + 2);
      base = base.substr(0, base.find('.'));
      if (made && !base.ends_with('_')) continue;  // a view
      made = true;
      content = covers(trace, trace.values[*found]) ? fill_of(*call, base) : std::nullopt;
    }
  }
  return content;
}

StatePairing pair_state(const trace::Trace& reference, const trace::Trace& candidate) {
  StatePairing out;
  std::map<std::string, ValueId> named;
  for (const auto& state : candidate.state) named[state.name] = state.value;
  std::vector<const trace::State*> left;
  std::set<StorageId> taken;
  for (const auto& state : reference.state) {
    const auto found = named.find(state.name);
    if (found != named.end() && alike(reference.values[state.value], candidate.values[found->second])) {
      out.values.emplace_back(state.value, found->second);
      out.registered.push_back(true);
      taken.insert(candidate.values[found->second].storage);
    } else {
      left.push_back(&state);
    }
  }
  if (left.empty()) return out;

  const Recipes recipes(reference), theirs(candidate);
  std::vector<ValueId> others;
  for (const auto& state : candidate.state) others.push_back(state.value);
  const auto loose = unregistered(candidate);
  others.insert(others.end(), loose.begin(), loose.end());
  for (const auto* state : left) {
    const auto content = filled_with(reference, state->value);
    const auto recipe = content ? std::nullopt : recipes.of(state->value);
    const auto fits = [&](ValueId other) {
      return !taken.contains(candidate.values[other].storage) &&
             alike(reference.values[state->value], candidate.values[other]) &&
             (content ? filled_with(candidate, other) == content : theirs.of(other) == recipe);
    };
    const auto found = content || recipe ? std::ranges::find_if(others, fits) : others.end();
    if (found != others.end()) {
      out.values.emplace_back(state->value, *found);
      out.registered.push_back(std::ranges::any_of(
          candidate.state, [&](const trace::State& s) { return s.value == *found && s.parameter; }));
      taken.insert(candidate.values[*found].storage);
    } else if (state->parameter || state->persistent) {
      out.unpaired.push_back(state->name);
    }
  }
  return out;
}

}  // namespace nereid::replay
