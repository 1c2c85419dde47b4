#include "nereid/skills/admission.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/skills/retrieval.h"
#include "nereid/skills/skilled_proposer.h"

namespace nereid::skills {
namespace {

constexpr double kAnswerSeconds = 1800;    // of one sample: written and judged
constexpr int64_t kFewestForEviction = 3;  // tasks

// With the times of a judged answer by one clock; nothing where a verified one has none.
std::optional<Sample> timed(const search::Task& task, const search::Judged& judged, Sample sample) {
  sample.task = task.hash;
  sample.verified = judged.verified();
  sample.reference_ms = judged.times ? judged.times->reference_ms : task.work.ms;
  if (!sample.verified) return sample;
  const auto ms = judged.ms();
  if (!ms || *ms <= 0) return std::nullopt;
  sample.ms = *ms;
  return sample;
}

std::string interval_text(const gpu::Interval& interval, double factor = 1) {
  return fmt::format("{:.2f} to {:.2f}", factor * interval.low, factor * interval.high);
}

// Draws the samples of an admission, several tasks at a time.
class AdmissionSampling {
 public:
  AdmissionSampling(Library& library, const Entry& entry, search::Evaluator& evaluator,
                    proposers::Proposer& with, proposers::Proposer& without,
                    const std::vector<const search::Task*>& tasks, const AdmissionOptions& options)
      : library_(library),
        entry_(entry),
        evaluator_(evaluator),
        with_(with),
        without_(without),
        tasks_(tasks),
        options_(options) {}

  Status run() {
    NEREID_TRY(const auto control, library_.samples("", 0, options_.question));
    NEREID_TRY(const auto skilled, library_.samples(entry_.skill.name, entry_.version, options_.question));
    for (const auto& list : {control, skilled})
      for (const auto& sample : list) had_.insert({!sample.skill.empty(), sample.task, sample.number});
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::max(1, options_.jobs); ++i) threads.emplace_back([this] { work(); });
    threads.clear();
    if (interrupted()) return Error{"interrupted; the same command goes on", Blame::kInterrupted};
    return trouble_ ? Status(*trouble_) : ok_status();
  }

 private:
  struct Arm {
    bool skilled = false;
    proposers::Proposer* proposer = nullptr;
    size_t missing = 0;
    std::unique_ptr<proposers::Answers> answers{};
  };

  void work() {
    for (size_t index; (index = next_++) < tasks_.size() && !interrupted();) {
      const auto status = one(*tasks_[index]);
      const std::lock_guard lock(mutex_);
      if (!status.ok() && !trouble_) trouble_ = status.error();
      if (trouble_) return;
    }
  }

  // The arms take turns, so that what changes with time (an endpoint, a clock) changes both.
  Status one(const search::Task& task) {
    std::vector<Arm> arms;
    for (const bool skilled : {false, true}) {
      std::vector<int> numbers;
      for (int number = 0; number < options_.samples; ++number)
        if (!had_.contains({skilled, task.hash, number})) numbers.push_back(number);
      auto& proposer = skilled ? with_ : without_;
      arms.push_back({skilled, &proposer, numbers.size(),
                      numbers.empty() ? nullptr : evaluator_.request_samples(proposer, task, numbers)});
    }
    for (size_t turn = 0; arms[0].missing + arms[1].missing > 0 && !interrupted(); ++turn) {
      Arm& arm = arms[turn % 2];
      if (arm.missing == 0) continue;
      NEREID_TRY(const auto next, arm.answers->next(Deadline::after(kAnswerSeconds)));
      if (!next)
        return our_error("{} gave {} answers less than were asked for", arm.proposer->name(), arm.missing);
      --arm.missing;
      NEREID_TRY_STATUS(judge(task, arm.skilled, *next));
    }
    return ok_status();
  }

  Status judge(const search::Task& task, bool skilled, const proposers::Answers::One& one) {
    Sample sample{.skill = skilled ? entry_.skill.name : "",
                  .version = skilled ? entry_.version : 0,
                  .question = options_.question,
                  .task = task.hash,
                  .number = one.sample,
                  .reference_ms = task.work.ms};
    if (!one.answer.proposals.empty()) {
      const auto judged = evaluator_.judge(task, std::string(with_.name()), one.answer.proposals.front(),
                                           Deadline::after(kAnswerSeconds));
      if (interrupted()) return ok_status();
      if (judged.kind == verify::VerdictKind::kError)
        return our_error("{}: no verdict: {}", task.name, judged.reason);
      const auto with_times = timed(task, judged, sample);
      if (!with_times) return our_error("{}: a verified answer has no time", task.name);
      sample = *with_times;
    }
    NEREID_TRY_STATUS(library_.record({sample}));
    const std::lock_guard lock(mutex_);
    if (options_.report) options_.report(sample);
    return ok_status();
  }

