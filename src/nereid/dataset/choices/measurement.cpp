#include "nereid/dataset/choices/measurement.h"

#include <algorithm>
#include <thread>

#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/dataset/pair_line.h"
#include "nereid/search/cost_model.h"
#include "nereid/verify/analysis/normal_form.h"
#include "nereid/verify/batch/answer.h"

namespace nereid::dataset {
namespace {

constexpr const char* kMeasuredFile = "model.py";
constexpr double kMeasuredTraceSeconds = 30;
constexpr size_t kMaxOpen = 4;      // programs under way for each thread
constexpr size_t kMaxWaiting = 96;  // for the clock: more verdicts are no use before these have their times
constexpr size_t kMaxRefusedShown = 5;

Json features_of(const compiler::CostFeatures& f) {
  return {{"read", f.read},         {"written", f.written}, {"asked", f.asked},
          {"products", f.products}, {"rate", f.rate},       {"other_flops", f.other_flops},
          {"programs", f.programs}, {"width", f.width},     {"elements", f.elements},
          {"launches", f.launches}, {"fixed", f.fixed}};
}

std::string to_string(Kind kind) {
  constexpr std::array kNames = {"one by one", "simply fused", "fused", "compiled"};
  return kNames[static_cast<size_t>(kind)];
}

// What an answer thinks before its code.
std::string plan_of(const std::string& answer) {
  const size_t end = answer.find("</think>");
  if (end == answer.npos) return "";
  std::string plan = answer.substr(0, end);
  if (const size_t begin = plan.find("<think>"); begin != plan.npos) plan.erase(0, begin + 7);
  while (plan.starts_with('\n')) plan.erase(0, 1);
  return plan;
}

}  // namespace

struct Measurement::MeasuredChoice {
  Variant variant{};
  PlanText said{};
  std::optional<verify::Verdict> verdict{};
  std::optional<verify::Times> times{};
  std::optional<double> again{};  // seconds of a second time, of the fastest and of the first
  std::string not_timed{};        // why there is no time of what is Verified
  bool answer = false;            // not the compiler's
  double seconds = 0;             // modelled
};

struct Measurement::Program {
  const GivenTask* task = nullptr;
  std::vector<MeasuredChoice> choices{};
  bool again = false;                            // all has been timed once
  size_t left = 0;                               // choices that are not settled
  double roofline = 0;                           // seconds
  std::string dropped{};                         // why nothing of it is measured
  std::vector<std::optional<size_t>> answers{};  // the choice that each is; none: it has no code
};

Measurement::Measurement(MeasurementBackends backends, const MeasurementOptions& options)
    : backends_(std::move(backends)),
      options_(options),
      deadline_(options.seconds > 0 ? Deadline::after(options.seconds, LimitOwner::kCaller)
                                    : Deadline::never()) {}
Measurement::~Measurement() = default;

bool Measurement::over() const { return failure_ || interrupted() || deadline_.passed(); }

void Measurement::fail(const Error& error) {
  if (!failure_) failure_ = error;
  changed_.notify_all();
}

Result<MeasurementReport> Measurement::run(const std::vector<GivenTask>& tasks) {
  tasks_ = &tasks;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::max(options_.threads, 1); ++i) threads.emplace_back([this] { work(); });
  for (int i = 0; backends_.clock && i < std::max(options_.clocks, 1); ++i)
    threads.emplace_back([this] { restart_clock_if_needed(); });
  for (auto& thread : threads) thread.join();
  if (interrupted()) return Error{"interrupted; run the same command to resume", Blame::kInterrupted};
  if (failure_) return *failure_;
  // Out of time: what has two times says something.
  report_.out_of_time = !open_.empty();
  for (const auto& program : open_)
    if (std::ranges::count_if(program->choices, [&](const MeasuredChoice& c) {
          return backends_.clock ? c.times.has_value() : c.verdict.has_value();
        }) > 1)
      NEREID_TRY_STATUS(write(*program));
  return report_;
}

