#include "nereid/verify/analysis/launch_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nereid::verify {

std::string launch_text(const trace::Trace& trace, const trace::Alternative& one) {
  std::string text =
      fmt::format("{} {}", trace.kernels[static_cast<size_t>(one.kernel)].hash, fmt::join(one.grid, "x"));
  for (const auto& arg : one.args) text += launch_argument_text(arg);
  for (const auto& call : one.before) {
    text += " " + call.op;
    for (const auto& arg : call.args) text += fmt::format(" {}", fmt::join(trace::tensors_in(arg), ","));
  }
  return text + ";";
}

std::string launch_argument_text(const trace::LaunchArg& arg) {
  if (const auto* p = std::get_if<trace::PointerArg>(&arg))
    return fmt::format(" p{}+{}", p->value, p->offset);
  if (const auto* i = std::get_if<trace::IntArg>(&arg)) return fmt::format(" i{}", i->value);
  if (const auto* x = std::get_if<trace::FloatArg>(&arg)) return fmt::format(" x{:.17g}", x->value);
  const auto& d = std::get<trace::DescriptorArg>(arg);
  return fmt::format(" d{}:{}:{}:{}", d.value, fmt::join(d.shape, ","), fmt::join(d.strides, ","),
                     fmt::join(d.block, ","));
}

}  // namespace nereid::verify
