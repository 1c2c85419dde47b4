#include "nereid/replay/host/rounded_scalars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::DType;

constexpr std::string_view kByCuda[] = {"pow", "fmod", "remainder", "atan2", "hypot", "eq",
                                        "ne",  "lt",   "le",        "gt",    "ge"};
constexpr std::string_view kByCpu[] = {"add", "sub", "rsub"};
constexpr std::string_view kAlways[] = {
    "mul",         "div",        "addcmul",     "addcdiv",    "lerp",       "clamp",          "clamp_min",
    "clamp_max",   "where",      "masked_fill", "leaky_relu", "elu",        "celu",           "softplus",
    "hardshrink",  "softshrink", "threshold",   "hardtanh",   "huber_loss", "smooth_l1_loss", "xlogy",
    "floor_divide"};

// A trace leaves out arguments that are what the operator takes without them. Of all such scalars this one
// alone is no number of 16 bits.
constexpr std::string_view kLeakyRelu = "leaky_relu";
constexpr double kLeakySlope = 0.01;

std::string_view name_of(const trace::Call& call) {
  auto name = trace::split_name(call.op).name;
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

std::optional<RoundedScalars> kind_of(const trace::Call& call) {
  const auto name = name_of(call);
  const auto is_among = [&](const auto& names) { return std::ranges::find(names, name) != std::end(names); };
  if (is_among(kByCuda)) return RoundedScalars::kByCuda;
  if (is_among(kByCpu)) return RoundedScalars::kByCpu;
  if (is_among(kAlways)) return RoundedScalars::kAlways;
  return std::nullopt;
}

// To nearest, ties to even, with subnormal numbers; what is beyond the dtype's largest number stays.
double rounded(double number, DType type) {
  if (number == 0 || !std::isfinite(number)) return number;
  const bool half = type == DType::kF16;
  const int digits = half ? 11 : 8, smallest = half ? -24 : -133;
  const double ulp = std::ldexp(1, std::max(std::ilogb(number) - digits + 1, smallest));
  const double near = std::nearbyint(number / ulp) * ulp;
  return std::abs(near) > (half ? 65504.0 : 0x1.FEp127) ? number : near;
}

bool round_number(trace::Arg& arg, DType type) {
  const auto* whole = std::get_if<int64_t>(&arg.node);
  const auto* real = std::get_if<double>(&arg.node);
  if (!whole && !real) return false;
  const double number = whole ? static_cast<double>(*whole) : *real;
  const double near = rounded(number, type);
  if (near == number) return false;
  if (whole)
    arg.node = static_cast<int64_t>(near);
  else
    arg.node = near;
  return true;
}

// The narrowest dtype that the call computes in, where that has 16 bits.
std::optional<DType> dtype_of(const trace::Trace& trace, const trace::Call& call) {
  std::optional<DType> found;
  for (const auto& arg : call.args)
    for (const auto value : trace::tensors_in(arg)) {
      const auto& tensor = trace.values[static_cast<size_t>(value)];
      if (tensor.sizes.empty() && found) continue;  // like a scalar, it has no part in promotion
      if (tensor.dtype == DType::kBool) continue;
      if (tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) return std::nullopt;
      found = tensor.dtype;
    }
  return found;
}

}  // namespace

bool round_scalars(trace::Trace& trace, RoundedScalars kind) {
  bool any = false;
  for (auto& phase : trace.phases) {
    if (phase.kind != trace::PhaseKind::kForward) continue;
    for (auto& step : phase.steps) {
      auto* call = std::get_if<trace::Call>(&step);
      const auto of = call ? kind_of(*call) : std::nullopt;
      if (!of || *of > kind) continue;
      const auto type = dtype_of(trace, *call);
      if (!type) continue;
      if (name_of(*call) == kLeakyRelu && call->args.size() == 1 && call->kwargs.empty())
        call->args.push_back({kLeakySlope});
      bool rounds = false;
      for (auto& arg : call->args) rounds |= round_number(arg, *type);
      for (auto& [name, value] : call->kwargs) rounds |= round_number(value, *type);
      any |= rounds && *of == kind;
    }
  }
  return any;
}

}  // namespace nereid::replay
