#include "nereid/dataset/maker.h"

#include <fmt/format.h>

#include "nereid/base/json.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/dataset/pair_line.h"
#include "nereid/dataset/plan_text.h"
#include "nereid/dataset/weak_task.h"
#include "nereid/dataset/whole_task_subgraph.h"
#include "nereid/synth/traced.h"
#include "nereid/verify/analysis/normal_form.h"

namespace nereid::dataset {
namespace {

constexpr uint32_t kVariantStream = 2, kPlanTextStream = 3, kSubgraphStream = 4;
constexpr uint32_t kOneSubgraphIn = 4;  // brief tasks
constexpr const char* kTaskFile = "model.py";
constexpr const char* kAnswerFile = "model_new.py";
constexpr double kTraceSeconds = 60;

// Several sizes of one program are different programs here.
uint64_t number_of(const synth::Made& made) { return made.index * 64 + static_cast<uint64_t>(made.sizes); }

std::string key_of(const tracer::TraceRequest& request) {
  return fmt::format("{} {} {}", request.class_name, request.draw, request.source);
}

}  // namespace

struct PairMaker::Task {
  const std::string& source() const { return subgraph ? subgraph->source : made->code; }

  const trace::Trace& lowered_trace() const { return subgraph ? subgraph->trace : trace; }

  const synth::Made* made = nullptr;
  const Json* about = nullptr;
  std::optional<SubgraphTask> subgraph{};  // where it is a subgraph's
  TaskFacts facts{};
  trace::Trace trace{};
  std::optional<trace::Trace> ours{};  // without Python, where `trace` is the tracer's
  std::vector<Variant> variants{};
  Yield yield{};
};

PairMaker::PairMaker(verify::VerifierProcesses& processes, const Options& options)
    : processes_(processes),
      options_(options),
      backends_(processes.backends()),
      judge_(
          [&] {
            verify::VerifierBackends backends = backends_;
            backends.trace = [this](const tracer::TraceRequest& request, Deadline deadline) {
              return trace(request, deadline);
            };
            backends.isolation = {};  // what stands here is no fact of the pair
            return backends;
          }(),
          {.policy = options.policy, .trials = options.trials, .seed = options.seed, .threads = 1}) {}

// The judge asks for one file at a time; what was traced among several is handed out here.
Result<tracer::TraceAnswer> PairMaker::trace(const tracer::TraceRequest& request, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (auto found = traced_.extract(key_of(request)); !found.empty()) return std::move(found.mapped());
  }
  return backends_.trace(request, deadline);
}

// What is judged is traced by the tracer itself, and so is what cannot be traced without.
Status PairMaker::trace_references(std::vector<Task>& tasks) {
  std::vector<tracer::TraceRequest> requests;
  std::vector<Task*> asked;
  for (Task& task : tasks) {
    const synth::Made& made = *task.made;
    auto ours = synth::traced(made.program, made.style, made.layout, kTaskFile);
    if (ours && !is_judged(task)) {
      task.trace = *std::move(ours);
      continue;
    }
    task.yield.traced_by_python = !ours;
    task.ours = std::move(ours);
    asked.push_back(&task);
    requests.push_back({.source = made.code,
                        .path = kTaskFile,
                        .class_name = "Model",
                        .draw = options_.seed & 0x7fffffff,
                        .seconds = kTraceSeconds});
  }
  NEREID_TRY(auto answers, processes_.tracer().trace_several(requests, Deadline::never()));
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto* trace = std::get_if<trace::Trace>(&answers[i]);
    if (trace == nullptr) {
      asked[i]->yield.not_lowered = "the task could not be traced";
      continue;
    }
    asked[i]->trace = *trace;
    if (!is_judged(*asked[i])) continue;
    const std::lock_guard lock(mutex_);
    traced_.insert_or_assign(key_of(requests[i]), std::move(answers[i]));
  }
  return ok_status();
}

Status PairMaker::make_subgraph_task(Task& task) {
  synth::Rng rng(options_.seed, number_of(*task.made), kSubgraphStream);
  if (!options_.brief || rng.below(kOneSubgraphIn) != 0) return ok_status();
  auto subgraph = as_subgraph(task.trace);
  if (!subgraph.ok()) return ok_status();  // then as it is
  task.subgraph = *std::move(subgraph);
  if (!is_judged(task)) return ok_status();
  // Who judges goes by what the tracer makes of its text.
  const tracer::TraceRequest request{.source = task.subgraph->source,
                                     .path = kTaskFile,
                                     .class_name = "Model",
                                     .draw = options_.seed & 0x7fffffff,
                                     .seconds = kTraceSeconds};
  NEREID_TRY(auto answer, processes_.tracer().trace(request, Deadline::never()));
  const auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) return our_error("a subgraph could not be traced:\n{}", task.subgraph->source);
  task.trace = *trace;
  const std::lock_guard lock(mutex_);
  traced_.insert_or_assign(key_of(request), std::move(answer));
  return ok_status();
}

Result<std::vector<Variant>> PairMaker::variants(const Task& task, const trace::Trace& trace) const {
  synth::Rng rng(options_.seed, number_of(*task.made), kVariantStream);
  return (options_.brief ? variants_of_kinds : variants_of)(trace, task.source(), rng, options_.variants);
}

