#include <set>

#include "nereid/verify/stages/trials.h"

namespace nereid::verify {
namespace {

// Bytes of the storages of these values, each counted once, where that is their role.
double bytes_of(const trace::Trace& trace, const std::vector<trace::ValueId>& values, trace::Role role) {
  double bytes = 0;
  std::set<trace::StorageId> seen;
  for (const auto id : values) {
    const trace::Value& value = trace.values.at(static_cast<size_t>(id));
    if (trace.storages.at(static_cast<size_t>(value.storage)).role == role &&
        seen.insert(value.storage).second)
      bytes += static_cast<double>(trace::element_count(value) * trace::element_bytes(value.dtype));
  }
  return bytes;
}

// What the candidate cannot do without: writing its outputs, and reading as much of its inputs as they depend
// on.
replay::LeastWork min_work(const TraceAnalysis& facts) {
  const trace::Trace& trace = *facts.trace;
  const trace::Phase& forward = trace.phases.at(static_cast<size_t>(facts.judged()));
  replay::LeastWork least;
  least.bytes_written = bytes_of(trace, trace::tensors_in(forward.output), trace::Role::kTemporary);
  least.input_bytes = bytes_of(trace, trace::tensors_in(forward.inputs), trace::Role::kInput);
  return least;
}

}  // namespace

Status Trials::time(std::shared_ptr<replay::KnownReference> known) {
  replay::TimeRequest request;
  request.reference = std::move(known);
  request.graphs_alone = request.compare_once = settings_.time_only;
  request.relative_width = settings_.timing_width;
  request.seed = settings_.seed ^ 0x71AE;
  request.seconds = settings_.timing_seconds;
  request.gentle = gentle_;
  request.slack = kSlackOnOtherDistributions;
  request.least = min_work(candidate_);
  if (blind_) request.kinds = {replay::InputDistribution::kOwn};
  while (true) {
    NEREID_TRY(const auto report, session_.time(request, settings_.tolerance,
                                                settings_.within_patience(40 * settings_.time_limit)));
    for (const auto& [what, seconds] : report.spent) verdict_.phases["time_" + what] += seconds;
    if (!report.impossible.empty()) {
      end(VerdictKind::kError,
          {.rule = "below-roofline",
           .sentence = fmt::format("A time that cannot be was measured: {}.", report.impossible)});
      return ok_status();
    }
    if (!report.spoiled) {
      take_times(report);
      return ok_status();
    }
    NEREID_TRY([[maybe_unused]] const bool agreed,
               take(*report.spoiled, settings_.trials, "while it was timed"));
    if (!good()) return ok_status();
    // An input distribution on which the reference has no correct digit says nothing: then without it.
    const auto kind = report.spoiled->trial.distribution;
    if (kind == replay::InputDistribution::kOwn || std::erase(request.kinds, kind) == 0)
      return our_error("timing failed for an unknown reason");
  }
}

void Trials::take_times(const replay::TimeReport& report) {
  Times times;
  times.reference_ms = report.counted.reference_ms;
  times.candidate_ms = report.counted.candidate_ms;
  times.speedup = report.counted.speedup;
  times.ci_low = report.counted.ci_low;
  times.ci_high = report.counted.ci_high;
  times.method = report.method;
  times.numbers = report.gpu;
  times.numbers["samples"] = report.counted.samples;
  times.numbers["kinds"] = static_cast<double>(report.kinds.size());
  if (report.candidate_launches_ms > 0) {
    times.numbers["reference_launches_ms"] = report.reference_launches_ms;
    times.numbers["candidate_launches_ms"] = report.candidate_launches_ms;
  }
  times.numbers["roofline_ms"] = report.counted.roofline_ms;
  times.numbers["input_sets"] = report.input_sets;
  if (report.alternatives_timed > 0) times.numbers["alternatives_timed"] = report.alternatives_timed;
  for (const auto& kind : report.kinds)
    times.numbers[fmt::format("candidate_ms_{}", replay::to_string(kind.kind))] = kind.candidate_ms;
  if (report.counted.kind != replay::InputDistribution::kOwn)
    times.notes.push_back(
        fmt::format("The candidate is slowest on input distribution '{}': these times count.",
                    replay::to_string(report.counted.kind)));
  if (!report.counted.converged)
    times.notes.push_back("The interval is wider than --timing-width: the time for sampling was up.");
  if (!report.not_captured.empty())
    times.notes.push_back(fmt::format("Not timed as CUDA graphs: {}.", report.not_captured));
  for (const auto& reason : report.throttled_by)
    times.notes.push_back("The GPU's clock was held down: " + reason + ".");
  for (size_t i = 0; i < candidate_.kernels.size(); ++i)
    if (candidate_.kernels[i].branches_on_float_data && !report.kinds.empty()) {
      const auto [fastest, slowest] =
          std::minmax_element(report.kinds.begin(), report.kinds.end(),
                              [](const auto& a, const auto& b) { return a.candidate_ms < b.candidate_ms; });
      times.notes.push_back(fmt::format(
          "Kernel {} branches on floating-point data: {:.4g} ms on '{}' inputs, {:.4g} ms on '{}'.",
          candidate_.trace->kernels[i].name, fastest->candidate_ms, replay::to_string(fastest->kind),
          slowest->candidate_ms, replay::to_string(slowest->kind)));
    }
  if (settings_.time_only)
    for (const auto& kind : report.kinds) {
      ++verdict_.coverage.trials;
      verdict_.coverage.inputs.emplace_back(replay::to_string(kind.kind));
    }
  verdict_.times = std::move(times);
}

}  // namespace nereid::verify
