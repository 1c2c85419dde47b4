#include "nereid/compiler/codegen/helpers.h"

#include <fmt/format.h>

#include <map>

namespace nereid::compiler {
namespace {

// By name what follows "def name".
using Bodies = std::map<std::string, std::string>;

const Bodies& precision_helpers() {
  static const Bodies bodies = {
      {"is_nan", R"((x: tl.tensor) -> tl.tensor:
    """Whether x is NaN, which alone differs from itself."""
    return x != x  # noqa: PLR0124
)"},
      {"round_to_tf32", R"((x: tl.tensor) -> tl.tensor:
    """x rounded to TF32, whose last 13 bits a tensor core would cut off."""
    half: tl.constexpr = 1 << 12
    bits = (x.to(tl.int32, bitcast=True) + half) & -(2 * half)
    return tl.where(is_nan(x), x, bits.to(tl.float32, bitcast=True))
)"},
      // x * (1 + 2^-11 / 1.5) is x and two thirds to four thirds of half of TF32's last bit, so that what is
      // cut off is as often too much as too little. Rounding to nearest takes twice the instructions.
      {"tf32_part", R"((x: tl.tensor) -> tl.tensor:
    """A number of TF32 near x, whose last 13 bits are zero; infinities and NaN stay."""
    nearly_rounded = x * (1 + 2.0**-11 / 1.5)
    bits = nearly_rounded.to(tl.int32, bitcast=True) & -(1 << 13)
    return bits.to(tl.float32, bitcast=True)
)"},
      // A correction is infinite or NaN only where the product of the high parts is so, too: its terms are
      // at most 2^-10 of that product's, or have a factor that is infinite or NaN.
      {"dot_tf32x3", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """The product of two float32 blocks in three of TF32; an overflow or an infinity stays infinite."""
    a_high, b_high = tf32_part(a), tf32_part(b)
    correction = tl.dot(a - a_high, b_high, input_precision="tf32")
    correction = tl.dot(a_high, b - b_high, correction, input_precision="tf32")
    correction = tl.clamp(correction, -3e38, 3e38)  # finite: inf - inf is NaN
    return tl.dot(a_high, b_high, correction, input_precision="tf32")
)"},
      {"rsqrt_of", R"((x: tl.tensor) -> tl.tensor:
    """1 / sqrt(x), also of subnormal numbers, which tl.rsqrt takes for zero."""
    subnormal = tl.abs(x) < 2.0**-126
    return tl.rsqrt(tl.where(subnormal, x * 2.0**24, x)) * tl.where(subnormal, 2.0**12, 1.0)
)"},
      {"exp2_of", R"((x: tl.tensor) -> tl.tensor:
    """2 ** x, also where that is a subnormal number, for which tl.exp2 gives zero."""
    subnormal = x < -125.0
    return tl.exp2(tl.where(subnormal, x + 64.0, x)) * tl.where(subnormal, 2.0**-64, 1.0)
)"},
      {"log1p_of", R"((x: tl.tensor) -> tl.tensor:
    """log(1 + x), which is x itself where x is tiny."""
    return tl.where(tl.abs(x) < 1e-17, x, libdevice.log1p(x))
)"},
      {"expm1_of", R"((x: tl.tensor) -> tl.tensor:
    """exp(x) - 1, which is x itself where x is tiny."""
    return tl.where(tl.abs(x) < 1e-17, x, libdevice.expm1(x))
)"},
  };
  return bodies;
}

const Bodies& combine_helpers() {
  static const Bodies bodies = {
      {"product_of", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """The product of two numbers."""
    return a * b
)"},
      // A check in each product of the scan would take four times the instructions.
      {"running_products", R"((x: tl.tensor, axis: tl.constexpr) -> tl.tensor:
    """Products up to each place. NaN of finite factors is 0 times an overflow after it, which is 0."""
    products = tl.associative_scan(x, axis, product_of)
    factors = x.to(tl.float32)
    all_finite = tl.sum(factors - factors, axis, keep_dims=True) == 0
    return tl.where(is_nan(products) & all_finite, 0.0, products)
)"},
      {"running_product_of", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """The product of two numbers; an overflow stays finite, for a zero may come before it."""
    product = a * b
    inf = float("inf")
    overflows = (tl.abs(product) == inf) & (tl.abs(a) < inf) & (tl.abs(b) < inf)
    return tl.where(overflows, tl.where(product > 0, 1e300, -1e300), product)
)"},
      {"larger_of", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """The larger of two numbers, NaN if one is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
      {"smaller_of", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """The smaller of two numbers, NaN if one is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
      {"log_sum_exp_of", R"((a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """log(exp(a) + exp(b)), shifted by the larger of both so that neither overflows."""
    most = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    shift = tl.where(tl.abs(most) == float("inf"), 0.0, most)
    return tl.log(tl.exp(a - shift) + tl.exp(b - shift)) + shift
)"},
  };
  return bodies;
}

// "last_smaller_of" and its kin: the better of two numbers, with its place.
std::string place_body(const std::string& name) {
  const bool larger = name.find("larger") != name.npos, last = name.starts_with("last");
  return fmt::format(
      R"((a: tl.tensor, i: tl.tensor, b: tl.tensor, j: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The {0} of two numbers and its place, of equal ones the {1}; NaN beats every number."""
    a_is_nan, b_is_nan = is_nan(a), is_nan(b)
    equal = (a == b) | (a_is_nan & b_is_nan)
    second = (b {2} a) | (b_is_nan & ~a_is_nan) | (equal & (j {3} i))
    return tl.where(second, b, a), tl.where(second, j, i)
)",
      larger ? "larger" : "smaller", last ? "last" : "first", larger ? ">" : "<", last ? ">" : "<");
}

}  // namespace

const std::vector<std::string>& function_helpers() {
  static const std::vector<std::string> names{"is_nan",   "round_to_tf32", "tf32_part", "dot_tf32x3",
                                              "rsqrt_of", "exp2_of",       "log1p_of",  "expm1_of"};
  return names;
}

std::string helper_text(const std::string& name) {
  std::string text = "@triton.jit\ndef " + name;
  for (const Bodies* bodies : {&precision_helpers(), &combine_helpers()})
    if (const auto body = bodies->find(name); body != bodies->end()) return text + body->second;
  return text + place_body(name);
}

std::string dot_text(const std::string& left, const std::string& right, const std::string& total,
                     const std::string& precision) {
  if (precision == "tf32x3") {
    const std::string product = fmt::format("dot_tf32x3({}, {})", left, right);
    return total.empty() ? product : fmt::format("{} + {}", total, product);
  }
  return fmt::format("tl.dot({}, {}{}{})", left, right, total.empty() ? "" : ", " + total,
                     precision.empty() ? "" : fmt::format(", input_precision=\"{}\"", precision));
}

std::string add_dot(const std::string& total, const std::string& left, const std::string& right,
                    const std::string& precision) {
  const bool by_helper = precision == "tf32x3";
  return fmt::format("{} {} {}", total, by_helper ? "+=" : "=",
                     dot_text(left, right, by_helper ? "" : total, precision));
}

std::set<std::string> with_callees(std::set<std::string> helpers) {
  for (const std::string& name : std::set<std::string>(helpers))
    for (const std::string& callee : function_helpers())
      if (callee != name && helper_text(name).find(callee + "(") != std::string::npos) helpers.insert(callee);
  return helpers;
}

}  // namespace nereid::compiler
