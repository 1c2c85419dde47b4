#include "nereid/render/apart/flags_apart.h"

#include <algorithm>
#include <string>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;
using trace::DType;

constexpr double kLarge = 1e38;  // times itself times any number of float32: more than 1, or 0

// 1 where x, which is not negative, is 0; else 0.
Arg is_zero(SimplerSteps& steps, const Arg& x) {
  const Arg large = steps.scaled(steps.scaled(x, kLarge), kLarge);
  const Arg flag = steps.binary("minimum", large, steps.to().one(1));
  return steps.shifted(steps.scaled(flag, -1), 1);
}

// Argument `at` in float32, of these sizes; nothing where it is no such tensor or number.
std::optional<Arg> in_float(SimplerSteps& steps, size_t at, const Dims& sizes) {
  const Arg* x = steps.tensor(at);
  if (x != nullptr) {
    const DType type = steps.type(*x);
    if (type != DType::kF32 && type != DType::kBool) return std::nullopt;
    return steps.spread(steps.cast(*x, DType::kF32), sizes);
  }
  const auto number = Canonicalizer::number(steps.call().args, at);
  if (!number.there) return std::nullopt;
  return steps.to().filled(number.is, sizes);
}

bool result_is(SimplerSteps& steps, DType type) {
  const auto results = trace::tensors_in(steps.call().result);
  return results.size() == 1 && steps.to().value(results[0]).dtype == type &&
         !steps.to().value(results[0]).sizes.empty();
}

// Two infinities have no difference.
Arg finite(SimplerSteps& steps, const Arg& x) {
  return steps.binary("maximum", steps.binary("minimum", x, steps.to().one(kLargestNumber)),
                      steps.to().one(-kLargestNumber));
}

// "gt" of "aten::gt.Scalar".
std::string name_of(const trace::Call& call) { return call.op.substr(6, call.op.find('.') - 6); }

}  // namespace

bool comparison_apart(SimplerSteps& steps) {
  if (!result_is(steps, DType::kBool) || steps.tensor(0) == nullptr ||
      steps.type(*steps.tensor(0)) != DType::kF32)
    return false;
  const Dims sizes = steps.sizes(steps.call().result);
  auto x = in_float(steps, 0, sizes), y = in_float(steps, 1, sizes);
  if (!x || !y) return false;
  if (steps.tensor(1) != nullptr) x = finite(steps, *x), y = finite(steps, *y);
  const std::string name = name_of(steps.call());
  const auto above = [&](const Arg& a, const Arg& b) {
    return steps.unary("relu", steps.binary("sub", a, b));
  };
  Arg flag;
  if (name == "gt" || name == "lt")
    flag = name == "gt" ? above(*x, *y) : above(*y, *x);
  else if (name == "ge" || name == "le")
    flag = is_zero(steps, name == "ge" ? above(*y, *x) : above(*x, *y));
  else if (name == "ne" || name == "eq")
    flag = steps.unary("abs", steps.binary("sub", *x, *y));
  else
    return false;
  steps.cast(name == "eq" ? is_zero(steps, flag) : flag, DType::kBool, &steps.call().result);
  return true;
}

bool sign_apart(SimplerSteps& steps) {
  if (steps.tensor(0) == nullptr || !result_is(steps, DType::kF32)) return false;
  const Arg large = steps.scaled(steps.scaled(*steps.tensor(0), kLarge), kLarge);
  steps.binary("minimum", steps.binary("maximum", large, steps.to().one(-1)), steps.to().one(1),
               &steps.call().result);
  return true;
}

bool logic_apart(SimplerSteps& steps) {
  if (!result_is(steps, DType::kBool) || steps.tensor(0) == nullptr ||
      steps.type(*steps.tensor(0)) != DType::kBool)
    return false;
  const std::string name = name_of(steps.call());
  const Dims sizes = steps.sizes(steps.call().result);
  const auto x = in_float(steps, 0, sizes);
  if (name == "logical_not" || name == "bitwise_not") {
    steps.cast(steps.shifted(steps.scaled(*x, -1), 1), DType::kBool, &steps.call().result);
    return true;
  }
  if (steps.tensor(1) == nullptr || steps.type(*steps.tensor(1)) != DType::kBool) return false;
  const auto y = in_float(steps, 1, sizes);
  const bool both = name == "logical_and" || name == "bitwise_and";
  if (!both && name != "logical_or" && name != "bitwise_or") return false;
  steps.cast(steps.binary(both ? "mul" : "maximum", *x, *y), DType::kBool, &steps.call().result);
  return true;
}

bool count_apart(SimplerSteps& steps) {
  const Arg* x = steps.tensor(0);
  const std::string name = name_of(steps.call());
  if (x == nullptr || steps.type(*x) != DType::kBool || !result_is(steps, DType::kI64) ||
      (name != "count_nonzero" && name != "sum"))
    return false;
  const auto dim = steps.dimension(1);
  if (!dim || steps.call().args.size() != 2) return false;
  const Arg sum = steps.reduced("sum.dim_IntList", steps.cast(*x, DType::kF32), static_cast<int64_t>(*dim));
  steps.cast(sum, DType::kI64, &steps.call().result);
  return true;
}

bool arithmetic_apart(SimplerSteps& steps) {
  static const std::string kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
  const std::string name = name_of(steps.call());
  if (std::ranges::find(kNames, name) == std::end(kNames) || !result_is(steps, DType::kF32) ||
      steps.call().args.size() != 2 || !steps.call().kwargs.empty())
    return false;
  const Dims sizes = steps.sizes(steps.call().result);
  bool other = false;
  Arg operands[2];
  for (size_t at : {0, 1}) {
    const Arg* x = steps.tensor(at);
    if (x == nullptr) return false;
    other |= steps.type(*x) != DType::kF32 || steps.sizes(*x) != sizes;
  }
  if (!other) return false;
  for (size_t at : {0, 1})
    operands[at] = steps.flat(steps.spread(steps.cast(*steps.tensor(at), DType::kF32), sizes));
  const Arg result = steps.room(steps.call().result, steps.sizes(operands[0]));
  steps.viewed(steps.binary(name, operands[0], operands[1], &result), sizes, &steps.call().result);
  return true;
}

}  // namespace nereid::render
