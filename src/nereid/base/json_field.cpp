#include "nereid/base/json_field.h"

namespace nereid {
namespace {

std::string describe(const Json& json) {
  if (json.is_array()) return fmt::format("an array of {} items", json.size());
  if (json.is_object()) {
    std::string keys;
    for (const auto& [key, unused] : json.items()) {
      if (keys.size() > 60) return fmt::format("an object with {}, ...", keys);
      if (!keys.empty()) keys += ", ";
      keys += key.substr(0, 40);
    }
    return keys.empty() ? "an empty object" : fmt::format("an object with {}", keys);
  }
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) return fmt::format("{}...", text.substr(0, 57));
  return text;
}

}  // namespace

std::string JsonField::path() const {
  if (up_ == nullptr) return std::string(name_);
  if (name_.empty()) return fmt::format("{}[{}]", up_->path(), index_);
  return fmt::format("{}.{}", up_->path(), name_.substr(0, 100));
}

Error JsonField::expected(std::string_view expected) const {
  return input_error("{}: expected {}, got {}", path(), expected, describe(*json_));
}

Result<int64_t> JsonField::integer(int64_t lowest, int64_t highest) const {
  const bool fits =
      json_->is_number_integer() &&
      !(json_->is_number_unsigned() && json_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (fits) {
    const auto value = json_->get<int64_t>();
    if (value >= lowest && value <= highest) return value;
  }
  if (lowest == INT64_MIN && highest == INT64_MAX) return expected("a signed 64-bit integer");
  return expected(fmt::format("an integer from {} to {}", lowest, highest));
}

Result<int64_t> JsonField::integer_or_flag() const {
  if (json_->is_boolean()) return static_cast<int64_t>(json_->get<bool>());
  return integer();
}

Result<double> JsonField::number() const {
  if (!json_->is_number()) return expected("a number");
  return json_->get<double>();
}

Result<bool> JsonField::boolean() const {
  if (!json_->is_boolean()) return expected("true or false");
  return json_->get<bool>();
}

Result<std::string> JsonField::text(size_t max_bytes) const {
  if (!json_->is_string()) return expected("text");
  const auto& text = json_->get_ref<const std::string&>();
  if (text.size() > max_bytes)
    return input_error("{}: expected at most {} bytes of text, got {}", path(), max_bytes, text.size());
  return text;
}

Result<std::optional<JsonField>> JsonField::find(std::string_view key) const& {
  if (!json_->is_object()) return expected("an object");
  const auto found = json_->find(key);
  if (found == json_->end()) return std::optional<JsonField>();
  return std::optional<JsonField>(JsonField(*found, this, key, 0));
}

Result<JsonField> JsonField::at(std::string_view key) const& {
  NEREID_TRY(auto found, find(key));
  if (!found) return expected(fmt::format("an object with '{}'", key));
  return *found;
}

Result<int64_t> JsonField::integer_at(std::string_view key, int64_t otherwise, int64_t lowest,
                                      int64_t highest) const {
  NEREID_TRY(const auto found, find(key));
  return found ? found->integer(lowest, highest) : otherwise;
}

Result<bool> JsonField::boolean_at(std::string_view key, bool otherwise) const {
  NEREID_TRY(const auto found, find(key));
  return found ? found->boolean() : otherwise;
}

Result<std::string> JsonField::text_at(std::string_view key, size_t max_bytes) const {
  NEREID_TRY(const auto found, find(key));
  return found ? found->text(max_bytes) : std::string();
}

Result<size_t> JsonField::size(size_t max_items) const {
  if (!json_->is_array()) return expected("an array");
  if (json_->size() > max_items) return expected(fmt::format("at most {} items", max_items));
  return json_->size();
}

JsonField JsonField::item(size_t i) const { return JsonField((*json_)[i], this, {}, i); }

Status JsonField::each(size_t max_items, const std::function<Status(const JsonField&)>& f) const {
  NEREID_TRY(const size_t count, size(max_items));
  for (size_t i = 0; i < count; ++i) NEREID_TRY_STATUS(f(item(i)));
  return ok_status();
}

Status JsonField::each_member(size_t max_items,
                              const std::function<Status(const std::string&, const JsonField&)>& f) const {
  if (!json_->is_object()) return expected("an object");
  if (json_->size() > max_items) return expected(fmt::format("at most {} members", max_items));
  for (const auto& [key, value] : json_->items()) NEREID_TRY_STATUS(f(key, JsonField(value, this, key, 0)));
  return ok_status();
}

}  // namespace nereid