  Library& library_;
  const Entry& entry_;
  search::Evaluator& evaluator_;
  proposers::Proposer& with_;
  proposers::Proposer& without_;
  const std::vector<const search::Task*>& tasks_;
  const AdmissionOptions& options_;
  std::set<std::tuple<bool, std::string, int64_t>> had_{};  // arm, task, number
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;  // guards what follows
  std::optional<Error> trouble_{};
};

// Of each task: which share of each arm's samples is verified, and what the skill gains.
Json by_task(const std::vector<const search::Task*>& tasks, const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const auto* task : tasks) {
    std::vector<Sample> of_task;
    std::ranges::copy_if(samples, std::back_inserter(of_task),
                         [&](const Sample& sample) { return sample.task == task->hash; });
    const Worth worth = worth_of(of_task);
    list.push_back({{"name", task->name},
                    {"task", task->hash},
                    {"speedup", worth.compared > 0 ? Json(worth.speedup) : Json()},
                    {"verified_with", worth.verified_with},
                    {"verified_without", worth.verified_without}});
  }
  return list;
}

}  // namespace

std::vector<const search::Task*> tasks_for(const Skill& skill,
                                           const std::vector<std::unique_ptr<const search::Task>>& tasks) {
  std::vector<const search::Task*> chosen;
  std::set<std::string> forwards;  // the same forward twice is one task
  for (const auto& task : tasks) {
    const auto operators = operators_of(task->trace);
    const bool of_its_kind = std::ranges::all_of(skill.operators, [&](const std::string& name) {
      return std::ranges::find(operators, name) != operators.end();
    });
    const std::string forward = forward_signature(task->trace);
    const bool held_out =
        !skill.origin || (task->hash != skill.origin->task && forward != skill.origin->forward);
    if (of_its_kind && held_out && forwards.insert(forward).second) chosen.push_back(task.get());
  }
  return chosen;
}

State decide_admission(const Worth& worth, const AdmissionOptions& options, std::string& reason) {
  const std::string found = fmt::format(
      "{:.2f} times as fast ({}) over {} tasks; verified {:.0f} % with it, {:.0f} % without it (change {} "
      "points)",
      worth.speedup, interval_text(worth.speedup_interval), worth.compared, 100 * worth.verified_with,
      100 * worth.verified_without, interval_text(worth.correctness_interval, 100));
  if (worth.speedup < options.speedup) {
    reason = fmt::format("expected at least {:g} times as fast, got {}", options.speedup, found);
    return State::kRefused;
  }
  if (worth.correctness < -options.max_loss) {
    reason = fmt::format("expected at most {:g} points fewer verified answers, got {}",
                         100 * options.max_loss, found);
    return State::kRefused;
  }
  if (worth.compared < options.fewest_tasks || worth.speedup_interval.low <= options.interval_above) {
    reason = fmt::format(
        "undecided: expected an interval above {:g} over at least {} tasks, got {}; more samples or tasks",
        options.interval_above, options.fewest_tasks, found);
    return State::kCandidate;
  }
  if (worth.correctness_interval.low < -options.max_loss) {
    reason =
        fmt::format("undecided: expected a change of at least -{:g} points, got {}; more samples or tasks",
                    100 * options.max_loss, found);
    return State::kCandidate;
  }
  reason = found;
  return State::kAdmitted;
}

