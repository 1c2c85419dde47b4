#include "nereid/dataset/given_pairs.h"

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/dataset/pair_line.h"

namespace nereid::dataset {
namespace {

constexpr const char* kGivenFile = "model.py";
constexpr double kGivenTraceSeconds = 30;
constexpr size_t kMaxTaskText = size_t{16} << 20;

}  // namespace

Result<std::vector<GivenTask>> read_given_tasks(const std::vector<std::string>& files) {
  std::vector<GivenTask> tasks;
  for (const auto& file : files) {
    NEREID_TRY(const std::string text, read_file(file));
    int64_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const std::string where = fmt::format("{}:{}", file, ++number);
      if (line.empty()) continue;
      NEREID_TRY(Json json, parse_json(line, where));
      GivenTask task{.number = tasks.size()};
      const JsonField root(json, where);
      NEREID_TRY(const auto field, root.at(json.is_object() && json.contains("task") ? "task" : "code"));
      NEREID_TRY(task.source, field.text(kMaxTaskText));
      NEREID_TRY(std::string id, root.text_at("id"));
      json.erase("code");
      json["id"] = id.empty() ? fmt::format("task-{}", task.number) : std::move(id);
      task.about = std::move(json);
      tasks.push_back(std::move(task));
    }
  }
  if (tasks.empty()) return input_error("expected at least one task, got none in {}", fmt::join(files, ", "));
  return tasks;
}

GivenPairMaker::GivenPairMaker(verify::VerifierProcesses& processes, const Options& options)
    : processes_(processes),
      options_(options),
      backends_(processes.backends()),
      judge_(processes.backends(),
             {.policy = options.policy, .trials = options.trials, .seed = options.seed, .threads = 1}) {}

bool GivenPairMaker::is_judged(const GivenTask& task) const {
  return options_.verify_every > 0 && task.number % options_.verify_every == 0;
}

Result<std::vector<Yield>> GivenPairMaker::make(std::span<const GivenTask> tasks) {
  std::vector<tracer::TraceRequest> requests;
  for (const GivenTask& task : tasks)
    requests.push_back({.source = task.source,
                        .path = kGivenFile,
                        .class_name = "Model",
                        .draw = options_.seed & 0x7fffffff,
                        .seconds = kGivenTraceSeconds});
  std::vector<tracer::TraceAnswer> answers;
  if (options_.verify_every == 0) {
    NEREID_TRY(answers, processes_.tracer().trace_several(requests, Deadline::never()));
  } else {
    for (const auto& request : requests) {
      NEREID_TRY(auto answer, backends_.trace(request, Deadline::never()));
      answers.push_back(std::move(answer));
    }
  }
  std::vector<Yield> yields;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    NEREID_TRY(yields.emplace_back(), make_one(tasks[i], answers[i]));
  }
  return yields;
}

Result<Yield> GivenPairMaker::make_one(const GivenTask& task, const tracer::TraceAnswer& answer) {
  Yield yield;
  yield.traced_by_python = true;
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
    const std::string id = fmt::format("{}-v{}", task.about.at("id").get<std::string>(), v);
    std::optional<verify::Verdict> verdict;
    if (is_judged(task)) {
      verdict = judge_.judge({.reference_name = kGivenFile,
                              .reference_source = task.source,
                              .candidate_name = "model_new.py",
                              .candidate_text = variant.normal_form,
                              .form = verify::Pair::Form::kSource});
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      verdict->policy = verify::to_string(options_.policy);
      ++yield.verdicts[std::string(verify::to_string(verdict->kind))];
      if (!verdict->coverage.degenerate.empty()) {
        yield.degenerate = verdict->coverage.degenerate;
        yield.lines.clear();
        return yield;
      }
      if (verdict->kind != verify::VerdictKind::kVerified) {
        if (yield.first_refused.empty())
          yield.first_refused = fmt::format("{}: {}", id, verify::headline(*verdict));
        continue;
      }
    } else {
      ++yield.verdicts["not judged"];
    }
    PlanText said = write_brief_plan(steps, variant);
    said.plan = compiler::with_collapsed_dims(said.plan, merged);
    Json line = pair_line(task.about, task.source, variant, said, verdict ? &*verdict : nullptr);
    line["id"] = id;
    yield.lines.push_back(line.dump());
  }
  return yield;
}

}  // namespace nereid::dataset
