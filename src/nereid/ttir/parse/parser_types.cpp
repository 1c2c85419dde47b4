// Types and attributes.
#include <fmt/format.h>

#include <charconv>

#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {
namespace {

// "<[16, 1]>": all integers of a text; empty where there is anything else than numbers.
std::vector<int64_t> integers_in(std::string_view text) {
  std::vector<int64_t> found;
  const char *at = text.data(), *const end = at + text.size();
  while (at < end) {
    if (std::string_view("<>[], ").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    int64_t number = 0;
    const auto [next, failure] = std::from_chars(at, end, number);
    if (failure != std::errc()) return {};
    found.push_back(number);
    at = next;
  }
  return found;
}

}  // namespace

bool Parser::parse_type(Type& type) {
  type = {};
  if (scan_.accept("!tt.tensordesc")) {
    type.elem = Elem::kDescriptor;
    if (!scan_.expect("<") || !scan_.expect("tensor")) return false;
    Type block;
    if (!parse_tensor_body(block)) return false;
    if (!is_integer(block.elem) && !is_float(block.elem))
      return scan_.fail("expected a descriptor of numbers");
    type.pointee = block.elem;
    type.shape = block.shape;
    return scan_.expect(">");
  }
  if (scan_.accept("tensor")) {
    if (!parse_tensor_body(type)) return false;
    return true;
  }
  return parse_element(type);
}

bool Parser::parse_element(Type& type) {
  if (scan_.accept("!tt.ptr")) {
    type.elem = Elem::kPointer;
    Type pointee;
    if (!scan_.expect("<")) return false;
    if (scan_.peek("!") || scan_.peek("tensor"))
      return scan_.unsupported("a pointer to something other than a number");
    if (!parse_element(pointee)) return false;
    type.pointee = pointee.elem;
    if (scan_.accept(",") && !scan_.integer()) return false;  // the address space
    return scan_.expect(">");
  }
  if (scan_.peek_char() == '!') return scan_.unsupported("a type of another dialect");
  const auto name = scan_.identifier();
  if (!name) return false;
  // A descriptor's integers are printed with their sign (si32), which operations have, not types.
  std::string_view plain = *name;
  if (plain.starts_with("si") || plain.starts_with("ui")) plain.remove_prefix(1);
  type.elem = elem_named(plain);
  if (type.elem == Elem::kNone) return scan_.unsupported(fmt::format("type {}", *name));
  return true;
}

// <4x8xf32>
bool Parser::parse_tensor_body(Type& type) {
  if (!scan_.expect("<")) return false;
  type.tensor = true;
  int64_t elements = 1;
  while (const auto d = scan_.dimension()) {
    if (*d < 1 || *d > kMaxElements || elements > kMaxElements / *d)
      return scan_.fail(fmt::format("expected a tensor of at most {} elements", kMaxElements));
    elements *= *d;
    type.shape.push_back(*d);
    if (type.rank() > kMaxRank) return scan_.fail(fmt::format("expected at most {} dimensions", kMaxRank));
  }
  if (!parse_element(type)) return false;
  if (scan_.accept(",")) return scan_.unsupported("a tensor with a layout");
  return scan_.expect(">");
}

bool Parser::parse_type_list(std::vector<Type>& types) {
  if (!scan_.expect("(")) return false;
  while (!scan_.accept(")")) {
    if (!types.empty() && !scan_.expect(",")) return false;
    types.emplace_back();
    if (!parse_type(types.back())) return false;
  }
  return true;
}

bool Parser::parse_function_type(std::vector<Type>& inputs, std::vector<Type>& results) {
  if (!parse_type_list(inputs) || !scan_.expect("->")) return false;
  if (scan_.peek_char() == '(') return parse_type_list(results);
  results.emplace_back();
  return parse_type(results.back());
}

bool Parser::parse_attribute(Attribute& value) {
  const char next = scan_.peek_char();
  if (next == '"') {
    auto text = scan_.quoted();
    if (!text) return false;
    value.kind = Attribute::Kind::kText;
    value.text = std::move(*text);
  } else if (scan_.accept("true") || scan_.peek("false")) {
    value.kind = Attribute::Kind::kInteger;
    value.integer = scan_.accept("false") ? 0 : 1;
  } else if (scan_.accept("unit")) {
    value.kind = Attribute::Kind::kUnit;
  } else if (scan_.accept("array")) {  // array<i32: 1, 0>
    value.kind = Attribute::Kind::kIntegers;
    if (!scan_.expect("<") || !scan_.identifier()) return false;
    if (scan_.accept(":")) {
      do {
        const bool truth = scan_.accept("true");
        if (truth || scan_.accept("false")) {
          value.integers.push_back(truth);
          continue;
        }
        const auto integer = scan_.integer();
        if (!integer) return false;
        value.integers.push_back(*integer);
      } while (scan_.accept(","));
    }
    return scan_.expect(">");
  } else if (next == '[' || next == '<' || next == '{' || next == '(') {
    const auto text = scan_.balanced();
    if (!text) return false;
    value.kind = Attribute::Kind::kText;
    value.text = *text;
  } else if (next == '-' || (next >= '0' && next <= '9')) {
    const size_t start = scan_.position();
    const auto number = scan_.number();
    if (!number) return false;
    if (number->find_first_of(".eE") != std::string_view::npos && number->substr(0, 2) != "0x") {
      value.kind = Attribute::Kind::kText;
      value.text = *number;
    } else {
      scan_.rewind(start);
      const auto integer = scan_.integer();
      if (!integer) return false;
      value.kind = Attribute::Kind::kInteger;
      value.integer = *integer;
    }
    Type type;
    if (scan_.accept(":") && !parse_type(type)) return false;
  } else if (next == '#' || next == '@') {
    const auto name = scan_.suffix_identifier(next);
    if (!name) return false;
    value.kind = Attribute::Kind::kText;
    value.text = *name;
    if (scan_.peek_char() == '<' && !scan_.balanced()) return false;
  } else {
    const auto name = scan_.identifier();
    if (!name) return false;
    value.kind = Attribute::Kind::kText;
    value.text = *name;
    if (scan_.peek_char() == '<') {
      const auto inside = scan_.balanced();
      if (!inside) return false;
      if (*name == "dense") value.integers = integers_in(*inside);
    }
    Type type;  // dense<1024> : tensor<1xi32>
    if (*name == "dense" && scan_.accept(":") && !parse_type(type)) return false;
  }
  return !scan_.failed();
}

bool Parser::parse_attributes(Op& op) {
  if (!scan_.accept("{")) return !scan_.failed();
  return parse_attribute_entries(op, "}");
}

bool Parser::parse_attribute_entries(Op& op, std::string_view end) {
  bool first = true;
  while (!scan_.accept(end)) {
    if (!first && !scan_.expect(",")) return false;
    first = false;
    const auto name = scan_.peek_char() == '"' ? scan_.quoted() : scan_.identifier();
    if (!name) return false;
    Attribute value;
    if (scan_.accept("=") && !parse_attribute(value)) return false;
    op.attributes[*name] = std::move(value);
  }
  return true;
}

}  // namespace nereid::ttir
