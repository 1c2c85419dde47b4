#include "nereid/compiler/output/python_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "nereid/render/python_text.h"
#include "nereid/trace/notation.h"

namespace nereid::compiler {
namespace {

std::string list_text(const std::vector<std::string>& items, bool tuple) {
  if (!tuple) return fmt::format("[{}]", fmt::join(items, ", "));
  return items.size() == 1 ? fmt::format("({},)", items[0]) : fmt::format("({})", fmt::join(items, ", "));
}

// "Out" of ":Out" and of "transformers.modeling_outputs:Out"; imports_of_types brings in the latter.
std::string name_of_global(const std::string& name) { return name.substr(name.find(':') + 1); }

struct Writer {
  const std::function<std::string(trace::ValueId)>& tensor;
  const std::string& device;

  std::string operator()(const trace::None&) const { return "None"; }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(int64_t whole) const { return std::to_string(whole); }
  std::string operator()(double real) const { return render::float_text(real); }
  std::string operator()(const std::complex<double>& z) const {
    return fmt::format("complex({}, {})", z.real(), z.imag());
  }
  std::string operator()(const trace::Text& text) const { return render::quoted_text(text.text); }
  std::string operator()(const trace::TensorRef& ref) const { return tensor(ref.value); }
  std::string operator()(const trace::Named& named) const {
    if (named.kind == "device") return device;
    if (named.kind == "dtype")
      if (const auto type = trace::dtype_from_string(named.name)) return render::dtype_text(*type);
    if (named.kind == "generator") return "None";
    if (named.kind == "global") return name_of_global(named.name);
    return named.name.starts_with("torch.") ? named.name : "torch." + named.name;
  }
  std::string operator()(const trace::List& list) const {
    std::vector<std::string> items;
    for (const auto& item : list.items) items.push_back(std::visit(*this, item.node));
    return list_text(items, list.tuple);
  }
  std::string operator()(const trace::Dict& dict) const {
    std::vector<std::string> items;
    const std::string name = name_of_global(dict.type);
    if (dict.kind == trace::Dict::Kind::kEnum)
      for (const auto& item : dict.items)
        if (const auto* member = std::get_if<trace::Text>(&item.second.node);
            member != nullptr && item.first == "name")
          return fmt::format("{}.{}", name, member->text);
    if (dict.kind != trace::Dict::Kind::kDict) {
      for (const auto& item : dict.items)
        items.push_back(item.first + "=" + std::visit(*this, item.second.node));
      return fmt::format("{}({})", name, fmt::join(items, ", "));
    }
    for (const auto& item : dict.items)
      items.push_back(render::quoted_text(item.first) + ": " + std::visit(*this, item.second.node));
    return fmt::format("{{{}}}", fmt::join(items, ", "));
  }
  std::string operator()(const trace::Opaque&) const { return "None"; }
};

}  // namespace

void imports_of_types(const trace::Arg& arg, std::set<std::string>& lines) {
  if (const auto* list = std::get_if<trace::List>(&arg.node))
    for (const auto& item : list->items) imports_of_types(item, lines);
  const auto* dict = std::get_if<trace::Dict>(&arg.node);
  if (dict == nullptr) return;
  for (const auto& item : dict->items) imports_of_types(item.second, lines);
  const size_t colon = dict->type.find(':');
  if (dict->kind == trace::Dict::Kind::kDict || colon == dict->type.npos || colon == 0) return;
  const std::string name = dict->type.substr(colon + 1);
  lines.insert(
      fmt::format("from {} import {}\n", dict->type.substr(0, colon), name.substr(0, name.find('.'))));
}

void own_types(const trace::Arg& arg, std::set<std::string>& names) {
  if (const auto* list = std::get_if<trace::List>(&arg.node))
    for (const auto& item : list->items) own_types(item, names);
  const auto* dict = std::get_if<trace::Dict>(&arg.node);
  if (dict == nullptr) return;
  for (const auto& item : dict->items) own_types(item.second, names);
  if (dict->type.starts_with(':')) names.insert(dict->type.substr(1, dict->type.find('.') - 1));
}

std::string arg_python(const trace::Arg& arg, const std::function<std::string(trace::ValueId)>& tensor,
                       const std::string& device) {
  return std::visit(Writer{tensor, device}, arg.node);
}

std::string attribute_text(const std::string& name) {
  std::string text = "self", part;
  for (const char c : name + ".") {
    if (c != '.') {
      part += c;
      continue;
    }
    const bool number = std::ranges::all_of(part, [](char d) { return d >= '0' && d <= '9'; });
    text += number ? "[" + part + "]" : "." + part;
    part.clear();
  }
  return text;
}

std::string call_python(const trace::Call& call, const std::function<std::string(trace::ValueId)>& tensor,
                        const std::string& device) {
  const std::string name = call.op.substr(call.op.find("::") + 2);
  std::vector<std::string> args;
  for (const auto& arg : call.args) args.push_back(arg_python(arg, tensor, device));
  for (const auto& [key, arg] : call.kwargs)
    if (!std::holds_alternative<trace::None>(arg.node))
      args.push_back(fmt::format("{}={}", key, arg_python(arg, tensor, device)));
  return fmt::format("torch.ops.aten.{}{}({})", name, name.find('.') == name.npos ? ".default" : "",
                     fmt::join(args, ", "));
}

}  // namespace nereid::compiler
