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

std::string identity_text(Reduction reduction, DType type) {
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
  if (reduction == Reduction::kProd && trace::is_floating(type)) {
    for (const char* helper : {"running_products", "product_of"}) use(helpers, helper);
    return fmt::format("running_products({}, {})", block, axis);
  }
  const std::string name = combine_name(reduction, trace::is_floating(type));
  use(helpers, name);
  return fmt::format("tl.associative_scan({}, {}, {})", block, axis, name);
}

}  // namespace nereid::compiler
