#include "nereid/compiler/codegen/emit_reduction.h"

#include <algorithm>
#include <limits>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {
namespace {

void use(std::vector<std::string>& helpers, const std::string& name) {
  if (std::ranges::find(helpers, name) == helpers.end()) helpers.push_back(name);
}

int64_t extreme(DType type, bool largest) {
  switch (type) {
    case DType::kBool:
      return largest ? 1 : 0;
    case DType::kU8:
      return largest ? 255 : 0;
    case DType::kI8:
      return largest ? 127 : -128;
    case DType::kI16:
      return largest ? 32767 : -32768;
    case DType::kI32:
      return largest ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
    default:
      return largest ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min() + 1;
  }
}

}  // namespace

std::string nothing_text(Reduction reduction, DType type) {
  const double nothing = identity(reduction);
  if (trace::is_floating(type) || std::abs(nothing) <= 1) return constant_text(nothing, type);
  return std::to_string(extreme(type, nothing > 0));
}

std::string combine_name(Reduction reduction, bool scan) {
  switch (reduction) {
    case Reduction::kProd:
      return scan ? "running_product_of" : "product_of";
    case Reduction::kMax:
      return "larger_of";
    case Reduction::kMin:
      return "smaller_of";
    case Reduction::kLogSumExp:
      return "log_sum_exp_of";
    case Reduction::kArgMax:
      return scan ? "last_larger_of" : "first_larger_of";
    case Reduction::kArgMin:
      return scan ? "last_smaller_of" : "first_smaller_of";
    default:
      return "sum_of";
  }
}

std::string combined(Reduction reduction, const std::string& a, const std::string& b, bool scan) {
  if (reduction == Reduction::kSum) return fmt::format("{} + {}", a, b);
  if (reduction == Reduction::kProd && !scan) return fmt::format("{} * {}", a, b);
  return fmt::format("{}({}, {})", combine_name(reduction, scan), a, b);
}

std::string reduced_text(Reduction reduction, const std::string& block, int axis,
                         std::vector<std::string>& helpers, bool scan) {
  if (reduction == Reduction::kSum) return fmt::format("tl.sum({}, axis={})", block, axis);
  const std::string name = combine_name(reduction, scan);
  use(helpers, name);
  return fmt::format("tl.reduce({}, {}, {})", block, axis, name);
}

std::string scanned_text(Reduction reduction, const std::string& block, int axis, DType type,
                         std::vector<std::string>& helpers) {
  if (reduction == Reduction::kSum) return fmt::format("tl.cumsum({}, axis={})", block, axis);
  const std::string name = combine_name(reduction, trace::is_floating(type));
  use(helpers, name);
  return fmt::format("tl.associative_scan({}, {}, {})", block, axis, name);
}

const std::vector<std::string>& function_helpers() {
  static const std::vector<std::string> names{"round_to_tf32", "rsqrt_of", "exp2_of", "log1p_of", "expm1_of"};
  return names;
}

std::string helper_text(const std::string& name) {
  const std::string two = fmt::format("@triton.jit\ndef {}(a, b):\n", name);
  if (name == "round_to_tf32")
    return "@triton.jit\ndef round_to_tf32(x):\n"
           "    # A tensor core would cut off the last 13 bits.\n"
           "    bits = (x.to(tl.int32, bitcast=True) + 4096) & -8192\n"
           "    return tl.where(x == x, bits.to(tl.float32, bitcast=True), x)\n";
  // Triton's own take what is below the smallest normal number for zero.
  const std::string one = fmt::format("@triton.jit\ndef {}(x):\n", name);
  if (name == "rsqrt_of")
    return one +
           "    small = tl.abs(x) < 1.2e-38  # such numbers count as zero there\n"
           "    return tl.rsqrt(tl.where(small, x * 16777216.0, x)) * tl.where(small, 4096.0, 1.0)\n";
  if (name == "exp2_of")
    return one +
           "    small = x < -125.0  # such results count as zero there\n"
           "    return tl.exp2(tl.where(small, x + 64.0, x)) * tl.where(small, 5.421010862427522e-20, 1.0)\n";
  if (name == "log1p_of" || name == "expm1_of")
    return one + fmt::format("    return tl.where(tl.abs(x) < 1e-8, x, libdevice.{}(x))\n",
                             name.substr(0, name.size() - 3));
  if (name == "product_of") return two + "    return a * b\n";
  if (name == "running_product_of")
    return two +
           "    # A part's product may overflow where that of all before it is zero.\n"
           "    p = a * b\n"
           "    inf = float(\"inf\")\n"
           "    grown = (tl.abs(p) == inf) & (tl.abs(a) < inf) & (tl.abs(b) < inf)\n"
           "    return tl.where(grown, tl.where(p > 0, 1e300, -1e300), p)\n";
  if (name == "larger_of") return two + "    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)\n";
  if (name == "smaller_of") return two + "    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)\n";
  if (name == "log_sum_exp_of")
    return two +
           "    most = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)\n"
           "    shift = tl.where(tl.abs(most) == float(\"inf\"), 0.0, most)\n"
           "    return tl.log(tl.exp(a - shift) + tl.exp(b - shift)) + shift\n";
  const char* beats = name.find("larger") != name.npos ? ">" : "<";
  const bool last = name.starts_with("last");
  // A NaN beats every number.
  return fmt::format(
      "@triton.jit\ndef {0}(a, i, b, j):\n"
      "    equal = (a == b) | ((a != a) & (b != b))\n"
      "    second = (b {1} a) | ((b != b) & (a == a)) | (equal & (j {2} i))\n"
      "    return tl.where(second, b, a), tl.where(second, j, i)\n",
      name, beats, last ? ">" : "<");
}

}  // namespace nereid::compiler
