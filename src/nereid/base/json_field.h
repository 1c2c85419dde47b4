// Reading a hostile JSON document field by field: every error names the path, what was expected and what
// came.
//
//   JsonField root(document, "trace");
//   NEREID_TRY(JsonField phases, root.at("phases"));
//   NEREID_TRY_STATUS(phases.each(limit, [&](const JsonField& phase) -> Status { ... }));
//   // "trace.phases[2].call: expected an integer from 0 to 15, got -1"
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid {

// A value in a document that knows where it is. It refers to the document and to its parent field, which both
// must outlive it.
class JsonField {
 public:
  JsonField(const Json& json, std::string_view name) : json_(&json), name_(name) {}
  // The name outlives it as well: none of a string that is gone with the statement.
  template <typename Text>
    requires std::same_as<std::remove_const_t<Text>, std::string>
  JsonField(const Json& json, Text&& name) = delete;
  JsonField(const Json&& json, std::string_view name) = delete;

  const Json& json() const { return *json_; }
  std::string path() const;
  // Blamed on the input: "PATH: expected EXPECTED, got ...".
  Error expected(std::string_view expected) const;

  Result<int64_t> integer(int64_t lowest = INT64_MIN, int64_t highest = INT64_MAX) const;
  Result<int64_t> integer_or_flag() const;  // true is 1, false is 0
  Result<double> number() const;            // an integer too
  Result<bool> boolean() const;
  Result<std::string> text(size_t max_bytes = size_t{1} << 20) const;

  // An object's member. `at` wants it to be there, `find` does not.
  Result<JsonField> at(std::string_view key) const&;
  Result<JsonField> at(std::string_view key) const&& = delete;
  Result<std::optional<JsonField>> find(std::string_view key) const&;
  Result<std::optional<JsonField>> find(std::string_view key) const&& = delete;
  // A member's value by one of the readers above, or `otherwise` where it is absent.
  Result<int64_t> integer_at(std::string_view key, int64_t otherwise, int64_t lowest, int64_t highest) const;
  Result<bool> boolean_at(std::string_view key, bool otherwise) const;
  Result<std::string> text_at(std::string_view key,
                              size_t max_bytes = size_t{1} << 20) const;  // "" where absent

  // An array's items in order; an error of `f` ends the walk.
  Result<size_t> size(size_t max_items) const;
  JsonField item(size_t i) const;  // i < size
  Status each(size_t max_items, const std::function<Status(const JsonField&)>& f) const;
  // An object's members in the order of their names.
  Status each_member(size_t max_items,
                     const std::function<Status(const std::string& name, const JsonField&)>& f) const;

 private:
  JsonField(const Json& json, const JsonField* up, std::string_view name, size_t index)
      : json_(&json), up_(up), name_(name), index_(index) {}

  const Json* json_;
  const JsonField* up_ = nullptr;
  std::string_view name_;  // empty for an array's item
  size_t index_ = 0;
};

}  // namespace nereid
