// The printed format of each operation.
#include <fmt/format.h>

#include "nereid/ttir/parse/constant.h"
#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {

void Parser::note(Op& op, std::string_view name, int64_t value) {
  Attribute attribute;
  attribute.kind = Attribute::Kind::kInteger;
  attribute.integer = value;
  op.attributes[std::string(name)] = attribute;
}

bool Parser::parse_keyword(Op& op, std::string_view attribute) {
  const auto word = scan_.identifier();
  if (!word) return false;
  Attribute value;
  value.kind = Attribute::Kind::kText;
  value.text = *word;
  op.attributes[std::string(attribute)] = value;
  return true;
}

bool Parser::skip_flags() {
  while (scan_.peek("fastmath<") || scan_.peek("overflow<") || scan_.peek("exact") || scan_.peek("nonneg") ||
         scan_.peek("fastmath") || scan_.peek("overflow")) {
    if (!scan_.identifier()) return false;
    if (scan_.peek_char() == '<' && !scan_.balanced()) return false;
  }
  return !scan_.failed();
}

bool Parser::parse_trailing_types(Op& op) {
  if (!scan_.accept(":")) return expect_types(op.operands, {});
  std::vector<Type> types;
  do {
    types.emplace_back();
    if (!parse_type(types.back())) return false;
  } while (scan_.accept(","));
  return expect_types(op.operands, types);
}

bool Parser::parse_results_arrow(std::vector<Type>& results) {
  if (!scan_.accept("->")) return !scan_.failed();
  if (scan_.peek_char() == '(') return parse_type_list(results);
  results.emplace_back();
  return parse_type(results.back());
}

bool Parser::parse_format(Op& op, std::vector<Type>& results) {
  if (traits(op.kind) & kSameType) return parse_same_type(op, results);
  switch (op.kind) {
    case OpKind::kConstant:
      return parse_constant(op, results);
    case OpKind::kPoison:
      if (scan_.peek_char() == '<' && !scan_.balanced()) return false;
      results.emplace_back();
      return scan_.expect(":") && parse_type(results.back());
    case OpKind::kCmpi:
    case OpKind::kCmpf:
      return parse_compare(op, results);
    case OpKind::kSelect:
      return parse_select(op, results);
    case OpKind::kAdduiExtended:
    case OpKind::kMulsiExtended:
    case OpKind::kMuluiExtended:
      return parse_extended(op, results);
    case OpKind::kIsnan:
    case OpKind::kIsinf:
    case OpKind::kIsfinite:
      return parse_classify(op, results);
    case OpKind::kSplit: {
      if (!parse_cast(op, results, "->")) return false;
      results.push_back(results[0]);
      return true;
    }
    case OpKind::kCat:
    case OpKind::kJoin:
      return parse_pair(op, results);
    case OpKind::kAddptr:
      if (!parse_uses(op.operands) || !parse_attributes(op) || !parse_trailing_types(op) ||
          op.operands.empty())
        return scan_.fail("expected a pointer");
      results = {type_of(op.operands[0])};
      return true;
    case OpKind::kMakeRange:
      results.emplace_back();
      return parse_attributes(op) && scan_.expect(":") && parse_type(results.back());
    case OpKind::kGetProgramId:
    case OpKind::kGetNumPrograms:
      results.emplace_back();
      return parse_keyword(op, "axis") && parse_attributes(op) && scan_.expect(":") &&
             parse_type(results.back());
    case OpKind::kLoad:
    case OpKind::kStore:
      return parse_load_store(op, results);
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return parse_atomic(op, results);
    case OpKind::kDot:
      return parse_dot(op, results);
    case OpKind::kDotScaled:
      return parse_dot_scaled(op, results);
    case OpKind::kInlineAsm:
      return parse_inline_asm(op, results);
    case OpKind::kExternElementwise: {
      std::vector<Type> inputs;
      return parse_uses(op.operands) && parse_attributes(op) && scan_.expect(":") &&
             parse_function_type(inputs, results) && expect_types(op.operands, inputs);
    }
    case OpKind::kGather:
      return parse_gather(op, results);
    case OpKind::kMakeTensorDescriptor:
      return parse_make_descriptor(op, results);
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
    case OpKind::kDescriptorReduce:
    case OpKind::kDescriptorGather:
    case OpKind::kDescriptorScatter:
      return parse_descriptor(op, results);
    default:
      return parse_conversion(op, results);
  }
}

