// A suite judged: every task searched, each result written down as soon as it is there, and the figures over
// all.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/eval/metrics.h"
#include "nereid/eval/suite.h"
#include "nereid/search/baselines.h"
#include "nereid/search/search.h"

namespace nereid::eval {

struct TaskResult {
  std::string id{}, task{};  // task: SHA-256 of its source
  Score score{};
  // Of the best candidate, or of the one that failed last in the pipeline; nullopt ("Declined") where there
  // is none.
  std::optional<verify::VerdictKind> verdict{};
  std::string reason{}, proposer{}, variant{};
  std::optional<double> reference_ms{}, candidate_ms{};  // measured, else modelled
  double seconds = 0, dollars = 0;
  search::Compared compared{};  // of the verified, where that was asked for; not part of results.jsonl
};
std::string_view verdict_name(const TaskResult& result);  // "Verified", ..., or "Declined"
nlohmann::json to_json(const TaskResult& result);
// By way, with "inductor" for its kernels replayed: {"verdict": ..., "replay_ms": ...}.
nlohmann::json to_json(const search::Compared& compared);
Result<TaskResult> result_from(const std::string& line);
nlohmann::json to_json(const Summary& summary);

struct EvaluationOptions {
  std::filesystem::path
      folder{};  // results.jsonl, and below solutions/ each best candidate; made where it is not there
  std::string question{};     // what was asked: another question may not go on in the same folder
  int jobs = 1;               // tasks at a time; more where a language model of ours writes for many at once,
                              // of which the evaluator judges as many as its options say
  bool model_on_gpu = false;  // it writes for still more, and the verifier never waits for it
  double budget = 60;         // seconds for a task
  search::SearchOptions search{};              // its deadline is set for each task
  search::BaselineClock* baselines = nullptr;  // PyTorch's times of every verified task too
  // Each search as it ends, by several threads.
  std::function<void(const search::Task&, const search::Outcome&)> searched{};
  std::function<void(const TaskResult&, int64_t done, int64_t of)> report{};  // called under a lock
};

// The result of one search as it is counted.
// `hardware`: the device's name, whose peaks bound measured times; modelled times are an H200's.
TaskResult result_of(const std::string& id, const search::Task& task, const search::Outcome& outcome,
                     std::string_view hardware = "", bool allow_tf32 = false);

// Judges what results.jsonl does not hold yet; a task whose source changed is judged again, and so is one
// that ended in an Error. All results, in the tasks' order. An interrupt ends it with an Error blamed so;
// what was judged is kept.
Result<std::vector<TaskResult>> evaluate(search::Evaluator& evaluator, const std::vector<TaskFile>& tasks,
                                         const std::vector<proposers::Proposer*>& proposers,
                                         const EvaluationOptions& options);

// The figures of each of the suite's folders ("level1" of "level1/19_ReLU"), in the tasks' order; empty where
// there is but one.
std::vector<std::pair<std::string, Summary>> by_folder(const std::vector<TaskResult>& results);

// The speed-ups over torch.compile, where both times are there.
void compare(TaskResult& result, search::Compared compared);

}  // namespace nereid::eval
