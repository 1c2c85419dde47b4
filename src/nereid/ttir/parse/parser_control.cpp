// The formats of operations that have regions, name blocks and functions, or have an effect but no result.
#include <fmt/format.h>

#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {

bool Parser::parse_control(Op& op, std::vector<Type>& results) {
  switch (op.kind) {
    case OpKind::kPrint:
      return parse_print(op);
    case OpKind::kAssert:
      return parse_assert(op);
    case OpKind::kAssume:
      return parse_uses(op.operands) && parse_attributes(op) && parse_trailing_types(op);
    case OpKind::kBarrier:
    case OpKind::kTtgBarrier:
      return parse_attributes(op);
    case OpKind::kScfIf:
      return parse_if(op, results);
    case OpKind::kScfFor:
      return parse_for(op, results);
    case OpKind::kScfWhile:
      return parse_while(op, results);
    case OpKind::kScfCondition:
      return parse_condition(op);
    case OpKind::kReturn:
    case OpKind::kScfYield:
    case OpKind::kReduceReturn:
    case OpKind::kScanReturn:
    case OpKind::kMapElementwiseReturn:
      if (!parse_attributes(op)) return false;
      if (scan_.peek_char() == '%' && !parse_uses(op.operands)) return false;
      return parse_trailing_types(op);
    case OpKind::kBr:
    case OpKind::kCondBr:
      return parse_branch(op);
    case OpKind::kCall:
      return parse_call(op, results);
    default:
      return scan_.unsupported(fmt::format("the printed form of {}", to_string(op.kind)));
  }
}

// "prefix" {attributes} : %a, %b : T, T
bool Parser::parse_print(Op& op) {
  const auto prefix = scan_.quoted();
  if (!prefix || !parse_attributes(op)) return false;
  if (scan_.accept(":") && !parse_uses(op.operands)) return false;
  return parse_trailing_types(op);
}

// %condition, "message" : T
bool Parser::parse_assert(Op& op) {
  ValueId condition;
  if (!parse_use(condition) || !scan_.expect(",")) return false;
  op.operands = {condition};
  const auto message = scan_.quoted();
  if (!message) return false;
  Attribute text;
  text.kind = Attribute::Kind::kText;
  text.text = *message;
  op.attributes["message"] = text;
  return parse_attributes(op) && parse_trailing_types(op);
}

// (%condition) %a, %b : T, T
bool Parser::parse_condition(Op& op) {
  if (!scan_.expect("(")) return false;
  if (!parse_uses_until(op.operands, ')') || !parse_attributes(op)) return false;
  if (op.operands.size() != 1) return scan_.fail("expected one condition");
  if (scan_.peek_char() != '%') return true;
  std::vector<ValueId> passed;
  if (!parse_uses(passed)) return false;
  std::vector<Type> types;
  if (!scan_.expect(":")) return false;
  do {
    types.emplace_back();
    if (!parse_type(types.back())) return false;
  } while (scan_.accept(","));
  op.operands.insert(op.operands.end(), passed.begin(), passed.end());
  return expect_types(passed, types);
}

bool Parser::parse_if(Op& op, std::vector<Type>& results) {
  ValueId condition;
  if (!parse_use(condition) || !parse_results_arrow(results)) return false;
  op.operands = {condition};
  op.regions.resize(2);
  if (!parse_region(op.regions[0], {})) return false;
  if (scan_.accept("else") && !parse_region(op.regions[1], {})) return false;
  return parse_attributes(op);
}

// iter_args(%a = %b, %c = %d)
bool Parser::parse_loop_inits(Op& op, std::vector<std::string>& names) {
  bool first = true;
  while (!scan_.accept(")")) {
    if (!first && !scan_.expect(",")) return false;
    first = false;
    const auto name = scan_.suffix_identifier('%');
    ValueId init;
    if (!name || !scan_.expect("=") || !parse_use(init)) return false;
    names.push_back(*name);
    op.operands.push_back(init);
  }
  return true;
}

bool Parser::parse_for(Op& op, std::vector<Type>& results) {
  if (scan_.accept("unsigned")) note(op, "unsigned", 1);
  const auto induction = scan_.suffix_identifier('%');
  ValueId lower, upper, step;
  if (!induction || !scan_.expect("=") || !parse_use(lower) || !scan_.expect("to") || !parse_use(upper) ||
      !scan_.expect("step") || !parse_use(step))
    return false;
  op.operands = {lower, upper, step};
  std::vector<std::string> names;
  if (scan_.accept("iter_args") &&
      (!scan_.expect("(") || !parse_loop_inits(op, names) || !parse_results_arrow(results)))
    return false;
  Type type;
  type.elem = Elem::kI64;
  if (scan_.accept(":") && !parse_type(type)) return false;
  if (results.size() != names.size()) return scan_.fail("expected as many loop results as iter_args");
  std::vector<std::pair<std::string, ValueId>> arguments = {{*induction, new_value(type)}};
  for (size_t i = 0; i < names.size(); ++i) arguments.emplace_back(names[i], new_value(results[i]));
  op.regions.emplace_back();
  return parse_region(op.regions[0], arguments) && parse_attributes(op);
}

bool Parser::parse_while(Op& op, std::vector<Type>& results) {
  std::vector<std::string> names;
  std::vector<Type> inputs;
  if (scan_.accept("(") && !parse_loop_inits(op, names)) return false;
  if (!scan_.expect(":") || !parse_function_type(inputs, results) || !expect_types(op.operands, inputs))
    return false;
  std::vector<std::pair<std::string, ValueId>> arguments;
  for (size_t i = 0; i < names.size(); ++i) arguments.emplace_back(names[i], new_value(inputs[i]));
  op.regions.resize(2);
  if (!parse_region(op.regions[0], arguments) || !scan_.expect("do") || !parse_region(op.regions[1], {}))
    return false;
  return !scan_.accept("attributes") || parse_attributes(op);
}

// ^bb1(%a, %b : T, U)
bool Parser::parse_successor(Op& op) {
  const auto name = scan_.suffix_identifier('^');
  if (!name) return false;
  op.successors.emplace_back();
  op.successors.back().block = block_index(*name);
  if (!scan_.accept("(")) return !scan_.failed();
  if (!parse_uses(op.successors.back().arguments) || !scan_.expect(":")) return false;
  std::vector<Type> types;
  do {
    types.emplace_back();
    if (!parse_type(types.back())) return false;
  } while (scan_.accept(","));
  return expect_types(op.successors.back().arguments, types) && scan_.expect(")");
}

bool Parser::parse_branch(Op& op) {
  if (op.kind == OpKind::kCondBr) {
    ValueId condition;
    if (!parse_use(condition)) return false;
    op.operands = {condition};
    if (scan_.accept("weights") && (!scan_.expect("(") || !scan_.balanced() || !scan_.expect(")")))
      return false;
    if (!scan_.expect(",") || !parse_successor(op) || !scan_.expect(",")) return false;
  }
  return parse_successor(op) && parse_attributes(op);
}

bool Parser::parse_call(Op& op, std::vector<Type>& results) {
  const auto callee = scan_.suffix_identifier('@');
  if (!callee || !scan_.expect("(")) return false;
  Attribute name;
  name.kind = Attribute::Kind::kText;
  name.text = *callee;
  op.attributes["callee"] = name;
  std::vector<Type> inputs;
  return parse_uses_until(op.operands, ')') && parse_attributes(op) && scan_.expect(":") &&
         parse_function_type(inputs, results) && expect_types(op.operands, inputs);
}

}  // namespace nereid::ttir