// Of a judged task: that the trace which others get in place of the tracer's would have given the same.
Status PairMaker::compare_with_own_trace(const Task& task) const {
  if (!task.ours) return ok_status();
  const std::string id = task.about->at("id").get<std::string>();
  trace::Trace ours = *task.ours;
  if (task.subgraph) {
    auto subgraph = as_subgraph(ours);
    if (!subgraph.ok() || subgraph->source != task.subgraph->source)
      return our_error("{}: its trace without Python gives another subgraph than the tracer's", id);
    ours = std::move(subgraph->trace);
  }
  const auto all = variants(task, ours);
  if (!all.ok())
    return our_error("{}: its trace without Python cannot be lowered: {}", id, all.error().message);
  for (size_t v = 0; v < std::max(all->size(), task.variants.size()); ++v)
    if (v >= all->size() || v >= task.variants.size() ||
        (*all)[v].module.text != task.variants[v].module.text)
      return our_error("{}: its trace without Python gives another variant {} than the tracer's", id, v);
  return ok_status();
}

Status PairMaker::trace_variants(std::vector<Task>& tasks) {
  std::vector<tracer::TraceRequest> requests;
  for (const Task& task : tasks)
    for (const Variant& variant : is_judged(task) ? task.variants : std::vector<Variant>())
      requests.push_back({.source = variant.normal_form,
                          .path = kAnswerFile,
                          .class_name = "ModelNew",
                          .draw = options_.seed & 0x7fffffff,
                          .reference = &task.trace,
                          .seconds = kTraceSeconds});
  if (requests.empty()) return ok_status();
  NEREID_TRY(auto answers, processes_.tracer().trace_several(requests, Deadline::never()));
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < answers.size(); ++i)
    traced_.insert_or_assign(key_of(requests[i]), std::move(answers[i]));
  return ok_status();
}

bool PairMaker::is_judged(const Task& task) const {
  return options_.verify_every > 0 && task.made->index % options_.verify_every == 0;
}

Status PairMaker::write(Task& task) {
  const synth::Made& made = *task.made;
  std::vector<std::string> lines;
  const auto merged = compiler::collapsed_dims(task.lowered_trace(),
                                               compiler::numbers_in(compiler::without_prose(task.source())));
  const std::string steps =
      options_.brief ? compiler::trace_summary(task.lowered_trace(), task.source()) : "";
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const Variant& variant = task.variants[v];
    verify::Verdict verdict;
    verdict.kind = verify::VerdictKind::kVerified;
    if (is_judged(task)) {
      const verify::Pair pair{.reference_name = kTaskFile,
                              .reference_source = task.source(),
                              .candidate_name = kAnswerFile,
                              .candidate_text = variant.normal_form,
                              .form = verify::Pair::Form::kSource};
      verdict = judge_.judge(pair);
      verdict.policy = verify::to_string(options_.policy);
    }
    const std::string id = fmt::format("{}-v{}", task.about->at("id").get<std::string>(), v);
    ++task.yield.verdicts[is_judged(task) ? std::string(verify::to_string(verdict.kind)) : "not judged"];
    if (!verdict.coverage.degenerate.empty()) {
      task.yield.degenerate = verdict.coverage.degenerate;
      return ok_status();
    }
    if (verdict.kind != verify::VerdictKind::kVerified) {
      if (task.yield.first_refused.empty())
        task.yield.first_refused = fmt::format("{}: {}", id, verify::headline(verdict));
      continue;
    }
    synth::Rng rng(options_.seed, number_of(made) * 64 + v, kPlanTextStream);
    std::vector<std::pair<std::string, std::string>> said;
    for (int w = 0; w < (options_.brief ? 1 : options_.wordings); ++w) {
      PlanText plan_text =
          options_.brief ? write_brief_plan(steps, variant) : write_plan_text(task.facts, variant, w, rng);
      if (options_.brief) plan_text.plan = compiler::with_collapsed_dims(plan_text.plan, merged);
      if (verify::normal_form(plan_text.code) != variant.normal_form)
        return our_error("{}: wording {} is another program", id, w);
      std::pair<std::string, std::string> both = {plan_text.plan, plan_text.code};
      if (std::ranges::find(said, both) != said.end()) continue;
      said.push_back(std::move(both));
      Json line =
          pair_line(*task.about, task.source(), variant, plan_text, is_judged(task) ? &verdict : nullptr);
      line["id"] = fmt::format("{}-w{}", id, w);
      lines.push_back(line.dump());
    }
  }
  task.yield.lines = std::move(lines);
  return ok_status();
}

Result<std::vector<Yield>> PairMaker::make(const std::vector<synth::Made>& programs,
                                           const std::vector<Json>& about) {
  std::vector<Task> tasks(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) tasks[i].made = &programs[i], tasks[i].about = &about[i];
  NEREID_TRY_STATUS(trace_references(tasks));
  for (Task& task : tasks) {
    if (!task.yield.not_lowered.empty()) continue;
    std::vector<std::string> operators;
    for (const auto& step : task.made->program.steps) operators.emplace_back(step.applied.op->name);
    task.facts = facts_of(task.trace, std::move(operators));
    NEREID_TRY_STATUS(make_subgraph_task(task));
    if (is_judged(task)) {
      NEREID_TRY(task.yield.degenerate, why_weak(backends_, task.trace, options_.seed));
      if (!task.yield.degenerate.empty()) continue;
    }
    auto variants = this->variants(task, task.lowered_trace());
    if (variants.ok()) {
      task.variants = *std::move(variants);
      NEREID_TRY_STATUS(compare_with_own_trace(task));
    } else {
      task.yield.not_lowered = variants.error().message;
    }
  }
  NEREID_TRY_STATUS(trace_variants(tasks));
  std::vector<Yield> yields;
  for (Task& task : tasks) {
    NEREID_TRY_STATUS(write(task));
    yields.push_back(std::move(task.yield));
  }
  return yields;
}

}  // namespace nereid::dataset
