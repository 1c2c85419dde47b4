#include "nereid/train/run_changes.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

#include "nereid/train/toml_table.h"

namespace nereid::train {
namespace {

void collect(const toml::table& table, const std::string& prefix,
             std::map<std::string, std::string>& values) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      collect(*inner, key + ".", values);
      continue;
    }
    std::ostringstream text;
    node.visit([&](const auto& value) { text << value; });
    values[key] = text.str();
  }
}

Result<std::map<std::string, std::string>> values_of(std::string_view text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return input_error("{}:{}:{}: {}", name, parsed.error().source().begin.line,
                       parsed.error().source().begin.column, parsed.error().description());
  std::map<std::string, std::string> values;
  collect(parsed.table(), "", values);
  return values;
}

}  // namespace

Result<std::vector<KeyChange>> run_file_changes(std::string_view before, const std::string& before_name,
                                                std::string_view after, const std::string& after_name) {
  NEREID_TRY(auto old_values, values_of(before, before_name));
  NEREID_TRY(auto new_values, values_of(after, after_name));
  std::set<std::string> keys;
  for (const auto* values : {&old_values, &new_values})
    for (const auto& [key, value] : *values) keys.insert(key);
  std::vector<KeyChange> changes;
  for (const auto& key : keys)
    if (old_values[key] != new_values[key]) changes.push_back({key, old_values[key], new_values[key]});
  return changes;
}

std::string to_string(const KeyChange& change) {
  const auto text = [](const std::string& value) { return value.empty() ? "absent" : value; };
  return fmt::format("{}: {}, now {}", change.key, text(change.before), text(change.after));
}

}  // namespace nereid::train
