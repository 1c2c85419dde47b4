// Operators that work element by element. Formulas are PyTorch's documentation's.
#include <cmath>
#include <limits>
#include <numbers>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"

namespace nereid::compiler {
namespace {

using Unary = std::function<Value(Importer&, Value)>;

// One tensor in, one of its shape out.
OperatorImport unary(Unary formula) {
  return [formula = std::move(formula)](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    if (!x || results.empty()) return import.cannot("expected one tensor");
    const auto& out = import.value(results[0]);
    const ExprId operand = import.operand(*x, out.sizes, compute_type(out.dtype));
    return import.define(results[0], formula(import, Value(import.exprs(), operand)).id(),
                         short_name(import.call().op));
  };
}

OperatorImport function(Fn fn) {
  return unary([fn](Importer&, Value x) { return x.apply(fn); });
}

// The type in which two operands are compared: of the widest that is floating, else of integers.
DType common_type(Importer& import, std::initializer_list<const trace::Arg*> args) {
  DType common = DType::kBool;
  for (const auto* arg : args) {
    DType type = DType::kI64;
    if (const auto id = import.tensor(arg))
      type = compute_type(import.value(*id).dtype);
    else if (arg != nullptr && std::holds_alternative<double>(arg->node))
      type = DType::kF32;
    if (trace::is_floating(type) && (!trace::is_floating(common) || type == DType::kF64)) common = type;
    if (!trace::is_floating(type) && !trace::is_floating(common) && type > common) common = type;
  }
  return common;
}

OperatorImport binary(std::function<Value(Importer&, Value, Value)> formula, bool compares = false) {
  return [formula = std::move(formula), compares](Importer& import) -> Status {
    const auto *a = import.arg(0, "self"), *b = import.arg(1, "other");
    const auto results = import.results();
    if (a == nullptr || b == nullptr || results.empty()) return import.cannot("expected two operands");
    const auto& out = import.value(results[0]);
    const DType type = compares ? common_type(import, {a, b}) : compute_type(out.dtype);
    const ExprId x = import.operand(a, out.sizes, type), y = import.operand(b, out.sizes, type);
    return import.define(results[0], formula(import, Value(import.exprs(), x), Value(import.exprs(), y)).id(),
                         short_name(import.call().op));
  };
}

OperatorImport comparison(Fn fn, bool swapped = false) {
  return binary(
      [fn, swapped](Importer&, Value a, Value b) { return swapped ? b.apply(fn, a) : a.apply(fn, b); }, true);
}

Value gelu(Importer& import, Value x) {
  if (import.text(import.arg(1, "approximate"), "none") == "tanh") {
    const Value inner = (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi);
    return x * 0.5 * (inner.apply(Fn::kTanh) + 1.0);
  }
  return x * 0.5 * ((x * (1 / std::numbers::sqrt2)).apply(Fn::kErf) + 1.0);
}

// x where beta * x is beyond the threshold, else log(1 + exp(beta * x)) / beta.
Value softplus(Value x, double beta, double threshold) {
  const Value scaled = x * beta;
  return (scaled > threshold).where(x, scaled.apply(Fn::kExp).apply(Fn::kLog1p) / beta);
}

Status where(Importer& import) {
  const auto results = import.results();
  const auto condition = import.tensor(import.arg(0, "condition"));
  if (!condition || results.empty()) return import.cannot("expected a condition and two operands");
  const auto& out = import.value(results[0]);
  const DType type = compute_type(out.dtype);
  const ExprId c = import.operand(*condition, out.sizes, DType::kBool);
  const ExprId a = import.operand(import.arg(1, "self"), out.sizes, type);
  const ExprId b = import.operand(import.arg(2, "other"), out.sizes, type);
  return import.define(results[0], import.exprs().apply(Fn::kWhere, {c, a, b}), "where");
}

Status masked_fill(Importer& import) {
  const auto results = import.results();
  const auto mask = import.tensor(import.arg(1, "mask"));
  if (!mask || results.empty()) return import.cannot("expected a mask");
  const auto& out = import.value(results[0]);
  const DType type = compute_type(out.dtype);
  const ExprId x = import.operand(import.arg(0, "self"), out.sizes, type);
  const ExprId m = import.operand(*mask, out.sizes, DType::kBool);
  const ExprId fill = import.operand(import.arg(2, "value"), out.sizes, type);
  return import.define(results[0], import.exprs().apply(Fn::kWhere, {m, fill, x}), "masked_fill");
}

// A bound that is a tensor is no number: refused rather than taken for none.
Status clamp_operator(Importer& import) {
  const auto results = import.results();
  const bool only_high = short_name(import.call().op).starts_with("clamp_max");
  const auto* low = only_high ? nullptr : import.arg(1, "min");
  const auto* high = import.arg(only_high ? 1 : 2, "max");
  const auto& out = import.value(results.at(0));
  const DType type = compute_type(out.dtype);
  ExprId x = import.operand(import.arg(0, "self"), out.sizes, type);
  const auto given = [](const trace::Arg* arg) {
    return arg != nullptr && !std::holds_alternative<trace::None>(arg->node);
  };
  if (x >= 0 && given(low)) x = import.exprs().apply(Fn::kMax, {x, import.operand(low, out.sizes, type)});
  if (x >= 0 && given(high)) x = import.exprs().apply(Fn::kMin, {x, import.operand(high, out.sizes, type)});
  return import.define(results[0], x, "clamp");
}

// self + value * (a op b): addcmul and addcdiv.
OperatorImport add_product(Fn fn) {
  return [fn](Importer& import) -> Status {
    const auto results = import.results();
    const auto& out = import.value(results.at(0));
    const DType type = compute_type(out.dtype);
    ExprId x[3];
    for (size_t i = 0; i < 3; ++i) {
      x[i] = import.operand(import.arg(i, ""), out.sizes, type);
    }
    const Value self(import.exprs(), x[0]), a(import.exprs(), x[1]), b(import.exprs(), x[2]);
    const Value product = a.apply(fn, b) * import.number(import.arg(3, "value"), 1);
    return import.define(results[0], (self + product).id(), short_name(import.call().op));
  };
}

Status lerp(Importer& import) {
  const auto results = import.results();
  const auto& out = import.value(results.at(0));
  const DType type = compute_type(out.dtype);
  ExprId x[3];
  for (size_t i = 0; i < 3; ++i) {
    x[i] = import.operand(import.arg(i, ""), out.sizes, type);
  }
  const Value a(import.exprs(), x[0]), b(import.exprs(), x[1]), weight(import.exprs(), x[2]);
  // From the nearer end, as PyTorch: what is close to an end loses least.
  const Value way = b - a;
  const Value near_a = a + weight * way, near_b = b - way * (-weight + 1.0);
  const Expr& known = import.exprs()[weight.id()];
  if (known.kind == Expr::Kind::kConstant)
    return import.define(results[0], (std::fabs(known.number) < 0.5 ? near_a : near_b).id(), "lerp");
  return import.define(results[0], (weight.apply(Fn::kAbs) < 0.5).where(near_a, near_b).id(), "lerp");
}

// Of integers, towards zero. In lanes that a mask leaves out the divisor is 0, by which no integer is
// divided.
Value integer_quotient(Value a, Value b) { return a.apply(Fn::kIntDiv, equal(b, 0).where(b.constant(1), b)); }

// Rounded towards minus infinity; integers by the remainder.
Value floor_divided(Value a, Value b) {
  if (trace::is_floating(a.type())) {
    // As PyTorch, so that what the division rounds away is not lost, and infinite divisors say -1 below zero.
    const Value left = a.apply(Fn::kFmod, b), whole = (a - left) / b;
    const Value down = negated(equal(left, 0)) & negated(equal(left < 0, b < 0));
    const Value floored = down.where(whole - 1.0, whole).apply(Fn::kRound);
    return equal(b, 0).where(a / b, floored);
  }
  const Value quotient = integer_quotient(a, b), left = a - quotient * b;
  return (negated(equal(left, 0)) & negated(equal(left < 0, b < 0))).where(quotient - 1, quotient);
}

Value rounded_quotient(Importer& import, Value a, Value b) {
  const std::string rounding = import.text(import.arg(2, "rounding_mode"), "");
  if (rounding == "floor") return floor_divided(a, b);
  if (rounding == "trunc")
    return trace::is_floating(a.type()) ? (a / b).apply(Fn::kTrunc) : integer_quotient(a, b);
  return a / b;
}

// With the sign of the divisor, exactly: the remainder of a division towards zero, and the divisor once more
// where the signs differ.
Value remainder_of(Importer&, Value a, Value b) {
  if (!trace::is_floating(a.type())) return a - floor_divided(a, b) * b;
  const Value left = a.apply(Fn::kFmod, b);
  return (negated(equal(left, 0)) & negated(equal(left < 0, b < 0))).where(left + b, left);
}

Value fmod_of(Importer&, Value a, Value b) {
  return trace::is_floating(a.type()) ? a.apply(Fn::kFmod, b) : a - integer_quotient(a, b) * b;
}

// Zero times anything is zero, a logarithm of NaN is not.
Value xlogy(Importer&, Value a, Value b) {
  return (equal(a, 0) & negated(is_nan(b))).where(a.constant(0), a * b.apply(Fn::kLog));
}

Value logaddexp(Importer&, Value a, Value b) {
  const Value most = maximum(a, b), distance = (a - b).apply(Fn::kAbs);
  return equal(a, b).where(a + std::numbers::ln2, most + (-distance).apply(Fn::kExp).apply(Fn::kLog1p));
}

Value heaviside(Importer&, Value x, Value at_zero) {
  return equal(x, 0).where(at_zero, (x > 0).cast(x.type()));
}

OperatorImport logical(Fn fn) {
  return binary(
      [fn](Importer&, Value a, Value b) { return negated(equal(a, 0)).apply(fn, negated(equal(b, 0))); },
      true);
}

// The larger, the other one where one is no number.
OperatorImport number_of_two(Fn fn) {
  return binary(
      [fn](Importer&, Value a, Value b) { return is_nan(a).where(b, is_nan(b).where(a, a.apply(fn, b))); });
}

Status nan_to_num(Importer& import) {
  const Value x = import.operand(0);
  const DType stored = import.result().dtype;
  const double largest = stored == DType::kF16    ? 65504
                         : stored == DType::kBF16 ? 0x1.fep127
                         : stored == DType::kF64  ? std::numeric_limits<double>::max()
                                                  : static_cast<double>(std::numeric_limits<float>::max());
  const double high = import.number(import.arg(2, "posinf"), largest),
               low = import.number(import.arg(3, "neginf"), -largest);
  const double infinity = std::numeric_limits<double>::infinity();
  const Value finite =
      equal(x, infinity).where(x.constant(high), equal(x, -infinity).where(x.constant(low), x));
  return import.define(import.results()[0],
                       is_nan(x).where(x.constant(import.number(import.arg(1, "nan"), 0)), finite).id(),
                       "nan_to_num");
}

// The first half of a dimension times the sigmoid of the second.
Status glu(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Extents sizes = import.result().sizes;
  const size_t axis = axis_of(import.integer(import.arg(1, "dim"), -1), sizes.size());
  auto at = dimensions(sizes.size());
  const Value first(import.exprs(), import.read(x.value(), at, sizes));
  at[axis] = at[axis] + Index(sizes[axis]);
  const Value second(import.exprs(), import.read(*x, at, sizes));
  return import.define(import.results()[0], (first * second.apply(Fn::kSigmoid)).id(), "glu");
}

Status prelu(Importer& import) {
  const Value x = import.operand(0), slope = import.operand(1);
  return import.define(import.results()[0], (x > 0).where(x, x * slope).id(), "prelu");
}

Value power(Importer&, Value a, Value b) { return a.apply(Fn::kPow, b); }

// An exponent that is a number: products and roots rather than a power.
Status pow_operator(Importer& import) {
  const auto* exponent = import.arg(1, "exponent");
  const double n = import.tensor(exponent) ? std::nan("") : import.number(exponent, std::nan(""));
  const auto simple = [&](Importer&, Value x) -> Value {
    if (n == 2) return x * x;
    if (n == 3) return x * x * x;
    if (n == 1) return x;
    if (n == 0.5) return x.apply(Fn::kSqrt);
    if (n == -0.5) return x.apply(Fn::kRsqrt);
    if (n == -1) return x.constant(1) / x;
    return x.apply(Fn::kPow, x.constant(n));
  };
  return std::isnan(n) ? binary(power)(import) : unary(simple)(import);
}

void add_activations(OperatorTable& table) {
  table["aten::relu"] = unary([](Importer&, Value x) { return maximum(x, 0); });
  table["aten::relu6"] = unary([](Importer&, Value x) { return clamp(x, 0, 6); });
  table["aten::leaky_relu"] = unary([](Importer& import, Value x) {
    return (x > 0).where(x, x * import.number(import.arg(1, "negative_slope"), 0.01));
  });
  table["aten::silu"] = unary([](Importer&, Value x) { return x * x.apply(Fn::kSigmoid); });
  table["aten::gelu"] = unary(gelu);
  table["aten::mish"] = unary([](Importer&, Value x) { return x * softplus(x, 1, 20).apply(Fn::kTanh); });
  table["aten::hardsigmoid"] = unary([](Importer&, Value x) { return clamp(x + 3.0, 0, 6) / 6.0; });
  table["aten::hardswish"] = unary([](Importer&, Value x) { return x * clamp(x + 3.0, 0, 6) / 6.0; });
  table["aten::hardtanh"] = unary([](Importer& import, Value x) {
    return clamp(x, import.number(import.arg(1, "min_val"), -1), import.number(import.arg(2, "max_val"), 1));
  });
  table["aten::elu"] = unary([](Importer& import, Value x) {
    const double alpha = import.number(import.arg(1, "alpha"), 1),
                 scale = import.number(import.arg(2, "scale"), 1);
    const double input_scale = import.number(import.arg(3, "input_scale"), 1);
    return (x > 0).where(x * scale, (x * input_scale).apply(Fn::kExpm1) * (alpha * scale));
  });
  table["aten::celu"] = unary([](Importer& import, Value x) {
    const double alpha = import.number(import.arg(1, "alpha"), 1);
    return (x > 0).where(x, (x / alpha).apply(Fn::kExpm1) * alpha);
  });
  table["aten::selu"] = unary([](Importer&, Value x) {
    constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
    return (x > 0).where(x * kScale, x.apply(Fn::kExpm1) * (kAlpha * kScale));
  });
  table["aten::softplus"] = unary([](Importer& import, Value x) {
    return softplus(x, import.number(import.arg(1, "beta"), 1),
                    import.number(import.arg(2, "threshold"), 20));
  });
  table["aten::log_sigmoid"] = unary([](Importer&, Value x) {
    return minimum(x, 0) - x.apply(Fn::kAbs).apply(Fn::kNeg).apply(Fn::kExp).apply(Fn::kLog1p);
  });
  table["aten::threshold"] = unary([](Importer& import, Value x) {
    const Value limit = x.constant(import.number(import.arg(1, "threshold"), 0));
    return x.apply(Fn::kLessEqual, limit).where(x.constant(import.number(import.arg(2, "value"), 0)), x);
  });
  // Without training, the mean slope.
  table["aten::rrelu_with_noise"] = unary([](Importer& import, Value x) {
    const double low = import.number(import.arg(2, "lower"), 0.125),
                 high = import.number(import.arg(3, "upper"), 1.0 / 3);
    if (import.flag(import.arg(4, "training"), false)) import.fail("it draws random numbers");
    return (x > 0).where(x, x * ((low + high) / 2));
  });
  table["aten::hardshrink"] = unary([](Importer& import, Value x) {
    const double limit = import.number(import.arg(1, "lambd"), 0.5);
    return x.apply(Fn::kAbs).apply(Fn::kLessEqual, x.constant(limit)).where(x.constant(0), x);
  });
  table["aten::softshrink"] = unary([](Importer& import, Value x) {
    const double limit = import.number(import.arg(1, "lambd"), 0.5);
    return (x > limit).where(x - limit, (x < -limit).where(x + limit, x * 0.0));
  });
}

}  // namespace

void add_pointwise(OperatorTable& table) {
  const std::pair<const char*, Fn> functions[] = {
      {"abs", Fn::kAbs},        {"neg", Fn::kNeg},     {"exp", Fn::kExp},   {"exp2", Fn::kExp2},
      {"expm1", Fn::kExpm1},    {"log", Fn::kLog},     {"log2", Fn::kLog2}, {"log1p", Fn::kLog1p},
      {"sqrt", Fn::kSqrt},      {"rsqrt", Fn::kRsqrt}, {"sin", Fn::kSin},   {"cos", Fn::kCos},
      {"tan", Fn::kTan},        {"asin", Fn::kAsin},   {"acos", Fn::kAcos}, {"atan", Fn::kAtan},
      {"sinh", Fn::kSinh},      {"cosh", Fn::kCosh},   {"tanh", Fn::kTanh}, {"erf", Fn::kErf},
      {"erfc", Fn::kErfc},      {"floor", Fn::kFloor}, {"ceil", Fn::kCeil}, {"trunc", Fn::kTrunc},
      {"sigmoid", Fn::kSigmoid}};
  for (const auto& [name, fn] : functions) table[std::string("aten::") + name] = function(fn);
  for (const char* copy : {"clone", "contiguous", "detach", "alias", "lift_fresh_copy"})
    table[std::string("aten::") + copy] = unary([](Importer&, Value x) { return x; });
  // Asked for, a rounding to a narrower type is part of what is computed.
  table["aten::_to_copy"] = unary([](Importer& import, Value x) {
    const DType type = import.value(import.results().at(0)).dtype;
    return Value(import.exprs(), import.exprs().cast(import.exprs().cast(x.id(), type), compute_type(type)));
  });
  table["aten::reciprocal"] = unary([](Importer&, Value x) { return x.constant(1) / x; });
  for (const char* name : {"sign", "sgn"})
    table[std::string("aten::") + name] = unary([](Importer&, Value x) {
      return (x > 0).where(x.constant(1), (x < 0).where(x.constant(-1), x.constant(0)));
    });
  table["aten::square"] = unary([](Importer&, Value x) { return x * x; });
  table["aten::frac"] = unary([](Importer&, Value x) { return x - x.apply(Fn::kTrunc); });
  table["aten::log10"] =
      unary([](Importer&, Value x) { return x.apply(Fn::kLog2) * std::numbers::ln2 / std::numbers::ln10; });
  table["aten::asinh"] = unary([](Importer&, Value x) {
    const Value size = x.apply(Fn::kAbs);
    const Value found = (size + size * size / ((size * size + 1.0).apply(Fn::kSqrt) + 1.0)).apply(Fn::kLog1p);
    return (x < 0).where(-found, found);
  });
  table["aten::sinc"] = unary([](Importer&, Value x) {
    const Value angle = x * std::numbers::pi;
    return equal(x, 0).where(x.constant(1), angle.apply(Fn::kSin) / angle);
  });
  table["aten::deg2rad"] = unary([](Importer&, Value x) { return x * (std::numbers::pi / 180); });
  table["aten::rad2deg"] = unary([](Importer&, Value x) { return x * (180 / std::numbers::pi); });
  table["aten::logit"] = unary([](Importer& import, Value x) {
    const double eps = import.number(import.arg(1, "eps"), -1);
    const Value inside = eps < 0 ? x : clamp(x, eps, 1 - eps);
    return (inside / (inside.constant(1) - inside)).apply(Fn::kLog);
  });
  // Of the operand's own type: the result is a boolean.
  const auto of_operand = [](std::function<Value(Value)> formula) -> OperatorImport {
    return [formula](Importer& import) -> Status {
      const auto x = import.tensor(import.arg(0, "self"));
      const Extents sizes = import.result().sizes;
      const Value value(import.exprs(), import.read(x.value(), dimensions(sizes.size()), sizes));
      return import.define(import.results()[0], formula(value).id(), short_name(import.call().op));
    };
  };
  table["aten::isnan"] = of_operand(is_nan);
  table["aten::isinf"] = of_operand([](Value x) { return x.apply(Fn::kIsInf); });
  table["aten::isfinite"] =
      of_operand([](Value x) { return x.apply(Fn::kAbs) < std::numeric_limits<double>::infinity(); });
  table["aten::logical_not"] = of_operand([](Value x) { return equal(x, 0); });
  table["aten::bitwise_not"] =
      of_operand([](Value x) { return x.type() == DType::kBool ? equal(x, 0) : -x - 1.0; });
  table["aten::nan_to_num"] = nan_to_num;
  table["aten::glu"] = glu;
  table["aten::_prelu_kernel"] = prelu;
  table["aten::prelu"] = prelu;
  add_activations(table);

  table["aten::add"] = binary(
      [](Importer& import, Value a, Value b) { return a + b * import.number(import.arg(2, "alpha"), 1); });
  table["aten::sub"] = binary(
      [](Importer& import, Value a, Value b) { return a - b * import.number(import.arg(2, "alpha"), 1); });
  table["aten::rsub"] = binary(
      [](Importer& import, Value a, Value b) { return b - a * import.number(import.arg(2, "alpha"), 1); });
  table["aten::mul"] = binary([](Importer&, Value a, Value b) { return a * b; });
  table["aten::div"] = binary(rounded_quotient);
  table["aten::true_divide"] = binary(rounded_quotient);
  table["aten::floor_divide"] = binary([](Importer&, Value a, Value b) { return floor_divided(a, b); });
  table["aten::remainder"] = binary(remainder_of);
  table["aten::fmod"] = binary(fmod_of);
  table["aten::xlogy"] = binary(xlogy);
  table["aten::logaddexp"] = binary(logaddexp);
  table["aten::heaviside"] = binary(heaviside);
  table["aten::hypot"] = binary([](Importer&, Value a, Value b) { return (a * a + b * b).apply(Fn::kSqrt); });
  table["aten::copysign"] = binary([](Importer&, Value a, Value b) {
    const Value size = a.apply(Fn::kAbs);
    const Value minus_zero = equal(b, 0) & ((b.constant(1) / b) < 0);
    return ((b < 0) | minus_zero).where(-size, size);
  });
  table["aten::fmax"] = number_of_two(Fn::kMax);
  table["aten::fmin"] = number_of_two(Fn::kMin);
  for (const auto& [name, fn] : {std::pair{"and", Fn::kAnd}, {"or", Fn::kOr}, {"xor", Fn::kXor}}) {
    table[std::string("aten::logical_") + name] = logical(fn);
    table[std::string("aten::bitwise_") + name] =
        binary([fn = fn](Importer&, Value a, Value b) { return a.apply(fn, b); });
    table[std::string("aten::__") + name + "__"] = table[std::string("aten::bitwise_") + name];
  }
  table["aten::maximum"] = binary([](Importer&, Value a, Value b) { return a.apply(Fn::kMax, b); });
  table["aten::minimum"] = binary([](Importer&, Value a, Value b) { return a.apply(Fn::kMin, b); });
  table["aten::atan2"] = binary([](Importer&, Value a, Value b) { return a.apply(Fn::kAtan2, b); });
  table["aten::pow"] = pow_operator;
  table["aten::lt"] = comparison(Fn::kLess);
  table["aten::le"] = comparison(Fn::kLessEqual);
  table["aten::gt"] = comparison(Fn::kLess, true);
  table["aten::ge"] = comparison(Fn::kLessEqual, true);
  table["aten::eq"] = comparison(Fn::kEqual);
  table["aten::ne"] = comparison(Fn::kNotEqual);
  table["aten::where"] = where;
  table["aten::masked_fill"] = masked_fill;
  for (const char* name : {"clamp", "clamp_min", "clamp_max", "clip"})
    table[std::string("aten::") + name] = clamp_operator;
  table["aten::addcmul"] = add_product(Fn::kMul);
  table["aten::addcdiv"] = add_product(Fn::kDiv);
  table["aten::lerp"] = lerp;
}

}  // namespace nereid::compiler