// Choices of programs that are open come first; where there are none, a program is opened.
void Measurement::work() {
  std::unique_lock lock(mutex_);
  while (!over()) {
    const bool room = to_time_.size() < kMaxWaiting;
    if (!to_judge_.empty() && room) {
      const Job job = to_judge_.front();
      to_judge_.pop_front();
      ++judging_;
      lock.unlock();
      judge(job);
      lock.lock();
      --judging_;
      changed_.notify_all();
      continue;
    }
    if (room && next_ < tasks_->size() &&
        open_.size() < kMaxOpen * static_cast<size_t>(std::max(options_.threads, 1))) {
      auto program = std::make_shared<Program>();
      program->task = &(*tasks_)[next_++];
      open_.push_back(program);
      ++judging_;
      lock.unlock();
      const Stopwatch watch;
      const Status prepared = prepare(*program);
      lock.lock();
      --judging_;
      report_.seconds["prepare"] += watch.seconds();
      if (!prepared.ok()) return fail(prepared.error());
      program->left = program->choices.size();
      for (size_t c = 0; c < program->choices.size(); ++c) to_judge_.push_back({program, c});
      if (program->left == 0) settle(program);
      changed_.notify_all();
      continue;
    }
    if (next_ >= tasks_->size() && open_.empty()) break;
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
  changed_.notify_all();
}

void Measurement::restart_clock_if_needed() {
  std::unique_lock lock(mutex_);
  while (!over()) {
    if (!to_time_.empty()) {
      const Job job = to_time_.front();
      to_time_.pop_front();
      lock.unlock();
      time(job);
      lock.lock();
      continue;
    }
    if (next_ >= tasks_->size() && open_.empty()) break;
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

// Its trace, whether there is something to win, and the answers to it.
Status Measurement::prepare(Program& program) {
  const GivenTask& task = *program.task;
  NEREID_TRY(const auto answer, backends_.trace({.source = task.source,
                                                 .path = kMeasuredFile,
                                                 .class_name = "Model",
                                                 .draw = options_.seed & 0x7fffffff,
                                                 .seconds = kMeasuredTraceSeconds},
                                                Deadline::never()));
  const auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) return program.dropped = "untraceable", ok_status();
  NEREID_TRY(const auto facts, backends_.analyze(*trace));
  program.roofline = 1e-3 * search::roofline_ms(facts, backends_.peaks);
  NEREID_TRY(const compiler::Target target, compiler::target_named(options_.target));
  const auto first = compiler::lower_module(*trace, task.source, {.target = options_.target});
  if (!first.ok()) return program.dropped = "not lowered", ok_status();
  if (program.roofline + target.cost.launch_seconds > options_.max_share * first->seconds)
    return program.dropped = "near the roofline", ok_status();
  synth::Rng rng(options_.seed, task.number, 0);
  auto variants = variants_to_measure(*trace, task.source, rng, options_.choices, options_.target);
  if (!variants.ok()) return program.dropped = "not lowered", ok_status();
  if (variants->size() < 2 && !options_.answers.contains(task.about.at("id").get<std::string>()))
    return program.dropped = "one choice", ok_status();
  const auto merged =
      compiler::collapsed_dims(*trace, compiler::numbers_in(compiler::without_prose(task.source)));
  const std::string steps = options_.brief ? compiler::trace_summary(*trace, task.source) : "";
  std::vector<std::string> operators;
  if (const auto named = task.about.find("operators"); named != task.about.end() && named->is_array())
    for (const Json& name : *named)
      if (name.is_string()) operators.push_back(name.get<std::string>());
  const TaskFacts facts_of_task = facts_of(*trace, std::move(operators));
  for (Variant& variant : *variants) {
    PlanText said = options_.brief ? write_brief_plan(steps, variant)
                                   : write_plan_text(facts_of_task, variant,
                                                     static_cast<int>(program.choices.size()), rng);
    if (options_.brief) said.plan = compiler::with_collapsed_dims(said.plan, merged);
    const double seconds = variant.module.seconds;
    program.choices.push_back({.variant = std::move(variant), .said = std::move(said), .seconds = seconds});
  }
  add_answers(program);
  return ok_status();
}

void Measurement::add_answers(Program& program) const {
  const auto given = options_.answers.find(program.task->about.at("id").get<std::string>());
  if (given == options_.answers.end()) return;
  for (const std::string& text : given->second) {
    const auto read = verify::read_either(text);
    const auto* code = std::get_if<verify::Code>(&read);
    if (code == nullptr) {
      program.answers.emplace_back();
      continue;
    }
    const std::string program_text = verify::normal_form(code->source);
    const auto same = std::ranges::find_if(program.choices, [&](const MeasuredChoice& choice) {
      return choice.variant.normal_form == program_text;
    });
    program.answers.emplace_back(static_cast<size_t>(same - program.choices.begin()));
    if (same != program.choices.end()) continue;
    MeasuredChoice choice{.said = {.plan = plan_of(text), .code = code->source}, .answer = true};
    choice.variant.normal_form = program_text;
    program.choices.push_back(std::move(choice));
  }
}

void Measurement::judge(const Job& job) {
  Program& program = *job.program;
  MeasuredChoice& choice = program.choices[job.choice];
  {
    const std::lock_guard lock(mutex_);
    if (!program.dropped.empty()) return settle(job.program);
  }
  const Stopwatch watch;
  double traced_seconds = 0;
  verify::Verdict verdict = backends_.judge({.reference_name = kMeasuredFile,
                                             .reference_source = program.task->source,
                                             .candidate_name = "model_new.py",
                                             .candidate_text = choice.variant.normal_form,
                                             .form = verify::Pair::Form::kSource,
                                             .deadline = deadline_,
                                             .traced = [&](const verify::TraceAnalysis& facts) {
                                               traced_seconds = 1e-3 * search::work_of(facts).ms;
                                             }});
  if (choice.answer) choice.seconds = traced_seconds;
  verdict.policy = options_.policy;
  const std::lock_guard lock(mutex_);
  if (over()) return;
  report_.seconds["judge"] += watch.seconds();
  ++report_.choices, ++report_.verdicts[std::string(verify::to_string(verdict.kind))];
  const bool verified = verdict.kind == verify::VerdictKind::kVerified;
  if (!verdict.coverage.degenerate.empty())
    program.dropped = "degenerate";
  else if (verdict.kind == verify::VerdictKind::kError && job.choice == 0)
    program.dropped = "not judged";
  if (!verified && report_.refused.size() < kMaxRefusedShown)
    report_.refused.push_back(fmt::format("{}, choice {}: {}",
                                          program.task->about.at("id").get<std::string>(), job.choice,
                                          verify::headline(verdict)));
  choice.verdict = std::move(verdict);
  if (verified && backends_.clock && program.dropped.empty()) {
    to_time_.push_back(job);
    changed_.notify_all();
  } else {
    settle(job.program);
  }
}

void Measurement::time(const Job& job) {
  Program& program = *job.program;
  MeasuredChoice& choice = program.choices[job.choice];
  const Stopwatch watch;
  verify::Verdict verdict = backends_.clock({.reference_name = kMeasuredFile,
                                             .reference_source = program.task->source,
                                             .candidate_name = "model_new.py",
                                             .candidate_text = choice.variant.normal_form,
                                             .form = verify::Pair::Form::kSource,
                                             .trace = choice.verdict->trace,
                                             .deadline = deadline_});
  const std::lock_guard lock(mutex_);
  if (over()) return;
  report_.seconds["clock"] += watch.seconds();
  if (const auto gpu = verdict.phases.find("gpu"); gpu != verdict.phases.end())
    report_.seconds["gpu"] += gpu->second;
  if (program.again) {
    if (verdict.times) choice.again = 1e-3 * verdict.times->candidate_ms;
  } else if (verdict.kind == verify::VerdictKind::kVerified && verdict.times) {
    ++report_.timed;
    choice.times = std::move(verdict.times);
  } else {
    choice.not_timed = verify::headline(verdict);
    if (report_.refused.size() < kMaxRefusedShown)
      report_.refused.push_back(fmt::format("{}, choice {}, by the clock: {}",
                                            program.task->about.at("id").get<std::string>(), job.choice,
                                            choice.not_timed));
  }
  settle(job.program);
}

// The fastest of many times is one that was lucky, too: it and the first choice are timed once more, which
// says without that bias what it gains. With the lock.
bool Measurement::time_again(const std::shared_ptr<Program>& program) {
  if (!backends_.clock || program->again || !program->dropped.empty()) return false;
  const auto seconds = [](const MeasuredChoice& choice) {
    return choice.times ? choice.times->candidate_ms : INFINITY;
  };
  const auto best = std::ranges::min_element(program->choices, {}, seconds);
  if (best == program->choices.begin() || best == program->choices.end() || !best->times ||
      !program->choices.front().times)
    return false;
  program->again = true, program->left = 2;
  to_time_.push_front({program, static_cast<size_t>(best - program->choices.begin())});
  to_time_.push_front({program, 0});
  return true;
}

// One choice less to wait for; the last one ends the program. With the lock.
void Measurement::settle(const std::shared_ptr<Program>& program) {
  if (program->left > 0 && --program->left > 0) return;
  if (time_again(program)) return changed_.notify_all();
  std::erase(open_, program);
  if (const Status written = write(*program); !written.ok()) return fail(written.error());
  if (backends_.progress)
    backends_.progress(fmt::format("{} choices verified or refused, {} timed, {} wait for the clock",
                                   report_.choices, report_.timed, to_time_.size()),
                       1);
  changed_.notify_all();
}

Status Measurement::write(const Program& program) {
  Json line = program.task->about;
  if (!program.dropped.empty()) {
    ++report_.left_out[program.dropped];
    line["left_out"] = program.dropped;
    return backends_.write(line.dump());
  }
  ++report_.programs;
  report_.complete += program.left == 0 ? 1 : 0;
  line["task"] = program.task->source;
  line["device"] = backends_.device.empty() ? Json() : Json(backends_.device);
  line["target"] = options_.target;
  line["peaks"] = {{"bytes", backends_.peaks.bytes}, {"f32", backends_.peaks.f32}};
  line["roofline_seconds"] = program.roofline;
  line["complete"] = program.left == 0;
  line["choices"] = Json::array();
  for (const auto& answer : program.answers) {
    if (!answer) {
      line["answers"].push_back({{"verdict", verify::to_string(verify::VerdictKind::kMalformed)}});
      continue;
    }
    const MeasuredChoice& choice = program.choices[*answer];
    Json one = {{"modelled_seconds", choice.seconds}};
    one["verdict"] = choice.verdict ? Json(verify::to_string(choice.verdict->kind)) : Json();
    if (choice.times) one["seconds"] = 1e-3 * choice.times->candidate_ms;
    line["answers"].push_back(std::move(one));
  }
  for (const MeasuredChoice& choice : program.choices) {
    if (!choice.verdict) continue;
    const bool verified = choice.verdict->kind == verify::VerdictKind::kVerified;
    Json one =
        pair_line(Json::object(), "", choice.variant, choice.said, verified ? &*choice.verdict : nullptr);
    one.erase("task");
    if (!verified)
      one["verdict"] = {{"verdict", verify::to_string(choice.verdict->kind)},
                        {"reason", verify::headline(*choice.verdict)}};
    if (&choice == program.choices.data()) one["first"] = true;
    one["kind"] = choice.answer ? "answer" : to_string(choice.variant.kind);
    if (choice.answer) one["proposer"] = "model";
    one["modelled_seconds"] = choice.seconds;
    one["features"] = Json::array();
    for (const auto& kernel : choice.variant.module.kernels)
      one["features"].push_back(features_of(kernel.estimate.features));
    one["kept"] = choice.variant.module.kept;
    if (choice.times) {
      const double seconds = 1e-3 * choice.times->candidate_ms;
      one["seconds"] = seconds;
      if (choice.again) one["seconds_again"] = *choice.again;
      one["roofline_share"] = program.roofline / seconds;
      one["interval"] = (choice.times->ci_high - choice.times->ci_low) / choice.times->speedup;
      line["eager_seconds"] = 1e-3 * choice.times->reference_ms;
    } else if (!choice.not_timed.empty()) {
      one["not_timed"] = choice.not_timed;
    }
    line["choices"].push_back(std::move(one));
  }
  return backends_.write(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace nereid::dataset
