#include "nereid/compiler/output/forward_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "nereid/compiler/output/class_names.h"

namespace nereid::compiler {
namespace {

using std::string;
using trace::Arg;

constexpr size_t kSpelledItems = 3;  // of a tuple; of longer ones that are alike "..." is written

// The type of a traced value. `named`: classes that the written file has.
class HintText {
 public:
  explicit HintText(const std::set<string>& named) : named_(named) {}

  string of(const Arg& arg) const { return std::visit(*this, arg.node); }

  string operator()(const trace::None&) const { return "None"; }
  string operator()(bool) const { return "bool"; }
  string operator()(int64_t) const { return "int"; }
  string operator()(double) const { return "float"; }
  string operator()(const std::complex<double>&) const { return "complex"; }
  string operator()(const trace::Text&) const { return "str"; }
  string operator()(const trace::TensorRef&) const { return "torch.Tensor"; }
  string operator()(const trace::Named& named) const {
    return named.kind == "dtype" || named.kind == "device" ? "torch." + named.kind : "object";
  }
  string operator()(const trace::List& list) const {
    std::vector<string> items;
    for (const auto& item : list.items) items.push_back(of(item));
    if (items.empty()) return list.tuple ? "tuple[()]" : "list";
    const bool alike = std::ranges::all_of(items, [&](const string& item) { return item == items[0]; });
    if (!list.tuple) return fmt::format("list[{}]", alike ? items[0] : "object");
    if (alike && items.size() > kSpelledItems) return fmt::format("tuple[{}, ...]", items[0]);
    return fmt::format("tuple[{}]", fmt::join(items, ", "));
  }
  string operator()(const trace::Dict& dict) const {
    if (dict.kind != trace::Dict::Kind::kDict) {
      const string name = dict.type.substr(dict.type.find(':') + 1);
      return named_.contains(name) ? name : "object";
    }
    std::set<string> items;
    for (const auto& item : dict.items) items.insert(of(item.second));
    return fmt::format("dict[str, {}]", items.size() == 1 ? *items.begin() : "object");
  }
  string operator()(const trace::Opaque&) const { return "object"; }

 private:
  const std::set<string>& named_;
};

string hint_of_literal(const string& text) {
  if (text == "True" || text == "False") return "bool";
  if (text.front() == '"' || text.front() == '\'') return "str";
  if (text.find_first_not_of("0123456789-") == text.npos) return "int";
  return text.find_first_not_of("0123456789-.e") == text.npos ? "float" : "object";
}

string trimmed_of(string text) {
  text.erase(0, std::min(text.find_first_not_of(" \n\t"), text.size()));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t')) text.pop_back();
  return text;
}

// The argument that forward got for a parameter; null where it got none.
const Arg* given_for(const Arg& inputs, const string& name, size_t place) {
  if (const auto* list = std::get_if<trace::List>(&inputs.node))
    return place < list->items.size() ? &list->items[place] : nullptr;
  if (const auto* dict = std::get_if<trace::Dict>(&inputs.node);
      dict != nullptr && dict->kind == trace::Dict::Kind::kDict) {
    const auto found = std::ranges::find(dict->items, name, &trace::DictItem::first);
    return found == dict->items.end() ? nullptr : &found->second;
  }
  return place == 0 ? &inputs : nullptr;
}

std::vector<string> parameters_in(const string& signature) {
  std::vector<string> parameters;
  string one;
  int depth = 0;
  for (const char c : signature + ",") {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != ',' || depth > 0) {
      one += c;
      continue;
    }
    if (one = trimmed_of(one); !one.empty()) parameters.push_back(one);
    one.clear();
  }
  return parameters;
}

}  // namespace

std::string forward_head(const trace::Trace& trace, const SourceFile& source) {
  const auto& phase = trace.phases.back();
  std::set<string> own, of_output;
  own_types(phase.inputs, own);
  own_types(phase.output, of_output);
  of_output.insert(own.begin(), own.end());
  std::set<string> lines;
  imports_of_types(phase.output, lines);
  for (const string& line : lines) of_output.insert(trimmed_of(line.substr(line.rfind(' ') + 1)));
  const HintText inputs(own), output(of_output);
  const bool comments = source.signature.find('#') != string::npos;
  std::vector<string> parameters = parameters_in(source.signature);
  for (size_t p = 1; p < parameters.size() && !comments; ++p) {
    string& parameter = parameters[p];
    if (parameter.find(':') != string::npos || parameter == "/" || parameter == "*") continue;
    if (parameter.front() == '*') {
      parameter += ": object";
      continue;
    }
    const size_t equal = parameter.find('=');
    const string name = trimmed_of(parameter.substr(0, equal));
    const string otherwise = equal == string::npos ? "" : trimmed_of(parameter.substr(equal + 1));
    const Arg* given = given_for(phase.inputs, name, p - 1);
    string hint = given != nullptr    ? inputs.of(*given)
                  : otherwise.empty() ? "object"
                                      : hint_of_literal(otherwise);
    if (otherwise == "None" && hint != "None" && hint != "object") hint += " | None";
    parameter = fmt::format("{}: {}{}{}", name, hint, otherwise.empty() ? "" : " = ", otherwise);
  }
  return fmt::format(
      "def forward({}) -> {}:", comments ? source.signature : fmt::format("{}", fmt::join(parameters, ", ")),
      output.of(phase.output));
}

}  // namespace nereid::compiler
