// Operators that work element by element. Formulas are PyTorch's documentation's.
#include <cmath>
#include <numbers>

#include "nereid/lower/import.h"

namespace nereid::lower {
namespace {

// Expressions with the operators of arithmetic: x * 2 + y.
class Value {
 public:
  Value(Exprs& exprs, ExprId id) : exprs_(&exprs), id_(id) {}
  ExprId id() const { return id_; }
  DType type() const { return (*exprs_)[id_].type; }
  Value constant(double number) const { return {*exprs_, exprs_->constant(number, type())}; }
  Value apply(Fn fn) const { return {*exprs_, exprs_->apply(fn, {id_})}; }
  Value apply(Fn fn, Value other) const { return {*exprs_, exprs_->apply(fn, {id_, other.id_})}; }
  Value where(Value then, Value otherwise) const {
    return {*exprs_, exprs_->apply(Fn::kWhere, {id_, then.id_, otherwise.id_})};
  }
  friend Value operator+(Value a, Value b) { return a.apply(Fn::kAdd, b); }
  friend Value operator-(Value a, Value b) { return a.apply(Fn::kSub, b); }
  friend Value operator*(Value a, Value b) { return a.apply(Fn::kMul, b); }
  friend Value operator/(Value a, Value b) { return a.apply(Fn::kDiv, b); }
  friend Value operator+(Value a, double b) { return a + a.constant(b); }
  friend Value operator-(Value a, double b) { return a - a.constant(b); }
  friend Value operator*(Value a, double b) { return a * a.constant(b); }
  friend Value operator/(Value a, double b) { return a / a.constant(b); }
  friend Value operator<(Value a, double b) { return a.apply(Fn::kLess, a.constant(b)); }
  friend Value operator>(Value a, double b) { return a.constant(b).apply(Fn::kLess, a); }
  friend Value operator<(Value a, Value b) { return a.apply(Fn::kLess, b); }

 private:
  Exprs* exprs_;
  ExprId id_;
};

Value maximum(Value a, double b) { return a.apply(Fn::kMax, a.constant(b)); }
Value minimum(Value a, double b) { return a.apply(Fn::kMin, a.constant(b)); }
Value clamp(Value a, double low, double high) { return minimum(maximum(a, low), high); }

std::string short_name(const std::string& op) {
  const std::string name = op.substr(op.find("::") + 2);
  return name.substr(0, name.find('.'));
}

using Unary = std::function<Value(Importer&, Value)>;

// One tensor in, one of its shape out.
OperatorImport unary(Unary formula) {
  return [formula = std::move(formula)](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    if (!x || results.empty()) return import.cannot("expected one tensor");
    const auto& out = import.value(results[0]);
    const ExprId operand = import.operand(*x, out.sizes, compute_type(out.dtype));
    if (operand < 0) return import.define(results[0], operand, "");
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
    if (x < 0 || y < 0) return import.define(results[0], -1, "");
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
  if (c < 0 || a < 0 || b < 0) return import.define(results[0], -1, "");
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
  if (x < 0 || m < 0 || fill < 0) return import.define(results[0], -1, "");
  return import.define(results[0], import.exprs().apply(Fn::kWhere, {m, fill, x}), "masked_fill");
}

// A bound that is a tensor is no number: refused rather than taken for none.
Status clamp_operator(Importer& import) {
  const auto results = import.results();
  const auto *low = import.arg(1, "min"), *high = import.arg(2, "max");
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
      if (x[i] < 0) return import.define(results[0], -1, "");
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
    if (x[i] < 0) return import.define(results[0], -1, "");
  }
  const Value a(import.exprs(), x[0]), b(import.exprs(), x[1]), weight(import.exprs(), x[2]);
  return import.define(results[0], (a + weight * (b - a)).id(), "lerp");
}

Status divide(Importer& import) {
  if (!trace::is_floating(import.value(import.results().at(0)).dtype))
    return import.cannot("it divides integers");
  return binary([](Importer& each, Value a, Value b) {
    const std::string rounding = each.text(each.arg(2, "rounding_mode"), "");
    const Value quotient = a / b;
    return rounding == "floor"   ? quotient.apply(Fn::kFloor)
           : rounding == "trunc" ? quotient.apply(Fn::kTrunc)
                                 : quotient;
  })(import);
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
      {"abs", Fn::kAbs},     {"neg", Fn::kNeg},        {"exp", Fn::kExp},   {"exp2", Fn::kExp2},
      {"expm1", Fn::kExpm1}, {"log", Fn::kLog},        {"log2", Fn::kLog2}, {"log1p", Fn::kLog1p},
      {"sqrt", Fn::kSqrt},   {"rsqrt", Fn::kRsqrt},    {"sin", Fn::kSin},   {"cos", Fn::kCos},
      {"tan", Fn::kTan},     {"asin", Fn::kAsin},      {"acos", Fn::kAcos}, {"atan", Fn::kAtan},
      {"sinh", Fn::kSinh},   {"cosh", Fn::kCosh},      {"tanh", Fn::kTanh}, {"erf", Fn::kErf},
      {"erfc", Fn::kErfc},   {"floor", Fn::kFloor},    {"ceil", Fn::kCeil}, {"trunc", Fn::kTrunc},
      {"round", Fn::kRound}, {"sigmoid", Fn::kSigmoid}};
  for (const auto& [name, fn] : functions) table[std::string("aten::") + name] = function(fn);
  for (const char* copy : {"clone", "contiguous", "detach", "alias", "lift_fresh_copy"})
    table[std::string("aten::") + copy] = unary([](Importer&, Value x) { return x; });
  // Asked for, a rounding to a narrower type is part of what is computed.
  table["aten::_to_copy"] = unary([](Importer& import, Value x) {
    const DType type = import.value(import.results().at(0)).dtype;
    return Value(import.exprs(), import.exprs().cast(import.exprs().cast(x.id(), type), compute_type(type)));
  });
  table["aten::reciprocal"] = unary([](Importer&, Value x) { return x.constant(1) / x; });
  table["aten::sign"] = unary([](Importer&, Value x) {
    return (x > 0).where(x.constant(1), (x < 0).where(x.constant(-1), x.constant(0)));
  });
  table["aten::square"] = unary([](Importer&, Value x) { return x * x; });
  add_activations(table);

  table["aten::add"] = binary(
      [](Importer& import, Value a, Value b) { return a + b * import.number(import.arg(2, "alpha"), 1); });
  table["aten::sub"] = binary(
      [](Importer& import, Value a, Value b) { return a - b * import.number(import.arg(2, "alpha"), 1); });
  table["aten::rsub"] = binary(
      [](Importer& import, Value a, Value b) { return b - a * import.number(import.arg(2, "alpha"), 1); });
  table["aten::mul"] = binary([](Importer&, Value a, Value b) { return a * b; });
  table["aten::div"] = divide;
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
  for (const char* name : {"clamp", "clamp_min", "clip"})
    table[std::string("aten::") + name] = clamp_operator;
  table["aten::addcmul"] = add_product(Fn::kMul);
  table["aten::addcdiv"] = add_product(Fn::kDiv);
  table["aten::lerp"] = lerp;
}

}  // namespace nereid::lower