Result<Decision> admit(Library& library, const Entry& entry, search::Evaluator& evaluator,
                       proposers::Proposer& with, proposers::Proposer& without,
                       const std::vector<const search::Task*>& tasks, const AdmissionOptions& options) {
  if (std::ssize(tasks) < options.fewest_tasks)
    return input_error("expected at least {} held-out tasks with different forwards{}{}, got {}",
                       options.fewest_tasks, entry.skill.operators.empty() ? "" : " that use ",
                       fmt::join(entry.skill.operators, ", "), tasks.size());
  NEREID_TRY_STATUS(AdmissionSampling(library, entry, evaluator, with, without, tasks, options).run());
  NEREID_TRY(auto samples, library.samples(entry.skill.name, entry.version, options.question));
  std::erase_if(samples, [&](const Sample& sample) {
    return std::ranges::none_of(tasks, [&](const auto* task) { return task->hash == sample.task; });
  });
  const Worth worth = worth_of(samples);
  std::string reason;
  Decision decision{.skill = entry.skill.name, .version = entry.version};
  decision.state = decide_admission(worth, options, reason);
  decision.document = Json{{"reason", reason},
                           {"clock", options.modelled ? "model" : "measured"},
                           {"question", options.question},
                           {"hardware", evaluator.options().hardware},
                           {"versions", evaluator.options().versions},
                           {"limits",
                            {{"speedup", options.speedup},
                             {"interval_above", options.interval_above},
                             {"max_loss", options.max_loss},
                             {"fewest_tasks", options.fewest_tasks}}},
                           {"worth", to_json(worth)},
                           {"tasks", by_task(tasks, samples)}}
                          .dump();
  // What is admitted stays so while its next measurement is undecided.
  if (decision.state == State::kCandidate && entry.state == State::kAdmitted) decision.state = entry.state;
  NEREID_TRY_STATUS(library.decide(decision));
  return decision;
}

Result<std::vector<Decision>> settle(Library& library, int64_t capacity) {
  NEREID_TRY(auto skills, rated(library));
  std::vector<Decision> decisions;
  const auto evict = [&](const Rated& one, const std::string& reason) -> Status {
    decisions.push_back({.skill = one.entry.skill.name,
                         .version = one.entry.version,
                         .state = State::kEvicted,
                         .document = Json{{"reason", reason}, {"worth", to_json(one.worth)}}.dump()});
    return library.decide(decisions.back());
  };
  std::vector<Rated> kept;
  for (auto& one : skills) {
    const Worth& worth = one.worth;
    if (worth.compared >= kFewestForEviction && worth.speedup_interval.high < 1) {
      NEREID_TRY_STATUS(evict(one, fmt::format("{:.2f} times as fast ({}) over {} tasks", worth.speedup,
                                               interval_text(worth.speedup_interval), worth.compared)));
    } else if (worth.groups >= kFewestForEviction && worth.correctness_interval.high < 0) {
      NEREID_TRY_STATUS(evict(one, fmt::format("verified {:.0f} % with it, {:.0f} % without it",
                                               100 * worth.verified_with, 100 * worth.verified_without)));
    } else {
      kept.push_back(std::move(one));
    }
  }
  std::ranges::stable_sort(kept, [](const Rated& a, const Rated& b) {
    if (a.worth.speedup != b.worth.speedup) return a.worth.speedup < b.worth.speedup;
    return a.entry.made < b.entry.made;
  });
  for (int64_t i = 0; i < std::ssize(kept) - capacity; ++i)
    NEREID_TRY_STATUS(
        evict(kept[static_cast<size_t>(i)],
              fmt::format("the library has a capacity of {}, and all others gain more", capacity)));
  return decisions;
}

Status record_outcome(Library& library, const search::Task& task, const std::vector<search::Judged>& tried,
                      const std::map<std::string, std::string>& questions) {
  std::vector<Sample> samples;
  bool skilled = false;
  for (const auto& judged : tried) {
    const auto use = use_in(judged.variant);
    const auto question = questions.find(judged.proposer);
    if (!use || !judged.sample || question == questions.end()) continue;
    if (judged.kind == verify::VerdictKind::kError) continue;
    const auto sample = timed(task, judged, {.question = question->second, .number = use->sample});
    if (!sample) continue;
    if (use->control) samples.push_back(*sample);
    for (const auto& [name, version] : use->skills) {
      samples.push_back(*sample);
      samples.back().skill = name, samples.back().version = version;
      skilled = true;
    }
  }
  if (samples.empty()) return ok_status();
  NEREID_TRY_STATUS(library.record(samples));
  if (!skilled) return ok_status();
  NEREID_TRY([[maybe_unused]] const auto evicted, settle(library, INT64_MAX));
  return ok_status();
}

}  // namespace nereid::skills
