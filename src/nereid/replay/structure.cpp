#include "nereid/replay/structure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace nereid::replay {
namespace {

using trace::Arg;

std::string describe(const trace::Value& value) {
  return fmt::format("{}[{}]", trace::to_string(value.dtype), fmt::join(value.sizes, ", "));
}

std::string describe(const Arg& arg) {
  struct Visitor {
    std::string operator()(const trace::None&) { return "None"; }
    std::string operator()(bool b) { return b ? "True" : "False"; }
    std::string operator()(int64_t i) { return std::to_string(i); }
    std::string operator()(double d) { return fmt::format("{}", d); }
    std::string operator()(const std::complex<double>& c) {
      return fmt::format("{}+{}j", c.real(), c.imag());
    }
    std::string operator()(const trace::Text& t) { return "'" + t.text + "'"; }
    std::string operator()(const trace::TensorRef&) { return "a tensor"; }
    std::string operator()(const trace::Named& n) { return n.name; }
    std::string operator()(const trace::List& l) {
      return fmt::format("a {} of {}", l.tuple ? "tuple" : "list", l.items.size());
    }
    std::string operator()(const trace::Dict& d) {
      using Kind = trace::Dict::Kind;
      if (d.kind == Kind::kDict) return fmt::format("a dict of {}", d.items.size());
      const std::string name = d.type.substr(d.type.find(':') + 1);
      if (d.kind == Kind::kNamedTuple) return fmt::format("the named tuple {} of {}", name, d.items.size());
      if (d.kind == Kind::kMapping) return fmt::format("the output class {} of {}", name, d.items.size());
      return fmt::format("an object of class {}", name);
    }
    std::string operator()(const trace::Opaque& o) { return o.type; }
  };
  return std::visit(Visitor{}, arg.node);
}

class Pairer {
 public:
  Pairer(const trace::Trace& reference, const trace::Trace& candidate)
      : reference_(reference), candidate_(candidate) {}

  void walk(const Arg& want, const Arg& got, const std::string& path) {
    if (!out.difference.empty()) return;
    const auto* want_list = std::get_if<trace::List>(&want.node);
    const auto* got_list = std::get_if<trace::List>(&got.node);
    const auto* want_dict = std::get_if<trace::Dict>(&want.node);
    const auto* got_dict = std::get_if<trace::Dict>(&got.node);
    const auto* want_tensor = std::get_if<trace::TensorRef>(&want.node);
    const auto* got_tensor = std::get_if<trace::TensorRef>(&got.node);
    if (want_tensor && got_tensor) return tensors(want_tensor->value, got_tensor->value, path);
    if (want_list && got_list && want_list->items.size() == got_list->items.size()) {
      for (size_t i = 0; i < want_list->items.size(); ++i)
        walk(want_list->items[i], got_list->items[i], fmt::format("{}[{}]", path, i));
      return;
    }
    // Places of a tuple are those of a named tuple.
    if (want_list && got_dict && got_dict->kind == trace::Dict::Kind::kNamedTuple &&
        want_list->items.size() == got_dict->items.size()) {
      for (size_t i = 0; i < want_list->items.size(); ++i)
        walk(want_list->items[i], got_dict->items[i].second, fmt::format("{}[{}]", path, i));
      return;
    }
    if (want_dict && got_dict && serves(*want_dict, *got_dict)) return dicts(*want_dict, *got_dict, path);
    if (same_leaf(want, got)) return;
    out.difference = fmt::format("{}: expected {}, got {}", path, describe(want), describe(got));
  }

  Pairing out;

 private:
  struct Access {
    bool keys = false, attributes = false, places = false;
  };
  static Access access(const trace::Dict& dict) {
    using Kind = trace::Dict::Kind;
    return {.keys = dict.kind == Kind::kDict || dict.kind == Kind::kMapping,
            .attributes = dict.kind != Kind::kDict,
            .places = dict.kind == Kind::kNamedTuple};
  }
  // Whether code that reads the one as its class allows can read the other so.
  static bool serves(const trace::Dict& want, const trace::Dict& got) {
    if (want.kind == trace::Dict::Kind::kEnum || got.kind == trace::Dict::Kind::kEnum)
      return want.kind == got.kind;
    const Access asked = access(want), given = access(got);
    return (!asked.keys || given.keys) && (!asked.attributes || given.attributes) &&
           (!asked.places || (given.places && same_order(want, got)));
  }
  static bool same_order(const trace::Dict& want, const trace::Dict& got) {
    return std::ranges::equal(want.items, got.items, {}, &trace::DictItem::first, &trace::DictItem::first);
  }

  void tensors(trace::ValueId want, trace::ValueId got, const std::string& path) {
    const auto& w = reference_.values[want];
    const auto& g = candidate_.values[got];
    if (w.dtype != g.dtype || w.sizes != g.sizes)
      out.difference = fmt::format("{}: expected {}, got {}", path, describe(w), describe(g));
    else
      out.pairs.push_back({path, want, got});
  }

