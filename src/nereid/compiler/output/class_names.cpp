#include "nereid/compiler/output/class_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/compiler/output/source_file.h"

namespace nereid::compiler {

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

std::string argument_text(const SourceFile& file, size_t place) {
  const auto& all = file.parameters;
  for (size_t p = 0; p < all.size() && p <= place; ++p)
    if (all[p].rest) return all[p].name + "[" + std::to_string(place - p) + "]";
  return place < all.size() ? all[place].name : "";
}

std::string argument_text(const SourceFile& file, const std::string& name) {
  for (const Parameter& parameter : file.parameters)
    if (!parameter.rest && parameter.name == name) return name;
  return file.keywords.empty() ? "" : file.keywords + "[\"" + name + "\"]";
}

}  // namespace nereid::compiler
