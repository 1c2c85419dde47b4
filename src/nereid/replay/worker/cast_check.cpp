#include "nereid/replay/worker/cast_check.h"

#include <cmath>
#include <string_view>

#include "nereid/replay/worker/types.h"
#include "nereid/trace/op_class.h"

namespace nereid::replay {
namespace {

bool copies_numbers(std::string_view op) {
  using enum trace::OpClass;
  const auto of = trace::listed_class(op);
  return of == kFill || of == kCast || of == kCopy || of == kConcatenation;
}

}  // namespace

bool cast_changes(const at::Tensor& from, trace::DType to) {
  const auto any = [](const at::Tensor& changed) { return changed.any().item().toBool(); };
  if (to == trace::DType::kBool) return any(from.ne(0).logical_and_(from.ne(1)));
  if (from.is_complex()) return true;
  if (c10::isIntegralType(from.scalar_type(), true))
    return any(from.to(c10::kLong).ne(from.to(scalar_type(to)).to(c10::kLong)));
  const bool is_unsigned = !c10::isSignedType(scalar_type(to));
  const double above =
      std::ldexp(1.0, static_cast<int>(8 * trace::element_bytes(to)) - (is_unsigned ? 0 : 1));
  // Of 8 bits PyTorch compares nothing.
  const auto wide = trace::element_bytes(dtype_of(from.scalar_type())) < 2 ? from.to(c10::kFloat) : from;
  auto changed = wide.ne(wide.trunc()).logical_and_(wide.lt(above));
  return any(changed.logical_and_(wide.gt(is_unsigned ? -1.0 : -above)));
}

CastCheck::CastCheck(const trace::Trace& trace) {
  const trace::Phase* judged = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) judged = &phase;
  for (size_t i = 0; judged && i < judged->steps.size(); ++i) {
    const auto* call = std::get_if<trace::Call>(&judged->steps[i]);
    const auto results = call ? trace::tensors_in(call->result) : std::vector<trace::ValueId>();
    if (results.size() != 1 || !copies_numbers(call->op)) continue;
    const auto to = trace.values[static_cast<size_t>(results[0])].dtype;
    if (!trace::is_integral(to)) continue;
    for (const auto& arg : call->args)
      for (const auto operand : trace::tensors_in(arg))
        if (const auto from = trace.values[static_cast<size_t>(operand)].dtype; from != to)
          casts_[{static_cast<int>(i), operand}] = to;
  }
}

void CastCheck::see(int step, trace::ValueId operand, const at::Tensor& tensor) {
  const auto cast = casts_.find({step, operand});
  if (cast != casts_.end() && !changed_.contains(step) && cast_changes(tensor, cast->second))
    changed_.insert(step);
}

std::vector<int> CastCheck::take() {
  std::vector<int> steps(changed_.begin(), changed_.end());
  changed_.clear();
  return steps;
}

}  // namespace nereid::replay
