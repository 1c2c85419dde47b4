#include "nereid/replay/report.h"

#include <fmt/format.h>

namespace nereid::replay {
namespace {

constexpr std::string_view kInputDistributions[] = {
    "own",      "zeros",      "ones",  "negative", "tiny",   "huge",    "ramp",   "one_hot",
    "outliers", "infinities", "nans",  "flipped",  "wide",   "small",   "large",  "shifted",
    "grid",     "far",        "close", "state",    "lowest", "highest", "redrawn"};

}  // namespace

std::string_view to_string(InputDistribution kind) { return kInputDistributions[static_cast<size_t>(kind)]; }

std::optional<InputDistribution> input_distribution_from_string(std::string_view name) {
  for (size_t i = 0; i < std::size(kInputDistributions); ++i)
    if (kInputDistributions[i] == name) return static_cast<InputDistribution>(i);
  return std::nullopt;
}

std::string_view to_string(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kRaised:
      return "raised";
    case Failure::Kind::kRefused:
      return "refused";
    case Failure::Kind::kCrashed:
      return "crashed";
    case Failure::Kind::kTimedOut:
      return "timed_out";
    case Failure::Kind::kUnsupported:
      return "unsupported";
  }
  return {};
}

uint64_t phase_seed(uint64_t seed, trace::PhaseKind kind, int call) {
  uint64_t z =
      seed * 64 + 8 * static_cast<uint64_t>(kind) + static_cast<uint64_t>(call) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) >> 1;
}

double kernelbench_tolerance(trace::DType type) {
  return trace::is_floating(type) && trace::element_bytes(type) <= 2 ? 1e-2 : 1e-4;
}

std::string describe(const Where& where) {
  static constexpr std::string_view kPhases[] = {"module", "make_inputs", "init", "forward"};
  std::string text(kPhases[static_cast<size_t>(where.phase)]);
  if (where.step >= 0) text += fmt::format(", step {}: {}", where.step, where.op);
  if (!where.place.file.empty()) text += fmt::format(" ({}:{})", where.place.file, where.place.line);
  return text;
}

Where where_is(const trace::Trace& trace, const trace::Phase& phase, int step) {
  Where where{phase.kind, phase.call, step, {}, {}};
  if (step < 0 || step >= static_cast<int>(phase.steps.size())) return where;
  if (const auto* call = std::get_if<trace::Call>(&phase.steps[step])) {
    where.op = call->op;
    where.place = call->place;
  } else {
    const auto& launch = std::get<trace::Launch>(phase.steps[step]);
    where.op = trace.kernels[launch.alternatives[0].kernel].name;
    where.place = launch.place;
  }
  return where;
}

}  // namespace nereid::replay