  void dicts(const trace::Dict& want, const trace::Dict& got, const std::string& path) {
    for (const auto& [key, value] : want.items) {
      const auto it = std::find_if(got.items.begin(), got.items.end(),
                                   [&](const auto& item) { return item.first == key; });
      const bool keyed = want.kind == trace::Dict::Kind::kDict;
      if (it == got.items.end()) {
        out.difference =
            fmt::format("{}: expected the {} '{}', which is missing", path, keyed ? "key" : "field", key);
        return;
      }
      walk(value, it->second, keyed ? fmt::format("{}['{}']", path, key) : fmt::format("{}.{}", path, key));
    }
    if (want.items.size() != got.items.size() && out.difference.empty())
      out.difference =
          fmt::format("{}: expected {} {}, got {}", path, want.items.size(),
                      want.kind == trace::Dict::Kind::kDict ? "keys" : "fields", got.items.size());
  }

  static bool same_leaf(const Arg& want, const Arg& got) {
    if (want.node.index() != got.node.index()) return false;
    struct Visitor {
      const Arg& got;
      bool operator()(const trace::None&) { return true; }
      bool operator()(bool b) { return b == std::get<bool>(got.node); }
      bool operator()(int64_t i) { return i == std::get<int64_t>(got.node); }
      bool operator()(double d) {
        const double g = std::get<double>(got.node);
        return d == g || (std::isnan(d) && std::isnan(g));
      }
      bool operator()(const std::complex<double>& c) { return c == std::get<std::complex<double>>(got.node); }
      bool operator()(const trace::Text& t) { return t.text == std::get<trace::Text>(got.node).text; }
      bool operator()(const trace::TensorRef&) { return false; }
      bool operator()(const trace::Named& n) { return n.name == std::get<trace::Named>(got.node).name; }
      bool operator()(const trace::List&) { return false; }
      bool operator()(const trace::Dict&) { return false; }
      bool operator()(const trace::Opaque& o) { return o.type == std::get<trace::Opaque>(got.node).type; }
    };
    return std::visit(Visitor{got}, want.node);
  }

  const trace::Trace& reference_;
  const trace::Trace& candidate_;
};

}  // namespace

const trace::Phase* judged_forward(const trace::Trace& trace) {
  const trace::Phase* judged = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) judged = &phase;
  return judged;
}

Pairing pair_outputs(const trace::Trace& reference, const trace::Trace& candidate) {
  Pairer pairer(reference, candidate);
  pairer.walk(judged_forward(reference)->output, judged_forward(candidate)->output, "output");
  return std::move(pairer.out);
}

namespace {

void order_as(const Arg& want, Arg& got) {
  const auto* want_list = std::get_if<trace::List>(&want.node);
  const auto* want_dict = std::get_if<trace::Dict>(&want.node);
  auto* got_list = std::get_if<trace::List>(&got.node);
  auto* got_dict = std::get_if<trace::Dict>(&got.node);
  for (size_t i = 0; want_list && got_list && i < std::min(want_list->items.size(), got_list->items.size());
       ++i)
    order_as(want_list->items[i], got_list->items[i]);
  for (size_t i = 0; want_list && got_dict && i < std::min(want_list->items.size(), got_dict->items.size());
       ++i)
    order_as(want_list->items[i], got_dict->items[i].second);
  if (!want_dict || !got_dict) return;
  // The places of a named tuple mean something: another order is a difference.
  if (want_dict->kind == trace::Dict::Kind::kNamedTuple) {
    for (size_t i = 0; i < std::min(want_dict->items.size(), got_dict->items.size()); ++i)
      if (want_dict->items[i].first == got_dict->items[i].first)
        order_as(want_dict->items[i].second, got_dict->items[i].second);
    return;
  }
  size_t place = 0;
  for (const auto& [key, value] : want_dict->items) {
    const auto found =
        std::find_if(got_dict->items.begin() + static_cast<std::ptrdiff_t>(place), got_dict->items.end(),
                     [&](const auto& item) { return item.first == key; });
    if (found == got_dict->items.end()) continue;
    const auto to = got_dict->items.begin() + static_cast<std::ptrdiff_t>(place++);
    std::rotate(to, found, found + 1);
    order_as(value, to->second);
  }
}

}  // namespace

trace::Trace ordered_as(const trace::Trace& reference, trace::Trace candidate) {
  const trace::Phase* want = judged_forward(reference);
  for (auto phase = candidate.phases.rbegin(); want != nullptr && phase != candidate.phases.rend(); ++phase)
    if (phase->kind == trace::PhaseKind::kForward) {
      order_as(want->output, phase->output);
      break;
    }
  return candidate;
}

trace::Trace pinned_as(trace::Trace reference, const trace::Trace& candidate) {
  const auto inputs_of = [](const trace::Trace& trace, int call) {
    for (const auto& phase : trace.phases)
      if (phase.kind == trace::PhaseKind::kMakeInputs && phase.call == call)
        return trace::tensors_in(phase.inputs);
    return std::vector<trace::ValueId>{};
  };
  for (const auto& phase : candidate.phases) {
    if (phase.kind != trace::PhaseKind::kMakeInputs) continue;
    const auto theirs = trace::tensors_in(phase.inputs), ours = inputs_of(reference, phase.call);
    for (size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i) {
      auto& storage = reference.storages[reference.values[ours[i]].storage];
      if (candidate.storages[candidate.values[theirs[i]].storage].pinned && !storage.data.empty())
        storage.pinned = true;
    }
  }
  return reference;
}

}  // namespace nereid::replay
