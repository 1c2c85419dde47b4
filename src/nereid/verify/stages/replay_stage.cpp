#include "nereid/verify/stages/replay_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nereid/verify/stages/trials.h"

namespace nereid::verify {

Replayed ReplayStage::run(Verdict verdict, int draw, bool alone) {
  verdict_ = std::move(verdict);
  Status status = replay(draw, alone);
  return {std::move(verdict_), std::move(status)};
}

void ReplayStage::end(VerdictKind kind, Evidence evidence, bool input_to_blame) {
  verdict_.kind = kind;
  verdict_.input_to_blame = input_to_blame;
  verdict_.evidence.push_back(std::move(evidence));
}

Status ReplayStage::replay(int draw, bool alone) {
  replay::SessionOptions options{.device = settings_.device,
                                 .phase_seconds = settings_.time_limit,
                                 .threads = settings_.threads,
                                 .whole_memory = alone,
                                 .left_as_found = rules_.left_as_found};
  const Stopwatch compiling;
  NEREID_TRY(const bool compiled, compile(options.kernels));
  if (!compiled) return ok_status();
  spend("compile", compiling);
  const Stopwatch opening;
  auto session = backends_.replay(reference_.trace, candidate_.trace, options, settings_.within_patience());
  if (!session.ok() && session.error().blame == Blame::kInput) {
    end(VerdictKind::kError,
        {.rule = "too-big",
         .sentence = session.error().message + " (--shrink traces both files with smaller sizes.)"});
    return ok_status();
  }
  if (!session.ok()) return session.error();
  verdict_.coverage.device = settings_.device == replay::Device::kCuda ? "cuda" : "cpu";
  if (backends_.isolation) verdict_.isolation = backends_.isolation(settings_.device);
  verdict_.coverage.memory_bytes = (*session)->facts().peak_bytes;
  const double waited = (*session)->facts().seconds_waited;
  verdict_.phases["wait"] += waited;
  spend("open", opening, waited);
  note_parameters((*session)->facts());
  verdict_.kind = VerdictKind::kVerified;
  LimitedSession limited(**session, work_);
  Trials trials(limited, reference_.facts, candidate_.facts, rules_, settings_, verdict_);
  const Status done = run_trials(trials, draw);
  if (settings_.device == replay::Device::kCuda) verdict_.phases["gpu"] += (*session)->facts().gpu.held;
  if (!done.ok() && done.error().blame == Blame::kInput) {
    end(VerdictKind::kError, {.rule = "reference", .sentence = done.error().message}, true);
    return ok_status();
  }
  if (!done.ok()) return done.error();
  if (verdict_.kind == VerdictKind::kTimedOut && work_.exceeded) exceed_verdict_limit();
  return ok_status();
}

void ReplayStage::exceed_verdict_limit() {
  verdict_.evidence = {
      {.rule = "verdict-limit",
       .sentence =
           fmt::format("The candidate's replays took {:.3g} s of work together, a verdict may take {:g}.",
                       work_.seconds, work_.limit),
       .numbers = {{"seconds", work_.seconds}, {"limit", work_.limit}}}};
}

Status ReplayStage::run_trials(Trials& trials, int draw) {
  const Stopwatch trying;
  if (!settings_.time_only) NEREID_TRY_STATUS(trials.run(draw));
  spend("trials", trying);
  if (!settings_.time || draw > 0 || verdict_.kind != VerdictKind::kVerified) return ok_status();
  const Stopwatch timing;
  NEREID_TRY_STATUS(trials.time(known_reference_()));
  spend("time", timing);
  return ok_status();
}

// Machine code for both sides, where a GPU is to run them. A configuration that the compiler or the GPU
// refuses is passed over, as Triton's autotuner does; a launch without any other cannot be.
Result<bool> ReplayStage::compile(std::map<std::string, std::string>& kernels) {
  if (settings_.device != replay::Device::kCuda || !backends_.compile) return true;
  CompiledKernels own;
  for (const trace::Trace* trace :
       std::initializer_list<const trace::Trace*>{&reference_.trace, &candidate_.trace}) {
    NEREID_TRY(own, backends_.compile(*trace, settings_.within_patience(300)));
    kernels.insert(own.kernels.begin(), own.kernels.end());
  }
  for (const auto& phase : candidate_.trace.phases)
    for (const auto& step : phase.steps)
      if (const auto* launch = std::get_if<trace::Launch>(&step))
        if (const trace::Kernel* kernel = none_runs(*launch, kernels)) {
          end(VerdictKind::kCompileFailed,
              {.rule = "gpu-compiler",
               .sentence = fmt::format("Kernel {} has no machine code for this GPU: {}.", kernel->name,
                                       own.refused[kernel->hash].substr(0, 2000)),
               .kernel = kernel->name,
               .file = kernel->place.file,
               .line = kernel->place.line});
          return false;
        }
  return true;
}

const trace::Kernel* ReplayStage::none_runs(const trace::Launch& launch,
                                            const std::map<std::string, std::string>& kernels) const {
  const auto kernel = [&](const trace::Alternative& alternative) {
    return &candidate_.trace.kernels.at(static_cast<size_t>(alternative.kernel));
  };
  for (const auto& alternative : launch.alternatives)
    if (kernels.contains(kernel(alternative)->hash)) return nullptr;
  return kernel(launch.alternatives.front());
}

void ReplayStage::note_parameters(const replay::SessionFacts& facts) {
  auto& c = verdict_.coverage;
  c.perturbed.clear(), c.not_perturbed.clear();
  for (const auto& state : reference_.trace.state) {
    const bool lacking = std::ranges::find(facts.unpaired, state.name) != facts.unpaired.end();
    if (state.parameter) (lacking ? c.not_perturbed : c.perturbed).push_back(state.name);
  }
  if (!facts.unpaired.empty())
    verdict_.remarks.push_back(
        {.rule = "parameters",
         .sentence =
             fmt::format("The candidate has no {} of the reference's. Where PyTorch fills such with one "
                         "number, the reference was tried with others.",
                         fmt::join(facts.unpaired, ", "))});
  if (!facts.state_left.empty())
    verdict_.remarks.push_back(
        {.rule = "state",
         .sentence =
             fmt::format("The reference's forward updates {}, the candidate's leaves {} as before.",
                         fmt::join(facts.state_left, ", "), facts.state_left.size() == 1 ? "it" : "them")});
}

}  // namespace nereid::verify
