// Special functions and shifts of bits, element by element. Formulas are PyTorch's documentation's;
// expansions are those of Abramowitz and Stegun, "Handbook of Mathematical Functions", by number.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"

namespace nereid::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Operands over the result's dimensions, in its compute type.
template <size_t count>
OperatorImport of_operands(std::function<Value(Importer&, const std::array<Value, count>&)> formula) {
  return [formula = std::move(formula)](Importer& import) -> Status {
    const auto at = [&](size_t i) { return import.operand(i); };
    if constexpr (count == 1)
      return import.define(import.results().at(0), formula(import, {at(0)}).id(),
                           short_name(import.call().op));
    else
      return import.define(import.results().at(0), formula(import, {at(0), at(1)}).id(),
                           short_name(import.call().op));
  };
}
OperatorImport of_one(std::function<Value(Value)> formula) {
  return of_operands<1>([formula = std::move(formula)](Importer&, const auto& x) { return formula(x[0]); });
}
OperatorImport of_two(std::function<Value(Value, Value)> formula) {
  return of_operands<2>(
      [formula = std::move(formula)](Importer&, const auto& x) { return formula(x[0], x[1]); });
}
// In float64, whose rounding the result's type does not see.
OperatorImport in_float64(std::function<Value(Value)> formula) {
  return of_one(
      [formula = std::move(formula)](Value x) { return formula(x.cast(DType::kF64)).cast(x.type()); });
}

// Of the operand's own type: the result is a boolean.
OperatorImport question(std::function<Value(Value)> formula) {
  return [formula = std::move(formula)](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const Extents sizes = import.result().sizes;
    const Value value(import.exprs(), import.read(x.value(), dimensions(sizes.size()), sizes));
    return import.define(import.results()[0], formula(value).id(), short_name(import.call().op));
  };
}

// By as many bits as the type has, or by a negative number of them, nothing is left but the sign.
Value shifted_left(Value a, Value b) {
  const auto bits = static_cast<double>(trace::element_bytes(a.type()) * 8);
  const Value inside = negated(b < 0) & (b < bits);
  return inside.where(a.apply(Fn::kShiftLeft, inside.where(b, b.constant(0))), a.constant(0));
}
Value shifted_right(Value a, Value b) {
  const auto bits = static_cast<double>(trace::element_bytes(a.type()) * 8);
  const Value inside = negated(b < 0) & (b < bits);
  const Value by = inside.where(b, b.constant(bits - 1));
  const Value shifted = a.apply(Fn::kShiftRight, by);
  return a.type() == DType::kU8 ? inside.where(shifted, a.constant(0)) : shifted;
}