bool Parser::parse_conversion(Op& op, std::vector<Type>& results) {
  switch (op.kind) {
    case OpKind::kExtsi:
    case OpKind::kExtui:
    case OpKind::kTrunci:
    case OpKind::kIndexCast:
    case OpKind::kIndexCastui:
    case OpKind::kExtf:
    case OpKind::kTruncf:
    case OpKind::kSitofp:
    case OpKind::kUitofp:
    case OpKind::kFptosi:
    case OpKind::kFptoui:
    case OpKind::kArithBitcast:
      return parse_cast(op, results, "to");
    case OpKind::kSplat:
    case OpKind::kUnsplat:
    case OpKind::kExpandDims:
    case OpKind::kBroadcast:
    case OpKind::kReshape:
    case OpKind::kTrans:
    case OpKind::kIntToPtr:
    case OpKind::kPtrToInt:
    case OpKind::kBitcast:
    case OpKind::kHistogram:
    case OpKind::kFpToFp:
      return parse_cast(op, results, "->");
    default:
      return parse_control(op, results);
  }
}

// %a, %b : T; with a carry: T, T
bool Parser::parse_extended(Op& op, std::vector<Type>& results) {
  Type type;
  if (!parse_uses(op.operands) || !parse_attributes(op) || !scan_.expect(":") || !parse_type(type))
    return false;
  Type second = type;
  if (op.kind == OpKind::kAdduiExtended && (!scan_.expect(",") || !parse_type(second))) return false;
  results = {type, second};
  return expect_types(op.operands, {type, type});
}

// %a fastmath<...> : T
bool Parser::parse_classify(Op& op, std::vector<Type>& results) {
  Type type;
  if (!parse_uses(op.operands) || !skip_flags() || !parse_attributes(op) || !scan_.expect(":") ||
      !parse_type(type))
    return false;
  results = {type};
  results[0].elem = Elem::kI1;
  return expect_types(op.operands, {type});
}

// %a, %b : T -> U
bool Parser::parse_pair(Op& op, std::vector<Type>& results) {
  Type type;
  results.emplace_back();
  return parse_uses(op.operands) && parse_attributes(op) && scan_.expect(":") && parse_type(type) &&
         expect_types(op.operands, {type, type}) && scan_.expect("->") && parse_type(results.back());
}

// %source[%indices] : (T, U) -> V
bool Parser::parse_gather(Op& op, std::vector<Type>& results) {
  std::vector<Type> inputs;
  ValueId source;
  if (!parse_use(source)) return false;
  op.operands = {source};
  return parse_bracketed_uses(op.operands) && parse_attributes(op) && scan_.expect(":") &&
         parse_function_type(inputs, results) && expect_types(op.operands, inputs);
}

// %a, %b {attributes} : T
bool Parser::parse_same_type(Op& op, std::vector<Type>& results) {
  do {
    if (scan_.accept("propagateNan")) {
      if (!scan_.expect("=") || !parse_keyword(op, "propagateNan")) return false;
      break;
    }
    ValueId value;
    if (!parse_use(value)) return false;
    op.operands.push_back(value);
  } while (scan_.accept(","));
  results.emplace_back();
  if (!skip_flags() || !parse_attributes(op) || !scan_.expect(":") || !parse_type(results.back()))
    return false;
  return expect_types(op.operands, std::vector<Type>(op.operands.size(), results.back()));
}

// %a, rounding = rtne {attributes} : T to U
bool Parser::parse_cast(Op& op, std::vector<Type>& results, std::string_view arrow) {
  ValueId value;
  if (!parse_use(value)) return false;
  op.operands.push_back(value);
  while (scan_.accept(",")) {
    if (scan_.accept("rounding")) {
      if (!scan_.expect("=") || !parse_keyword(op, "rounding")) return false;
    } else {  // histogram's mask
      if (!parse_use(value)) return false;
      op.operands.push_back(value);
    }
  }
  if (!skip_flags()) return false;
  while (scan_.peek("allow_reorder") || scan_.peek("efficient_layout") || scan_.peek("to_nearest_even") ||
         scan_.peek("toward_zero")) {
    const auto word = scan_.identifier();
    if (*word == "allow_reorder") op.attributes["allow_reorder"] = {};
    if (*word == "toward_zero") {
      Attribute attribute;
      attribute.kind = Attribute::Kind::kText;
      attribute.text = "rtz";
      op.attributes["rounding"] = attribute;
    }
  }
  Type from;
  results.emplace_back();
  if (!parse_attributes(op) || !scan_.expect(":") || !parse_type(from)) return false;
  if (op.kind == OpKind::kUnsplat && !scan_.peek("->")) {
    results.back() = from;
    results.back().tensor = false;
    results.back().shape.clear();
  } else if (!scan_.expect(arrow) || !parse_type(results.back())) {
    return false;
  }
  return expect_types({op.operands[0]}, {from});
}

