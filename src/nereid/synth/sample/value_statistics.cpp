#include "nereid/synth/sample/value_statistics.h"

#include <algorithm>
#include <iterator>

#include "nereid/base/check.h"

namespace nereid::synth {
namespace {

using Function = double (*)(double);
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Unary {
  std::string_view name;
  Function function;
  // Inputs from which on the result is at its lowest or highest (within a hundredth of its range); for
  // functions with a turning point the share of elements near it instead.
  double low = -1e30, high = 1e30;
  bool rising = true;
  double turning_low = 0, turning_high = 0;
};
constexpr Unary kUnaries[] = {
    {"relu", [](double x) { return std::max(x, 0.0); }, 0},
    {"leaky_relu", [](double x) { return x > 0 ? x : 0.01 * x; }},
    {"sigmoid", sigmoid, -4.6, 4.6},
    {"tanh", [](double x) { return std::tanh(x); }, -2.6, 2.6},
    {"silu", [](double x) { return x * sigmoid(x); }, -1e30, 1e30, false, 0.03},
    {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678)); }, -5, 1e30, false, 0.03},
    {"selu", [](double x) { return 1.0507 * (x > 0 ? x : 1.67326 * std::expm1(x)); }, -7},
    {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }, -7},
    {"hardsigmoid", [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -3, 3},
    {"hardtanh", [](double x) { return std::clamp(x, -1.0, 1.0); }, -1, 1},
    {"softplus", softplus, -7},
    {"softsign", [](double x) { return x / (1 + std::abs(x)); }, -1e3, 1e3},
    {"logsigmoid", [](double x) { return -softplus(-x); }, -1e30, 7},
    {"clamp", [](double x) { return std::clamp(x, 0.0, 0.5); }, 0, 0.5},
    {"mish", [](double x) { return x * std::tanh(softplus(x)); }, -1e30, 1e30, false, 0.03},
    {"hardswish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -3, 1e30, false, 0.03},
    {"cos", [](double x) { return std::cos(x); }, -1e30, 1e30, false, 0.01, 0.03},
    {"sin", [](double x) { return std::sin(x); }, -1e30, 1e30, false, 0.02, 0.02},
    {"exp", [](double x) { return std::exp(std::min(x, 80.0)); }},
    {"exp2", [](double x) { return std::exp2(std::min(x, 110.0)); }},
    {"log", [](double x) { return std::log(std::max(x, 1e-30)); }},
    {"sqrt", [](double x) { return std::sqrt(std::max(x, 0.0)); }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(std::max(x, 1e-30)); }, -1e30, 1e30, false},
    {"abs", [](double x) { return std::abs(x); }, -1e30, 1e30, false, 1e-3},
    {"erf", [](double x) { return std::erf(x); }, -1.8, 1.8},
    {"pow", [](double x) { return x * x; }, -1e30, 1e30, false, 0.02},
    {"square", [](double x) { return x * x; }, -1e30, 1e30, false, 0.02},
    {"neg", [](double x) { return -x; }, -1e30, 1e30, false},
    {"reciprocal", [](double x) { return 1 / std::max(x, 1e-30); }, -1e30, 1e30, false},
    {"log1p", [](double x) { return std::log1p(std::max(x, 0.0)); }},
    {"clamp_min", [](double x) { return std::max(x, 0.1); }, 0.1},
    {"where_positive", [](double x) { return x > 0 ? x : 0.1 * x; }},
    {"clamp_max", [](double x) { return std::min(x, 1.0); }, -1e30, 0.5},
    {"positive_by_mask", [](double x) { return std::max(x, 0.0); }, 0},
    {"fill_negative", [](double x) { return std::max(x, 0.0); }, 0},
    {"swish_by_hand", [](double x) { return x * sigmoid(x); }, -1e30, 1e30, false, 0.03},
    {"squared_relu", [](double x) { return x > 0 ? x * x : 0.0; }, 0},
    {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }, 0, 6},
    {"gelu_tanh", [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678)); }, -5, 1e30, false, 0.03},
    {"prelu", [](double x) { return x > 0 ? x : 0.5 * x; }},
    {"prelu_channels", [](double x) { return x > 0 ? x : 0.5 * x; }},
    {"glu", [](double x) { return 0.5 * x; }},
    {"pow_positive", [](double x) { return std::sqrt(std::max(x, 0.0)); }},
    {"add_scalar", [](double x) { return x + 1; }},
    {"sub_scalar", [](double x) { return x - 1; }},
    {"mul_scalar", [](double x) { return 0.5 * x; }},
    {"div_scalar", [](double x) { return 0.5 * x; }},
    {"rsub", [](double x) { return 1 - x; }, -1e30, 1e30, false},
};

}  // namespace

