// What the readers of a trace's parts share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/json_field.h"
#include "nereid/trace/trace.h"

namespace nereid::trace {

constexpr size_t kMaxName = 4096, kMaxText = size_t{1} << 20;  // bytes of a name, of a text

template <typename Enum>
struct Word {
  std::string_view name;
  Enum value;
};

template <typename Enum, size_t N>
Result<Enum> one_of(const JsonField& field, const Word<Enum> (&words)[N]) {
  std::string names;
  for (const auto& word : words) {
    if (field.json().is_string() && field.json().get_ref<const std::string&>() == word.name)
      return word.value;
    names += (names.empty() ? "" : ", ") + std::string(word.name);
  }
  return field.expected("one of " + names);
}

// Letters, digits and `extra`, at least one.
bool is_word(std::string_view text, std::string_view extra);
Result<std::string> operator_name(const JsonField& field);
// A number, or "inf", "-inf" or "nan", which JSON has no numbers for.
Result<double> float_or_name(const JsonField& field);
Result<std::vector<int64_t>> integers(const JsonField& field, size_t max_items, int64_t lowest,
                                      int64_t highest);
Result<DType> dtype(const JsonField& field);
// An error where it is no array of two; `shape` says what they are.
Status pair(const JsonField& field, std::string_view shape);
// Of the object's "at"; empty where there is none.
Result<Place> place(const JsonField& field);

}  // namespace nereid::trace
