#include "nereid/dataset/given_pairs.h"

#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/dataset/pair_line.h"

namespace nereid::dataset {
namespace {

constexpr const char* kGivenFile = "model.py";
constexpr double kGivenTraceSeconds = 30;

}  // namespace

GivenPairMaker::GivenPairMaker(verify::VerifierProcesses& processes, const Options& options)
    : options_(options),
      backends_(processes.backends()),
      judge_(processes.backends(),
             {.policy = options.policy, .trials = options.trials, .seed = options.seed, .threads = 1}) {}

Result<Yield> GivenPairMaker::make(const GivenTask& task) {
  Yield yield;
  yield.traced_by_python = true;
  NEREID_TRY(const auto answer, backends_.trace({.source = task.source,
                                                 .path = kGivenFile,
                                                 .class_name = "Model",
                                                 .draw = options_.seed & 0x7fffffff,
                                                 .seconds = kGivenTraceSeconds},
                                                Deadline::never()));
  const auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) {
    yield.not_lowered = "the task could not be traced";
    return yield;
  }
  synth::Rng rng(options_.seed, task.number, 0);
  const auto variants = variants_of_kinds(*trace, task.source, rng, options_.variants);
  if (!variants.ok()) {
    yield.not_lowered = variants.error().message;
    return yield;
  }
  const auto merged =
      compiler::collapsed_dims(*trace, compiler::numbers_in(compiler::without_prose(task.source)));
  const std::string steps = compiler::trace_summary(*trace, task.source);
  for (size_t v = 0; v < variants->size(); ++v) {
    const Variant& variant = (*variants)[v];
    auto verdict = judge_.judge({.reference_name = kGivenFile,
                                 .reference_source = task.source,
                                 .candidate_name = "model_new.py",
                                 .candidate_text = variant.normal_form,
                                 .form = verify::Pair::Form::kSource});
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    verdict.policy = verify::to_string(options_.policy);
    ++yield.verdicts[std::string(verify::to_string(verdict.kind))];
    const std::string id = fmt::format("{}-v{}", task.about.at("id").get<std::string>(), v);
    if (!verdict.coverage.degenerate.empty()) {
      yield.degenerate = verdict.coverage.degenerate;
      yield.lines.clear();
      return yield;
    }
    if (verdict.kind != verify::VerdictKind::kVerified) {
      if (yield.first_refused.empty())
        yield.first_refused = fmt::format("{}: {}", id, verify::headline(verdict));
      continue;
    }
    PlanText said = write_brief_plan(steps, variant);
    said.plan = compiler::with_collapsed_dims(said.plan, merged);
    Json line = pair_line(task.about, task.source, variant, said, &verdict);
    line["id"] = id;
    yield.lines.push_back(line.dump());
  }
  return yield;
}

}  // namespace nereid::dataset
