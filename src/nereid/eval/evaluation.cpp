#include "nereid/eval/evaluation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/included_files.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/search/report/result_file.h"

namespace nereid::eval {
namespace {

namespace fs = std::filesystem;
using verify::VerdictKind;

constexpr std::string_view kDeclined = "Declined";
constexpr std::string_view kModelled = "H200";  // the cost model's GPU

constexpr double kTracePatience =
    600;  // beyond a task's budget, for its reference: on a loaded machine it waits
constexpr double kBaselineSeconds = 1800;  // of one task, all modes together
// What a language model of ours writes at a time, all tasks together: more gains little, and a task that
// waits for its turn to be judged is using up its budget.
constexpr int kMaxWritten = 64, kMaxRequestedTasks = 32;
constexpr int kTasksOfAJob = 2;  // half of them wait for the model, about

int tasks_at_once(const std::vector<proposers::Proposer*>& proposers, const EvaluationOptions& options) {
  if (options.model_on_gpu) return kTasksOfAJob * options.jobs;
  for (const auto* proposer : proposers)
    if (proposer->samples() && !proposer->paid())
      return std::max(options.jobs,
                      std::min(kMaxRequestedTasks, kMaxWritten / std::max(1, options.search.samples)));
  return options.jobs;
}

Json maybe(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// results.jsonl: a line that says what was asked, then one for each task; the last of a task counts.
class ResultFile {
 public:
  static Result<ResultFile> open(const fs::path& path, const std::string& question) {
    ResultFile file;
    file.path_ = path;
    file.fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file.fd_.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
    if (::flock(file.fd_.get(), LOCK_EX | LOCK_NB) != 0)
      return input_error("{}: another evaluation is writing it", path.string());
    std::ifstream lines(path);
    std::string line;
    off_t whole = 0;
    while (std::getline(lines, line) && !lines.eof()) {  // a line that a kill cut short has no end
      whole += static_cast<off_t>(line.size()) + 1;
      NEREID_TRY_STATUS(file.take(line, question));
    }
    if (::ftruncate(file.fd_.get(), whole) != 0 || ::lseek(file.fd_.get(), 0, SEEK_END) < 0)
      return our_error("{}: {}", path.string(), std::strerror(errno));
    if (whole == 0) NEREID_TRY_STATUS(file.append(line_of({{"question", question}})));
    return file;
  }

  const TaskResult* find(const std::string& id, const std::string& hash) const {
    const auto found = results_.find(id);
    const bool there =
        found != results_.end() && found->second.task == hash && found->second.verdict != VerdictKind::kError;
    return there ? &found->second : nullptr;
  }

  Status append(const std::string& line) {
    const off_t before = ::lseek(fd_.get(), 0, SEEK_CUR);
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t wrote = ::write(fd_.get(), rest.data(), rest.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int why = errno;
        if (::ftruncate(fd_.get(), before) != 0)
          return our_error("{}: {}; its last line may be cut", path_.string(), std::strerror(why));
        return our_error("{}: {}", path_.string(), std::strerror(why));
      }
      rest.remove_prefix(static_cast<size_t>(wrote));
    }
    return ok_status();
  }

 private:
  Status take(const std::string& line, const std::string& question) {
    if (results_.empty() && !asked_) {
      const auto json = parse_json(line, path_.string());
      asked_ = json.ok() && json->is_object() && json->contains("question");
      if (!asked_) return input_error("{}: is not a file of results", path_.string());
      if ((*json)["question"] != question)
        return input_error("{} holds answers to another question ({}); this one is {}: name another folder",
                           path_.string(), (*json)["question"].dump(), question);
      return ok_status();
    }
    if (auto result = result_from(line); result.ok()) results_[result->id] = *result;
    return ok_status();
  }

  fs::path path_;
  Fd fd_;
  bool asked_ = false;
  std::map<std::string, TaskResult> results_;
};

}  // namespace

Json to_json(const TaskResult& r) {
  return {{"id", r.id},
          {"task", r.task},
          {"verdict", verdict_name(r)},
          {"reason", r.reason},
          {"proposer", r.proposer},
          {"variant", r.variant},
          {"samples", r.score.samples},
          {"verified", r.score.verified},
          {"speedup", maybe(r.score.over_eager)},
          {"speedup_compile", maybe(r.score.over_compile)},
          {"speedup_called", maybe(r.score.called_over_eager)},
          {"speedup_compile_called", maybe(r.score.called_over_compile)},
          {"speedup_called_tf32", maybe(r.score.called_over_eager_tf32)},
          {"speedup_compile_called_tf32", maybe(r.score.called_over_compile_tf32)},
          {"speedup_modelled", maybe(r.score.modelled)},
          {"roofline", maybe(r.score.roofline)},
          {"reference_ms", maybe(r.reference_ms)},
          {"candidate_ms", maybe(r.candidate_ms)},
          {"first_seconds", maybe(r.score.first_seconds)},
          {"best_seconds", maybe(r.score.best_seconds)},
          {"seconds", r.seconds},
          {"dollars", r.dollars}};
}

std::string_view verdict_name(const TaskResult& result) {
  return result.verdict ? to_string(*result.verdict) : kDeclined;
}

Result<TaskResult> result_from(const std::string& line) {
  NEREID_TRY(const Json json, parse_json(line, "a result"));
  const JsonField root(json, "result");
  TaskResult r;
  const auto text = [&](const char* key, std::string& into) -> Status {
    NEREID_TRY(into, root.text_at(key));
    return ok_status();
  };
  std::string verdict;
  const std::initializer_list<std::pair<const char*, std::string*>> texts = {
      {"id", &r.id},         {"task", &r.task},         {"verdict", &verdict},
      {"reason", &r.reason}, {"proposer", &r.proposer}, {"variant", &r.variant}};
  for (const auto& [key, into] : texts) NEREID_TRY_STATUS(text(key, *into));
  r.verdict = verify::verdict_kind_from_string(verdict);
  if (!r.verdict && verdict != kDeclined) return root.expected("a result with a verdict, or Declined");
  NEREID_TRY(r.score.samples, root.integer_at("samples", 0, 0, INT64_MAX));
  NEREID_TRY(r.score.verified, root.integer_at("verified", 0, 0, r.score.samples));
  const auto number = [&](const char* key, std::optional<double>& into) -> Status {
    NEREID_TRY(const auto field, root.find(key));
    if (!field || field->json().is_null()) return ok_status();
    NEREID_TRY(into, field->number());
    return ok_status();
  };
  NEREID_TRY_STATUS(number("speedup", r.score.over_eager));
  NEREID_TRY_STATUS(number("speedup_compile", r.score.over_compile));
  NEREID_TRY_STATUS(number("speedup_called", r.score.called_over_eager));
  NEREID_TRY_STATUS(number("speedup_compile_called", r.score.called_over_compile));
  NEREID_TRY_STATUS(number("speedup_called_tf32", r.score.called_over_eager_tf32));
  NEREID_TRY_STATUS(number("speedup_compile_called_tf32", r.score.called_over_compile_tf32));
  NEREID_TRY_STATUS(number("roofline", r.score.roofline));
  NEREID_TRY_STATUS(number("speedup_modelled", r.score.modelled));
  NEREID_TRY_STATUS(number("first_seconds", r.score.first_seconds));
  NEREID_TRY_STATUS(number("best_seconds", r.score.best_seconds));
  NEREID_TRY_STATUS(number("reference_ms", r.reference_ms));
  NEREID_TRY_STATUS(number("candidate_ms", r.candidate_ms));
  std::optional<double> seconds, dollars;
  NEREID_TRY_STATUS(number("seconds", seconds));
  NEREID_TRY_STATUS(number("dollars", dollars));
  r.seconds = seconds.value_or(0), r.dollars = dollars.value_or(0);
  r.score.solved = r.verdict == VerdictKind::kVerified;
  if (r.id.empty()) return root.expected("a task's id");
  return r;
}

Json to_json(const Summary& s) {
  return {
      {"tasks", s.tasks},
      {"verified", s.verified},
      {"verified_share", s.tasks > 0 ? static_cast<double>(s.verified) / static_cast<double>(s.tasks) : 0.0},
      {"fast_p", s.fast_p},
      {"fast_p_compile", s.fast_p_compile},
      {"fast_p_called", s.fast_p_called},
      {"fast_p_compile_called", s.fast_p_compile_called},
      {"fast_p_called_tf32", s.fast_p_called_tf32},
      {"fast_p_compile_called_tf32", s.fast_p_compile_called_tf32},
      {"fast_p_modelled", s.fast_p_modelled},
      {"geomean_speedup", maybe(s.geomean)},
      {"geomean_speedup_compile", maybe(s.geomean_compile)},
      {"geomean_speedup_called", maybe(s.geomean_called)},
      {"geomean_speedup_compile_called", maybe(s.geomean_compile_called)},
      {"geomean_speedup_called_tf32", maybe(s.geomean_called_tf32)},
      {"geomean_speedup_compile_called_tf32", maybe(s.geomean_compile_called_tf32)},
      {"geomean_speedup_modelled", maybe(s.geomean_modelled)},
      {"roofline", s.roofline},
      {"first_seconds", s.first_seconds},
      {"best_seconds", s.best_seconds},
      {"pass_at_k", s.pass_at_k}};
}

TaskResult result_of(const std::string& id, const search::Task& task, const search::Outcome& outcome,
                     std::string_view hardware, bool allow_tf32) {
  TaskResult r{.id = id, .task = task.hash};
  r.seconds = outcome.seconds, r.dollars = outcome.cost.dollars;
  for (const auto& judged : outcome.tried)
    if (judged.sample) r.score.samples += 1, r.score.verified += judged.verified() ? 1 : 0;
  if (const auto* fault = search::fault_of(outcome); fault != nullptr && !outcome.best) {
    r.verdict = VerdictKind::kError, r.reason = fault->proposer + " failed: " + fault->why;
    return r;
  }
  const auto* shown = outcome.best ? &*outcome.best : search::furthest(outcome);
  if (shown == nullptr) {
    for (const auto& declined : outcome.declined)
      r.reason += fmt::format("{}{}: {}", r.reason.empty() ? "" : "; ", declined.proposer, declined.why);
    return r;
  }
  r.verdict = shown->kind, r.reason = shown->reason, r.proposer = shown->proposer, r.variant = shown->variant;
  r.score.solved = outcome.best.has_value();
  if (!outcome.best) return r;
  r.score.first_seconds = outcome.first_seconds, r.score.best_seconds = outcome.best_seconds;
  if (shown->times) {
    r.reference_ms = shown->times->reference_ms, r.candidate_ms = shown->times->candidate_ms;
    r.score.over_eager = shown->times->speedup;
  } else if (shown->work) {
    r.reference_ms = task.work.ms, r.candidate_ms = shown->work->ms;
  }
  if (shown->work && shown->work->ms > 0 && task.work.ms > 0)
    r.score.modelled = task.work.ms / shown->work->ms;
  const auto* peaks = gpu::peaks_of(shown->times ? hardware : kModelled);
  if (peaks != nullptr && r.candidate_ms && *r.candidate_ms > 0)
    r.score.roofline = search::roofline_ms(task.facts, *peaks, allow_tf32) / *r.candidate_ms;
  return r;
}

std::vector<std::pair<std::string, Summary>> by_folder(const std::vector<TaskResult>& results) {
  std::vector<std::pair<std::string, std::vector<Score>>> folders;
  for (const auto& r : results) {
    const std::string folder = r.id.substr(0, r.id.find('/') == r.id.npos ? 0 : r.id.find('/'));
    if (folders.empty() || folders.back().first != folder) folders.push_back({folder, {}});
    folders.back().second.push_back(r.score);
  }
  std::vector<std::pair<std::string, Summary>> summaries;
  if (folders.size() < 2) return summaries;
  for (const auto& [folder, scores] : folders) summaries.emplace_back(folder, summarize(scores));
  return summaries;
}

Json to_json(const search::Compared& compared) {
  Json json = search::to_json(compared.baselines);
  if (const auto& kernels = compared.kernels) {
    json["inductor"] = {{"verdict", to_string(kernels->kind)}};
    if (kernels->times) json["inductor"]["replay_ms"] = kernels->times->candidate_ms;
    if (!kernels->verified()) json["inductor"]["declined"] = kernels->reason;
  } else if (!compared.declined.empty()) {
    json["inductor"] = {{"declined", compared.declined}};
  }
  return json;
}

void compare(TaskResult& result, search::Compared compared) {
  // Both by their times as graphs.
  if (compared.kernels && compared.kernels->times && result.candidate_ms && result.score.over_eager)
    result.score.over_compile = compared.kernels->times->candidate_ms / *result.candidate_ms;
  const auto called = [&](const char* mode) -> std::optional<double> {
    const auto found = compared.baselines.find(mode);
    return found == compared.baselines.end() ? std::nullopt : found->second.call_ms;
  };
  if (const auto candidate = called(search::kCandidateName); candidate && *candidate > 0) {
    if (const auto eager = called("eager")) result.score.called_over_eager = *eager / *candidate;
    if (const auto compile = called("compile")) result.score.called_over_compile = *compile / *candidate;
    if (const auto eager = called("eager-tf32")) result.score.called_over_eager_tf32 = *eager / *candidate;
    if (const auto compile = called("compile-tf32"))
      result.score.called_over_compile_tf32 = *compile / *candidate;
  }
  result.compared = std::move(compared);
}

namespace {

// Judges tasks on several threads, each result in the file before the next request of its thread.
class Evaluation {
 public:
  Evaluation(search::Evaluator& evaluator, const std::vector<TaskFile>& tasks,
             const std::vector<proposers::Proposer*>& proposers, const EvaluationOptions& options,
             ResultFile file)
      : evaluator_(evaluator),
        tasks_(tasks),
        proposers_(proposers),
        options_(options),
        file_(std::move(file)),
        results_(tasks.size()) {}