bool Parser::parse_compare(Op& op, std::vector<Type>& results) {
  Type type;
  if (!parse_keyword(op, "predicate") || !scan_.expect(",") || !parse_uses(op.operands) || !skip_flags() ||
      !parse_attributes(op) || !scan_.expect(":") || !parse_type(type))
    return false;
  results = {type};
  results[0].elem = Elem::kI1;
  results[0].pointee = Elem::kNone;
  return expect_types(op.operands, {type, type});
}

// %c, %a, %b : T   or   : tensor<..xi1>, T
bool Parser::parse_select(Op& op, std::vector<Type>& results) {
  Type first, condition;
  if (!parse_uses(op.operands) || !parse_attributes(op) || !scan_.expect(":") || !parse_type(first))
    return false;
  results.emplace_back();
  if (scan_.accept(",")) {
    condition = first;
    if (!parse_type(results.back())) return false;
  } else {
    condition.elem = Elem::kI1;
    results.back() = first;
  }
  return expect_types(op.operands, {condition, results.back(), results.back()});
}

// tt.load %p, %mask, %other cacheModifier = ca evictionPolicy = evict_first {attributes} : T
bool Parser::parse_load_store(Op& op, std::vector<Type>& results) {
  Type pointer;
  if (!parse_uses(op.operands)) return false;
  while (scan_.peek("cacheModifier") || scan_.peek("evictionPolicy")) {
    const auto name = scan_.identifier();
    if (!scan_.expect("=") || !parse_keyword(op, *name)) return false;
  }
  if (!parse_attributes(op) || !scan_.expect(":") || !parse_type(pointer)) return false;
  if (pointer.elem != Elem::kPointer) return scan_.fail("expected a pointer type");
  if (op.operands.empty() || type_of(op.operands[0]) != pointer)
    return scan_.fail("expected the pointer's own type");
  if (op.kind == OpKind::kLoad) {
    Type value = pointer;
    value.elem = pointer.pointee;
    value.pointee = Elem::kNone;
    results = {value};
  }
  return true;
}

// tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (T, U, M) -> U
bool Parser::parse_atomic(Op& op, std::vector<Type>& results) {
  if (op.kind == OpKind::kAtomicRmw && (!parse_keyword(op, "rmw") || !scan_.expect(","))) return false;
  std::vector<Type> inputs;
  return parse_keyword(op, "sem") && scan_.expect(",") && parse_keyword(op, "scope") && scan_.expect(",") &&
         parse_uses(op.operands) && parse_attributes(op) && scan_.expect(":") &&
         parse_function_type(inputs, results) && expect_types(op.operands, inputs);
}

// %a, %b, %c, inputPrecision = tf32 {attributes} : A * B -> C
bool Parser::parse_dot(Op& op, std::vector<Type>& results) {
  do {
    if (scan_.accept("inputPrecision")) {
      if (!scan_.expect("=") || !parse_keyword(op, "inputPrecision")) return false;
      break;
    }
    ValueId value;
    if (!parse_use(value)) return false;
    op.operands.push_back(value);
  } while (scan_.accept(","));
  Type a, b;
  results.emplace_back();
  return parse_attributes(op) && scan_.expect(":") && parse_type(a) && scan_.expect("*") && parse_type(b) &&
         scan_.expect("->") && parse_type(results.back()) &&
         expect_types(op.operands, {a, b, results.back()});
}

// %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {fastMath = false} : A, SA * B, SB -> C
bool Parser::parse_dot_scaled(Op& op, std::vector<Type>& results) {
  ValueId a, b, c, scale_a = -1, scale_b = -1;
  if (!parse_use(a) || (scan_.accept("scale") && !parse_use(scale_a)) || !scan_.expect(",")) return false;
  if (!parse_use(b) || (scan_.accept("scale") && !parse_use(scale_b)) || !scan_.expect(",") || !parse_use(c))
    return false;
  if (!scan_.expect("lhs") || !scan_.expect("=") || !parse_keyword(op, "lhs") || !scan_.expect("rhs") ||
      !scan_.expect("=") || !parse_keyword(op, "rhs") || !parse_attributes(op) || !scan_.expect(":"))
    return false;
  op.operands = {a, b, c};
  op.segments = {1, 1, 1, scale_a >= 0, scale_b >= 0};
  if (scale_a >= 0) op.operands.push_back(scale_a);
  if (scale_b >= 0) op.operands.push_back(scale_b);
  Type ta, tb, tsa, tsb;
  if (!parse_type(ta) || (scale_a >= 0 && (!scan_.expect(",") || !parse_type(tsa))) || !scan_.expect("*") ||
      !parse_type(tb) || (scale_b >= 0 && (!scan_.expect(",") || !parse_type(tsb))) || !scan_.expect("->"))
    return false;
  results.emplace_back();
  if (!parse_type(results.back())) return false;
  std::vector<Type> types = {ta, tb, results.back()};
  if (scale_a >= 0) types.push_back(tsa);
  if (scale_b >= 0) types.push_back(tsb);
  return expect_types(op.operands, types);
}

