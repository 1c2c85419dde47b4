// Constants: numbers, and the hexadecimal or nested lists of dense tensors.
#include <fmt/format.h>

#include "nereid/ttir/parse/constant.h"
#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {

// arith.constant true / 12 : i32 / dense<...> : tensor<...>
bool Parser::parse_constant(Op& op, std::vector<Type>& results) {
  if (!parse_attributes(op)) return false;
  const bool truth = scan_.accept("true");
  results.emplace_back();
  Type& type = results.back();
  if (truth || scan_.accept("false")) {
    type.elem = Elem::kI1;
    op.constant = {truth ? uint64_t{1} : uint64_t{0}};
    Type written;
    return !scan_.accept(":") || parse_type(written);
  }
  if (scan_.accept("dense")) {
    const auto body = scan_.balanced();
    if (!body || !scan_.expect(":") || !parse_type(type)) return false;
    if (!type.tensor) return scan_.fail("expected a tensor type");
    return parse_dense(op, type, body->substr(1, body->size() - 2));
  }
  const auto number = scan_.number();
  if (!number || !scan_.expect(":") || !parse_type(type)) return false;
  const auto bits = constant_bits(*number, type.elem);
  if (!bits || type.tensor) return scan_.fail(fmt::format("{} is no {}", *number, to_string(type)));
  op.constant = {*bits};
  return true;
}

// What stands in dense<...>: one number, nested lists of all of them, or "0x..." with all their bytes.
bool Parser::parse_dense(Op& op, const Type& type, std::string_view body) {
  const auto elements = static_cast<size_t>(type.elements());
  const auto bytes = static_cast<size_t>(elem_bytes(type.elem));
  Scanner scan(body);
  if (scan.peek_char() == '"') {
    const auto hex = scan.quoted();
    if (!hex || hex->size() < 2 || hex->substr(0, 2) != "0x")
      return scan_.fail("expected \"0x...\" in dense<>");
    const std::string digits = hex->substr(2);
    const auto byte = [&](size_t i) { return std::stoul("0" + digits.substr(2 * i, 2), nullptr, 16); };
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return scan_.fail("expected hexadecimal digits");
    const size_t count = digits.size() / 2 / bytes;
    if ((count != elements && count != 1) || digits.size() != count * bytes * 2)
      return scan_.fail(
          fmt::format("expected {} bytes in dense<>, got {}", elements * bytes, digits.size() / 2));
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      for (size_t b = 0; b < bytes; ++b) bits |= static_cast<uint64_t>(byte(i * bytes + b)) << (8 * b);
      op.constant.push_back(bits);
    }
    return true;
  }
  bool list = false;
  while (!scan.at_end()) {
    if (scan.accept("[") || scan.accept("]") || scan.accept(",")) {
      list = true;
      continue;
    }
    std::string text;
    if (scan.peek("true") || scan.peek("false")) {
      text = *scan.identifier();
    } else if (const auto number = scan.number()) {
      text = *number;
    } else {
      return scan_.fail("expected numbers in dense<>");
    }
    const auto bits = constant_bits(text, type.elem);
    if (!bits) return scan_.fail(fmt::format("{} is no {}", text, to_string(type.elem)));
    op.constant.push_back(*bits);
    if (op.constant.size() > elements) break;
  }
  if (op.constant.size() != elements && (list || op.constant.size() != 1))
    return scan_.fail(fmt::format("expected {} numbers in dense<>, got {}", elements, op.constant.size()));
  return true;
}

}  // namespace nereid::ttir