  Result<std::vector<TaskResult>> run() {
    std::vector<std::thread> threads;
    for (int i = 1; i < tasks_at_once(proposers_, options_); ++i) threads.emplace_back([this] { work(); });
    work();
    for (auto& thread : threads) thread.join();
    if (interrupted()) return Error{"interrupted; run the same command to resume", Blame::kInterrupted};
    if (trouble_) return *trouble_;
    return std::move(results_);
  }

 private:
  auto trace(const TaskFile& task_file, const std::string& source) {
    return evaluator_.trace(task_file.path.filename().string(), source,
                            Deadline::after(options_.budget + kTracePatience));
  }
  fs::path solution_of(const TaskFile& task_file) const {
    return options_.folder / "solutions" / (task_file.id + ".py");
  }
  Result<TaskResult> judge(const TaskFile& task_file, const std::string& source);
  Status write_solution(const TaskFile& task_file, const search::Task& task, const search::Outcome& outcome);
  Status add_baselines(const TaskFile& task_file, const std::string& source, TaskResult& result);
  Status one(size_t index);
  void work();

  search::Evaluator& evaluator_;
  const std::vector<TaskFile>& tasks_;
  const std::vector<proposers::Proposer*>& proposers_;
  const EvaluationOptions& options_;
  std::mutex mutex_;  // guards what follows
  ResultFile file_;
  std::vector<TaskResult> results_;
  std::optional<Error> trouble_;
  size_t next_ = 0;
  int64_t done_ = 0;
};

Result<TaskResult> Evaluation::judge(const TaskFile& task_file, const std::string& source) {
  auto task = trace(task_file, source);
  if (!task.ok()) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    return TaskResult{.id = task_file.id,
                      .task = sha256_hex(source),
                      .verdict = VerdictKind::kError,
                      .reason = task.error().message};
  }
  auto how = options_.search;
  // Its trace counts by the seconds that the tracer worked on it, not by those that it waited for its turn.
  how.deadline = Deadline::after(options_.budget - (*task)->trace.seconds);
  const auto outcome = search::search(evaluator_, **task, proposers_, how);
  if (options_.searched) options_.searched(**task, outcome);
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  if (outcome.best) NEREID_TRY_STATUS(write_solution(task_file, **task, outcome));
  return result_of(task_file.id, **task, outcome, evaluator_.options().hardware,
                   evaluator_.settings().tolerance.allow_tf32);
}

Status Evaluation::write_solution(const TaskFile& task_file, const search::Task& task,
                                  const search::Outcome& outcome) {
  const fs::path to = solution_of(task_file);
  std::error_code ignored;
  fs::create_directories(to.parent_path(), ignored);
  return write_file_atomically(
      to, search::result_file(task, *outcome.best,
                              {.program = "nereid eval",
                               .reference = task_file.id,
                               .hardware = evaluator_.options().hardware,
                               .versions = evaluator_.options().versions,
                               .compiled = outcome.compiled ? &*outcome.compiled : nullptr}));
}

Status Evaluation::add_baselines(const TaskFile& task_file, const std::string& source, TaskResult& result) {
  const auto task = trace(task_file, source);
  if (!task.ok()) return ok_status();
  NEREID_TRY(const std::string candidate, read_file(solution_of(task_file), size_t{16} << 20));
  NEREID_TRY(auto compared, options_.baselines->measure(**task, candidate, Deadline::after(kBaselineSeconds),
                                                        result.proposer == "compiler"));
  const Json before = to_json(result);
  compare(result, std::move(compared));
  const std::lock_guard lock(mutex_);  // the last line of a task counts
  if (to_json(result) != before) NEREID_TRY_STATUS(file_.append(line_of(to_json(result))));
  return ok_status();
}

Status Evaluation::one(size_t index) {
  const auto& task_file = tasks_[index];
  NEREID_TRY(std::string text, read_file(task_file.path, size_t{16} << 20));
  NEREID_TRY(const std::string source, task_with_files(std::move(text), task_file.path));
  std::optional<TaskResult> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* found = file_.find(task_file.id, sha256_hex(source))) known = *found;
  }
  TaskResult result;
  if (known) {
    result = *known;
  } else {
    NEREID_TRY(result, judge(task_file, source));
    const std::lock_guard lock(mutex_);  // a verdict is kept before the next request
    NEREID_TRY_STATUS(file_.append(line_of(to_json(result))));
  }
  if (options_.baselines != nullptr && result.verdict == VerdictKind::kVerified)
    NEREID_TRY_STATUS(add_baselines(task_file, source, result));
  const std::lock_guard lock(mutex_);
  results_[index] = result;
  ++done_;
  if (options_.report) options_.report(result, done_, std::ssize(tasks_));
  return ok_status();
}

void Evaluation::work() {
  while (true) {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (trouble_ || interrupted() || next_ == tasks_.size()) return;
      index = next_++;
    }
    if (const auto status = one(index); !status.ok()) {
      const std::lock_guard lock(mutex_);
      if (!trouble_) trouble_ = status.error();
    }
  }
}

}  // namespace

Result<std::vector<TaskResult>> evaluate(search::Evaluator& evaluator, const std::vector<TaskFile>& tasks,
                                         const std::vector<proposers::Proposer*>& proposers,
                                         const EvaluationOptions& options) {
  std::error_code failure;
  fs::create_directories(options.folder / "solutions", failure);
  if (failure) return input_error("{}: {}", options.folder.string(), failure.message());
  NEREID_TRY(auto file, ResultFile::open(options.folder / "results.jsonl", options.question));
  return Evaluation(evaluator, tasks, proposers, options, std::move(file)).run();
}

}  // namespace nereid::eval