// "asm" {constraints = ..., packed_element = 1 : i32, pure = true} %a, %b : T, T -> U, U
bool Parser::parse_inline_asm(Op& op, std::vector<Type>& results) {
  auto assembly = scan_.quoted();
  if (!assembly || !parse_attributes(op)) return false;
  Attribute text;
  text.kind = Attribute::Kind::kText;
  text.text = *assembly;
  op.attributes["asm"] = text;
  if (scan_.peek_char() == '%') {
    if (!parse_uses(op.operands) || !scan_.expect(":")) return false;
    std::vector<Type> inputs;
    do {
      inputs.emplace_back();
      if (!parse_type(inputs.back())) return false;
    } while (scan_.accept(","));
    if (!expect_types(op.operands, inputs)) return false;
  } else {
    scan_.accept(":");
  }
  if (!scan_.expect("->")) return false;
  do {
    results.emplace_back();
    if (!parse_type(results.back())) return false;
  } while (scan_.accept(","));
  return true;
}

// %base, [%shape..], [%strides..] {padding = ...} : <f16>, <tensor<32x16xf16>>
bool Parser::parse_make_descriptor(Op& op, std::vector<Type>& results) {
  ValueId base;
  std::vector<ValueId> shape, strides;
  if (!parse_use(base) || !scan_.expect(",") || !parse_bracketed_uses(shape) || !scan_.expect(",") ||
      !parse_bracketed_uses(strides))
    return false;
  if (scan_.accept(",") || scan_.peek("padding")) {
    if (!scan_.expect("padding") || !scan_.expect("=") || !parse_keyword(op, "padding")) return false;
  }
  if (!parse_attributes(op) || !scan_.expect(":")) return false;
  op.operands = {base};
  op.operands.insert(op.operands.end(), shape.begin(), shape.end());
  op.operands.insert(op.operands.end(), strides.begin(), strides.end());
  op.segments = {1, static_cast<int32_t>(shape.size()), static_cast<int32_t>(strides.size())};
  scan_.accept("!tt.ptr");
  Type pointee, block;
  if (!scan_.expect("<") || !parse_element(pointee) || !scan_.expect(">") || !scan_.expect(",")) return false;
  scan_.accept("!tt.tensordesc");
  if (!scan_.expect("<") || !scan_.expect("tensor") || !parse_tensor_body(block) || !scan_.expect(">"))
    return false;
  results.emplace_back();
  results.back().elem = Elem::kDescriptor;
  results.back().pointee = block.elem;
  results.back().shape = block.shape;
  return true;
}

// descriptor_load %d[%i, %j] ... : D -> T; descriptor_store %d[%i, %j], %v : D, T; descriptor_reduce add,
// %d[..], %v : D, T; descriptor_gather %d[%x, %y] : (D, X, i32) -> T; descriptor_scatter %d[%x, %y], %v : D,
// X, i32, T
bool Parser::parse_descriptor(Op& op, std::vector<Type>& results) {
  if (op.kind == OpKind::kDescriptorReduce && (!parse_keyword(op, "rmw") || !scan_.expect(","))) return false;
  ValueId descriptor;
  std::vector<ValueId> indices;
  if (!parse_use(descriptor) || !parse_bracketed_uses(indices)) return false;
  op.operands = {descriptor};
  op.operands.insert(op.operands.end(), indices.begin(), indices.end());
  op.segments = {1, static_cast<int32_t>(indices.size())};
  const bool gathers = op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter;
  const bool loads = op.kind == OpKind::kDescriptorLoad || op.kind == OpKind::kDescriptorGather;
  ValueId value = -1;
  if (!loads) {
    if (!scan_.expect(",") || !parse_use(value)) return false;
    op.operands.push_back(value);
  }
  while (scan_.peek("cacheModifier") || scan_.peek("evictionPolicy")) {
    const auto name = scan_.identifier();
    if (!scan_.expect("=") || !parse_keyword(op, *name)) return false;
  }
  if (!parse_attributes(op) || !scan_.expect(":")) return false;
  if (op.kind == OpKind::kDescriptorGather) {
    std::vector<Type> inputs;
    return parse_function_type(inputs, results) && expect_types(op.operands, inputs);
  }
  std::vector<Type> types;
  do {
    types.emplace_back();
    if (!parse_type(types.back())) return false;
  } while (scan_.accept(","));
  if (loads) {
    results.emplace_back();
    return expect_types({descriptor}, types) && scan_.expect("->") && parse_type(results.back());
  }
  return gathers ? expect_types(op.operands, types) : expect_types({descriptor, value}, types);
}

}  // namespace nereid::ttir