double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

double ValueStatistics::share_below(double bound) const {
  return 0.5 * std::erfc(-(bound - mean) / std::max(sd, 1e-300) * 0.70710678);
}

ValueStatistics ValueStatistics::through(double (*f)(double)) const {
  static constexpr double kAt[] = {0, 1.154405394739968, 2.366759410734541, 3.750439717725742};
  static constexpr double kWeight[] = {0.457142857142857, 0.240123178605013, 0.030757123967586,
                                       0.000548268855972};
  const bool lognormal = nonnegative && mean > 0;
  const double spread = lognormal ? std::sqrt(std::log1p(sd * sd / (mean * mean))) : sd;
  const double middle = lognormal ? std::log(mean) - spread * spread / 2 : mean;
  double sum = 0, squares = 0;
  for (int i = -3; i <= 3; ++i) {
    const double at = middle + (i < 0 ? -spread : spread) * kAt[std::abs(i)];
    const double y = f(lognormal ? std::exp(std::min(at, 80.0)) : at);
    sum += kWeight[std::abs(i)] * y, squares += kWeight[std::abs(i)] * y * y;
  }
  ValueStatistics made;
  made.mean = sum, made.sd = std::sqrt(std::max(0.0, squares - sum * sum));
  return made;
}

ValueStatistics ValueStatistics::times(const ValueStatistics& other) const {
  ValueStatistics made;
  made.mean = mean * other.mean;
  const double squares = (sd * sd + mean * mean) * (other.sd * other.sd + other.mean * other.mean);
  made.sd = std::sqrt(std::max(0.0, squares - made.mean * made.mean));
  made.nonnegative = nonnegative && other.nonnegative;
  return made;
}

ValueStatistics ValueStatistics::mixed_with(const ValueStatistics& other) const {
  ValueStatistics made;
  made.mean = (mean + other.mean) / 2;
  made.sd = std::sqrt((sd * sd + other.sd * other.sd) / 2 + (mean - other.mean) * (mean - other.mean) / 4);
  made.nonnegative = nonnegative && other.nonnegative;
  return made;
}

ValueStatistics ValueStatistics::after(std::string_view name) const {
  const auto* row =
      std::find_if(std::begin(kUnaries), std::end(kUnaries), [&](const Unary& u) { return u.name == name; });
  NEREID_CHECK(row != std::end(kUnaries), "what {} does to a number", name);
  ValueStatistics made = through(row->function);
  made.nonnegative = row->function(-1) >= 0 || (nonnegative && row->function(1e-9) >= 0 && name != "cos");
  if (name == "cos" || name == "sin" || name == "log") made.nonnegative = false;
  made.at_lowest = std::max({share_below(row->low), row->turning_low, row->rising ? at_lowest : 0});
  made.at_highest = std::max({1 - share_below(row->high), row->turning_high, row->rising ? at_highest : 0});
  const bool identity =
      nonnegative &&
      (name == "relu" || name == "positive_by_mask" || name == "fill_negative" || name == "leaky_relu" ||
       name == "abs" || name == "elu" || name == "where_positive" || name.starts_with("prelu"));
  if (identity) return *this;
  if (name == "exp") made.fixed_sum = fixed_exp;
  if (name == "pow" || name == "square") made.fixed_sum = fixed_square;
  if (name == "add_scalar" || name == "sub_scalar" || name == "mul_scalar" || name == "div_scalar" ||
      name == "neg" || name == "rsub")
    made.fixed_sum = fixed_sum;  // of what sums to one number the same is true of what is shifted and scaled
  if (name == "mul_scalar" || name == "div_scalar" || name == "neg") made.fixed_square = fixed_square;
  if (name == "log") made.fixed_exp = fixed_sum;
  if (name == "abs") made.fixed_square = fixed_square;
  return made;
}

}  // namespace nereid::synth