// 6.3.5 until the argument is 10 or more, then 6.3.18; 6.3.7 below zero.
Value digamma(Value x) {
  constexpr int kSteps = 10;
  const Value reflected = x < 0;
  Value at = reflected.where(x.constant(1) - x, x), sum = x.constant(0);
  for (int step = 0; step < kSteps; ++step) {
    const Value small = at < kSteps;
    sum = small.where(sum - at.constant(1) / at, sum);
    at = small.where(at + 1.0, at);
  }
  const Value inverse = at.constant(1) / (at * at);
  Value series = x.constant(0);
  for (const double term : {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    series = series * inverse + term;
  const Value found = sum + at.apply(Fn::kLog) - at.constant(0.5) / at - series * inverse;
  const Value part = x - x.apply(Fn::kTrunc);
  const Value turned = found - x.constant(std::numbers::pi) / (part * std::numbers::pi).apply(Fn::kTan);
  const Value pole = equal(part, 0) & reflected;
  const Value minus = -(x.constant(kInfinity).apply(Fn::kMul, x.constant(1) / x));  // of zero, by its sign
  return equal(x, 0).where(minus, pole.where(x.constant(std::nan("")), reflected.where(turned, found)));
}

// I_order(x) exp(-|x|): beyond what float64 holds of I by 9.7.1.
Value scaled_bessel(Value x, int order) {
  constexpr double kLargest = 600;
  const Value size = x.apply(Fn::kAbs), near = minimum(size, kLargest), far = maximum(size, kLargest);
  Value series = x.constant(1), term = x.constant(1);
  const double mu = 4.0 * order * order;
  for (int k = 1; k <= 6; ++k) {
    term = term * ((2.0 * k - 1) * (2.0 * k - 1) - mu) / (far * (8.0 * k));
    series = series + term;
  }
  const Value large = series / (far * (2 * std::numbers::pi)).apply(Fn::kSqrt);
  const Value small = near.apply(order == 0 ? Fn::kBesselI0 : Fn::kBesselI1) * (-near).apply(Fn::kExp);
  const Value found = (size < kLargest).where(small, is_nan(x).where(x, large));
  return order == 1 ? (x < 0).where(-found, found) : found;
}

// log((1 + erf(x / sqrt 2)) / 2), below -1 by the scaled complement.
Value log_ndtr(Value x) {
  const Value scaled = x * (1 / std::numbers::sqrt2);
  const Value low = ((-scaled).apply(Fn::kErfcx) * 0.5).apply(Fn::kLog) - scaled * scaled;
  const Value high = (scaled.apply(Fn::kErfc) * -0.5).apply(Fn::kLog1p);
  return (x < -1).where(low, high);
}

Value logaddexp2(Value a, Value b) {
  const Value distance = (a - b).apply(Fn::kAbs);
  const Value more = (-distance).apply(Fn::kExp2).apply(Fn::kLog1p) * (1 / std::numbers::ln2);
  return equal(a, b).where(a + 1.0, maximum(a, b) + more);
}

// -x log(x), 0 at 0.
Value entropy(Value x) {
  const Value inside = (x > 0).where(-(x * x.apply(Fn::kLog)), x.constant(-kInfinity));
  return is_nan(x).where(x, equal(x, 0).where(x.constant(0), inside));
}

Value xlog1py(Value a, Value b) {
  return (equal(a, 0) & negated(is_nan(b))).where(a.constant(0), a * b.apply(Fn::kLog1p));
}

// To `decimals` places, half to even.
Status round_operator(Importer& import) {
  const Value x = import.operand(0);
  const auto decimals = static_cast<int>(import.integer(import.arg(1, "decimals"), 0));
  if (!trace::is_floating(x.type()) && decimals != 0) return import.cannot("it rounds integers to tens");
  if (!trace::is_floating(x.type())) return import.define(import.results()[0], x.id(), "round");
  const double power = std::pow(10.0, std::abs(decimals));
  const Value rounded = decimals > 0   ? (x * power).apply(Fn::kRound) / power
                        : decimals < 0 ? (x / power).apply(Fn::kRound) * power
                                       : x.apply(Fn::kRound);
  return import.define(import.results()[0], rounded.id(), "round");
}

Status next_after(Importer& import) {
  const DType stored = import.result().dtype;
  if (stored != DType::kF32 && stored != DType::kF64)
    return import.cannot("there is no such function of its type");
  return of_two([](Value a, Value b) { return a.apply(Fn::kNextAfter, b); })(import);
}

// x = mantissa * 2^exponent, the mantissa from 0.5 to 1. Zero, infinities and NaN stay, with the exponent 0.
Status frexp_of(Importer& import) {
  const auto id = import.tensor(import.arg(0, "self"));
  if (!id) return import.cannot("expected a tensor");
  const Extents sizes = import.value(*id).sizes;
  const Value x(import.exprs(), import.operand(*id, sizes, compute_type(import.value(*id).dtype)));
  const Value plain = negated(equal(x, 0)) & (x.apply(Fn::kAbs) < kInfinity);
  const Value exponent = plain.where(x.apply(Fn::kLogb) + 1.0, x.constant(0)).cast(DType::kI32);
  NEREID_TRY_STATUS(import.define(import.results().at(0), x.apply(Fn::kLdexp, -exponent).id(), "mantissa"));
  return import.define(import.results().at(1), exponent.id(), "exponent");
}

}  // namespace

void add_special_functions(OperatorTable& table) {
  const auto add = [&](std::initializer_list<const char*> names, const OperatorImport& importer) {
    for (const char* name : names) table[std::string("aten::") + name] = importer;
  };
  add({"__lshift__", "bitwise_left_shift"}, of_two(shifted_left));
  add({"__rshift__", "bitwise_right_shift"}, of_two(shifted_right));
  for (const auto& [name, fn] : {std::pair{"acosh", Fn::kAcosh},
                                 {"atanh", Fn::kAtanh},
                                 {"lgamma", Fn::kLgamma},
                                 {"erfinv", Fn::kErfinv},
                                 {"special_erfcx", Fn::kErfcx}})
    add({name}, of_one([fn = fn](Value x) { return x.apply(fn); }));
  add({"i0"}, of_one([](Value x) { return x.apply(Fn::kBesselI0); }));
  add({"special_i1"}, of_one([](Value x) { return x.apply(Fn::kBesselI1); }));
  add({"special_i0e"}, in_float64([](Value x) { return scaled_bessel(x, 0); }));
  add({"special_i1e"}, in_float64([](Value x) { return scaled_bessel(x, 1); }));
  add({"digamma"}, in_float64(digamma));
  add({"special_log_ndtr"}, of_one(log_ndtr));
  add({"special_entr"}, of_one(entropy));
  add({"special_xlog1py"}, of_two(xlog1py));
  add({"logaddexp2"}, of_two(logaddexp2));
  add({"ldexp"}, of_two([](Value a, Value b) { return a * b.apply(Fn::kExp2); }));
  add({"nextafter"}, next_after);
  add({"frexp"}, frexp_of);
  add({"round"}, round_operator);
  add({"isposinf"}, question([](Value x) { return equal(x, kInfinity); }));
  add({"isneginf"}, question([](Value x) { return equal(x, -kInfinity); }));
  add({"signbit"}, question([](Value x) {
        return trace::is_floating(x.type()) ? (x < 0) | (equal(x, 0) & ((x.constant(1) / x) < 0)) : x < 0;
      }));
}

}  // namespace nereid::compiler
