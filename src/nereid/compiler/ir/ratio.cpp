// Constants that sizes make, and how they are written.
#include <fmt/format.h>

#include <cmath>

#include "nereid/compiler/ir/expr.h"

namespace nereid::compiler {

double Ratio::value() const {
  const auto divisor = static_cast<double>(under);
  return static_cast<double>(over) / (root ? std::sqrt(divisor) : divisor);
}

std::string Ratio::text() const {
  return fmt::format("({} / {}{})", hole(over, Size::Place::kFactor), hole(under, Size::Place::kFactor),
                     root ? " ** 0.5" : "");
}

// Halves and quarters read better as digits, and where Python's power is not the root of sqrt() it would be
// another number. n / n is 1 for every n.
ExprId Exprs::constant(const Ratio& ratio, DType type) {
  const double value = ratio.value();
  const int64_t whole = ratio.under;
  const bool power_of_two = whole > 0 && (whole & (whole - 1)) == 0;
  const bool literal = ratio.over.is_literal() && ratio.under.is_literal();
  const bool of_batch = ratio.text().find(kBatchName) != std::string::npos;  // known when the kernel runs
  const bool known = trace::is_floating(type) && value != 1 && !(literal && power_of_two) &&
                     !(of_batch && (ratio.root || type != DType::kF32));
  const auto divisor = static_cast<double>(ratio.under);
  if (!known || (ratio.root && std::pow(divisor, 0.5) != std::sqrt(divisor))) return constant(value, type);
  Expr expr{.kind = Expr::Kind::kConstant, .type = type};
  expr.number = value;
  expr.ratio = std::make_shared<const Ratio>(ratio);
  return intern(std::move(expr));
}

}  // namespace nereid::compiler
