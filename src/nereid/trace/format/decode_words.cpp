#include "nereid/trace/format/decode_words.h"

#include <algorithm>
#include <limits>

namespace nereid::trace {

bool is_word(std::string_view text, std::string_view extra) {
  return !text.empty() && text.size() <= 256 && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != extra.npos;
  });
}

Result<std::string> operator_name(const JsonField& field) {
  NEREID_TRY(std::string name, field.text(kMaxName));
  const size_t colons = name.find("::");
  if (colons == name.npos || !is_word(name.substr(0, colons), "_") || !is_word(name.substr(colons + 2), "_."))
    return field.expected("an operator's name such as aten::add.Tensor");
  return name;
}

Result<double> float_or_name(const JsonField& field) {
  if (!field.json().is_string()) return field.number();
  const auto& name = field.json().get_ref<const std::string&>();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return field.expected("a number, inf, -inf or nan");
}

Result<std::vector<int64_t>> integers(const JsonField& field, size_t max_items, int64_t lowest,
                                      int64_t highest) {
  std::vector<int64_t> numbers;
  NEREID_TRY_STATUS(field.each(max_items, [&](const JsonField& item) -> Status {
    NEREID_TRY(const int64_t number, item.integer(lowest, highest));
    numbers.push_back(number);
    return ok_status();
  }));
  return numbers;
}

Result<DType> dtype(const JsonField& field) {
  NEREID_TRY(const std::string name, field.text(kMaxName));
  const auto type = dtype_from_string(name);
  if (!type) return field.expected("an element type such as f32");
  return *type;
}

Status pair(const JsonField& field, std::string_view shape) {
  if (!field.json().is_array() || field.json().size() != 2) return field.expected(shape);
  return ok_status();
}

Result<Place> place(const JsonField& field) {
  Place place;
  NEREID_TRY(const auto at, field.find("at"));
  if (!at) return place;
  NEREID_TRY_STATUS(pair(*at, "[file, line]"));
  NEREID_TRY(place.file, at->item(0).text(kMaxName));
  NEREID_TRY(const int64_t line, at->item(1).integer(0, 1 << 30));
  place.line = static_cast<int>(line);
  return place;
}

}  // namespace nereid::trace
