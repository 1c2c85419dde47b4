#include "nereid/train/toml_table.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace nereid::train {
namespace {

std::string value_text(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (const auto* array = node.as_array()) return fmt::format("an array of {} items", array->size());
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  std::string text = out.str();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string interval_text(const Interval& interval) {
  return fmt::format("a number {} {} and {} {}", interval.above ? "above" : "of at least", interval.lowest,
                     interval.below ? "below" : "at most", interval.highest);
}

}  // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, std::string name) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return input_error("{}:{}:{}: {}", name, parsed.error().source().begin.line,
                       parsed.error().source().begin.column, parsed.error().description());
  TomlDocument document;
  document.name_ = std::move(name);
  document.root_ = std::move(parsed).table();
  return document;
}

Status TomlDocument::status() const {
  if (wrong_.empty()) return ok_status();
  auto lines = wrong_;
  std::ranges::stable_sort(lines, {}, [](const auto& line) { return line.first; });
  std::string message;
  for (const auto& [line, what] : lines)
    message += fmt::format("{}{}:{}: {}", message.empty() ? "" : "\n", name_, std::max(line, 1u), what);
  return Error{message, Blame::kInput};
}

TomlTable::TomlTable(TomlTable&& other) noexcept
    : document_(other.document_),
      table_(std::exchange(other.table_, nullptr)),
      path_(std::move(other.path_)),
      known_(std::move(other.known_)),
      without_default_(std::move(other.without_default_)) {}

TomlTable::~TomlTable() {
  if (table_ == nullptr) return;
  std::string all;
  for (const auto& name : known_) all += (all.empty() ? "" : ", ") + name;
  for (const auto& [key, node] : *table_)
    if (!known_.contains(key.str()))
      document_->wrong(
          key.source().begin.line,
          fmt::format("{} has no key '{}'; it has {}", path_.empty() ? "a run file" : path_, key.str(), all));
}

std::string TomlTable::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::node* TomlTable::find(std::string_view key) {
  known_.emplace(key);
  return table_->get(key);
}

void TomlTable::expected(const toml::node& node, const std::string& path, std::string_view expected) {
  document_->wrong(node.source().begin.line,
                   fmt::format("{}: expected {}, got {}", path, expected, value_text(node)));
}

void TomlTable::note(std::string_view key, std::string type, std::string initial) {
  std::string path = path_of(key);
  auto& keys = document_->keys_;
  if (std::ranges::find(keys, path, &TomlKey::path) != keys.end()) return;
  if (without_default_.contains(key)) initial.clear();
  keys.push_back({std::move(path), std::move(type), std::move(initial)});
}

void TomlTable::note_choice(std::string_view key, const std::vector<std::string_view>& names,
                            std::string_view initial) {
  std::string all;
  for (const auto name : names) all += fmt::format("{}{}", all.empty() ? "one of " : ", ", name);
  note(key, std::move(all), fmt::format("\"{}\"", initial));
}

bool TomlTable::has(std::string_view key) {
  without_default_.emplace(key);
  return table_->contains(key);
}

std::optional<int64_t> TomlTable::integer_of(const toml::node& node, const std::string& path, int64_t lowest,
                                             int64_t highest) {
  const auto* value = node.as_integer();
  if (value != nullptr && value->get() >= lowest && value->get() <= highest) return value->get();
  expected(node, path, fmt::format("an integer from {} to {}", lowest, highest));
  return std::nullopt;
}

std::optional<double> TomlTable::real_of(const toml::node& node, const std::string& path,
                                         const Interval& interval) {
  if (const auto value = node.is_number() ? node.value<double>() : std::nullopt) {
    const bool enough = interval.above ? *value > interval.lowest : *value >= interval.lowest;
    const bool little = interval.below ? *value < interval.highest : *value <= interval.highest;
    if (enough && little) return value;
  }
  expected(node, path, interval_text(interval));
  return std::nullopt;
}

std::optional<std::string> TomlTable::text_of(const toml::node& node, const std::string& path) {
  if (const auto* value = node.as_string()) return value->get();
  expected(node, path, "a text in quotes");
  return std::nullopt;
}

void TomlTable::integer(std::string_view key, int64_t& value, int64_t lowest, int64_t highest) {
  note(key, fmt::format("integer from {} to {}", lowest, highest), fmt::to_string(value));
  if (const auto* node = find(key))
    if (const auto read = integer_of(*node, path_of(key), lowest, highest)) value = *read;
}

void TomlTable::real(std::string_view key, double& value, Interval interval) {
  note(key, interval_text(interval).substr(2), fmt::to_string(value));
  if (const auto* node = find(key))
    if (const auto read = real_of(*node, path_of(key), interval)) value = *read;
}

void TomlTable::boolean(std::string_view key, bool& value) {
  note(key, "boolean", value ? "true" : "false");
  const auto* node = find(key);
  if (node == nullptr) return;
  if (const auto* flag = node->as_boolean())
    value = flag->get();
  else
    expected(*node, path_of(key), "true or false");
}

void TomlTable::text(std::string_view key, std::string& value) {
  note(key, "string", fmt::format("\"{}\"", value));
  if (const auto* node = find(key))
    if (auto read = text_of(*node, path_of(key))) value = *std::move(read);
}

template <typename T, typename Read>
void TomlTable::list(std::string_view key, std::vector<T>& values, std::string_view what, const Read& read) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto* array = node->as_array();
  if (array == nullptr) return expected(*node, path_of(key), what);
  values.clear();
  for (size_t i = 0; i < array->size(); ++i)
    if (auto item = read((*array)[i], fmt::format("{}[{}]", path_of(key), i)))
      values.push_back(*std::move(item));
}

void TomlTable::texts(std::string_view key, std::vector<std::string>& values) {
  note(key, "array of strings", "[]");
  list(key, values, "an array of texts",
       [&](const toml::node& node, const std::string& path) { return text_of(node, path); });
}

void TomlTable::integers(std::string_view key, std::vector<int64_t>& values, int64_t lowest,
                         int64_t highest) {
  note(key, "array of integers", "[]");
  list(key, values, "an array of integers", [&](const toml::node& node, const std::string& path) {
    return integer_of(node, path, lowest, highest);
  });
}

void TomlTable::reals(std::string_view key, std::vector<double>& values, Interval interval) {
  note(key, "array of numbers", "[]");
  list(key, values, "an array of numbers",
       [&](const toml::node& node, const std::string& path) { return real_of(node, path, interval); });
}

std::optional<int> TomlTable::chosen(std::string_view key, const std::vector<std::string_view>& names) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string()) {
    const auto found = std::ranges::find(names, std::string_view(value->get()));
    if (found != names.end()) return static_cast<int>(found - names.begin());
  }
  std::string all;
  for (const auto name : names) all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", name);
  expected(*node, path_of(key), "one of " + all);
  return std::nullopt;
}

std::optional<TomlTable> TomlTable::table(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* table = node->as_table();
  if (table == nullptr) {
    expected(*node, path_of(key), fmt::format("a table [{}]", path_of(key)));
    return std::nullopt;
  }
  return TomlTable(*document_, *table, path_of(key));
}

void TomlTable::wrong(std::string_view key, std::string_view expected) {
  const auto* node = find(key);
  if (node != nullptr) return this->expected(*node, path_of(key), expected);
  document_->wrong(table_->source().begin.line,
                   fmt::format("{}: expected {}, but it is missing", path_of(key), expected));
}

void TomlTable::required(std::string_view key, std::string_view expected) {
  without_default_.emplace(key);
  if (find(key) == nullptr) wrong(key, expected);
}

}  // namespace nereid::train
