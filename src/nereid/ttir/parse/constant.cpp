#include "nereid/ttir/parse/constant.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>

#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir {

std::optional<uint64_t> constant_bits(std::string_view text, Elem elem) {
  const int bits = elem_bits(elem);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (text == "true") return elem == Elem::kI1 ? std::optional<uint64_t>(1) : std::nullopt;
  if (text == "false") return elem == Elem::kI1 ? std::optional<uint64_t>(0) : std::nullopt;
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  const bool hex = digits.size() > 2 && digits[0] == '0' && digits[1] == 'x';
  if (is_integer(elem) || (hex && is_float(elem))) {
    uint64_t value = 0;
    const char* first = digits.data() + (hex ? 2 : 0);
    const char* last = digits.data() + digits.size();
    const auto parsed = std::from_chars(first, last, value, hex ? 16 : 10);
    if (parsed.ec != std::errc() || parsed.ptr != last) return std::nullopt;
    return (negative ? -value : value) & mask;
  }
  if (!is_float(elem)) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  if (elem == Elem::kF32) {  // straight to f32: through a double it could round twice
    const float value = std::strtof(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || copy.empty()) return std::nullopt;
    return std::bit_cast<uint32_t>(value);
  }
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || copy.empty()) return std::nullopt;
  return from_double(value, elem);
}

}  // namespace nereid::ttir
