#include "nereid/search/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include "nereid/base/interrupt.h"
#include "nereid/search/fragments.h"

namespace nereid::search {
namespace {

constexpr double kModelTold = 0.03;  // relative; modelled times that differ by less are equal

// One search under way; its members are shared by a thread for each proposer.
class Run {
 public:
  Run(Bench& bench, const Task& task, const SearchOptions& options,
      const std::function<void(const Event&)>& tell)
      : bench_(bench), task_(task), options_(options), tell_(tell) {}

  void with(policy::Proposer& proposer, int rank) {
    const int samples = proposer.samples() ? std::max(1, options_.samples) : 1;
    for (int sample = 0; sample < samples && go_on(); ++sample) {
      std::vector<policy::Attempt> attempts;
      const int rounds = proposer.repairs() ? 1 + options_.repairs : 1;
      for (int round = 0; round < rounds && go_on(); ++round)
        if (!once(proposer, rank, sample, attempts)) break;
    }
  }

  // The winner's proposer turns what can be turned about it, where a clock tells what is better.
  void tune(const std::vector<policy::Proposer*>& proposers) {
    if (!outcome_.best || !outcome_.best->times || !outcome_.best->variant.empty()) return;
    for (size_t i = 0; i < proposers.size(); ++i) {
      const std::string name(proposers[i]->name());
      if (name != outcome_.best->proposer) continue;
      const auto tuner = proposers[i]->tuner(
          {.name = task_.name, .source = task_.source, .trace = &task_.trace}, *outcome_.best->ms());
      while (tuner && go_on()) {
        const auto proposal = tuner->next();
        if (!proposal) return;
        event({Event::Kind::kSaid, name, proposal->variant});
        auto judged = judge(name, *proposal, static_cast<int>(i));
        if (!judged) return;
        tuner->told(judged->verified() ? judged->ms() : std::nullopt);
        judged->sample = false;
        take(*std::move(judged));
      }
      return;
    }
  }

  // Programs put together from fragments, where whole ones leave something to gain.
  void with_fragments(const std::vector<policy::Proposer*>& proposers) {
    const bool one_kernel = outcome_.best && outcome_.best->work && outcome_.best->work->steps.size() <= 1;
    if (!go_on() || one_kernel) return;
    const auto whole = [&](const policy::Proposal& proposal) {
      auto judged = judge("fragments", proposal, static_cast<int>(proposers.size()));
      if (!judged) return;
      judged->sample = false;
      take(*std::move(judged));
    };
    const auto to_beat = [&] {
      const std::lock_guard lock(mutex_);
      return outcome_.best && outcome_.best->ms() ? *outcome_.best->ms()
                                                  : std::numeric_limits<double>::infinity();
    };
    search_fragments(bench_, task_, proposers, {.deadline = options_.deadline}, whole, to_beat,
                     [this](const std::string& text) {
                       event({Event::Kind::kSaid, "fragments", text});
                     });
  }

  Outcome finish() {
    outcome_.seconds = watch_.seconds();
    return std::move(outcome_);
  }

 private:
  bool go_on() const { return !interrupted() && !options_.deadline.passed(); }

  Deadline deadline_now() {
    const std::lock_guard lock(mutex_);
    return outcome_.best ? options_.deadline : options_.patience;
  }

  // Nothing where there was no time for a verdict.
  std::optional<Judged> judge(const std::string& name, const policy::Proposal& proposal, int rank) {
    std::unique_lock turn(turn_, std::defer_lock);
    if (bench_.settings().device == replay::Device::kCpu) turn.lock();
    const Deadline deadline = deadline_now();
    std::optional<Judged> judged;
    if (!interrupted() && !deadline.passed()) judged = bench_.judge(task_, name, proposal, deadline);
    if (!judged || judged->broken_off || (interrupted() && !judged->verified())) {
      if (!interrupted()) decline(name, "the time was over before what it proposed was judged");
      return std::nullopt;
    }
    judged->rank = rank;
    return judged;
  }

  // True: there is a reason to ask again, and `attempts` holds it.
  bool once(policy::Proposer& proposer, int rank, int sample, std::vector<policy::Attempt>& attempts) {
    const std::string name(proposer.name());
    event({Event::Kind::kAsked, name, {}});
    const auto answer = bench_.ask(proposer, task_, sample, attempts, options_.deadline);
    if (!answer.ok() || answer->proposals.empty()) {
      if (!interrupted()) decline(name, answer.ok() ? answer->declined : answer.error().message);
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      outcome_.cost += answer->cost;
    }
    bool repair = false;
    for (const auto& proposal : answer->proposals) {
      auto judged = judge(name, proposal, rank);
      if (!judged) return false;
      repair = !judged->verified() && judged->word != "Error";
      if (repair) attempts.push_back({.text = proposal.text, .evidence = judged->evidence});
      take(*std::move(judged));
    }
    return repair;
  }

  void take(Judged judged) {
    const std::lock_guard lock(mutex_);
    event_locked({Event::Kind::kJudged, judged.proposer, {}, &judged});
    if (judged.verified() && (!outcome_.best || better(judged, *outcome_.best))) {
      if (!outcome_.best) outcome_.first_seconds = watch_.seconds();
      outcome_.best = judged;
      event_locked({Event::Kind::kBest, judged.proposer, {}, &judged});
    }
    outcome_.tried.push_back(std::move(judged));
  }

  void decline(const std::string& name, const std::string& why) {
    const std::lock_guard lock(mutex_);
    outcome_.declined.push_back({name, why});
    event_locked({Event::Kind::kDeclined, name, why});
  }

  void event(const Event& event) {
    const std::lock_guard lock(mutex_);
    event_locked(event);
  }
  void event_locked(const Event& event) {
    if (tell_) tell_(event);
  }

  Bench& bench_;
  const Task& task_;
  const SearchOptions& options_;
  const std::function<void(const Event&)>& tell_;
  const Stopwatch watch_;
  std::mutex turn_;   // to judge, on a CPU
  std::mutex mutex_;  // guards what follows
  Outcome outcome_{};
};

}  // namespace

bool better(const Judged& a, const Judged& b) {
  if (a.verified() != b.verified()) return a.verified();
  // A measured time is never compared with a modelled one.
  if (a.times.has_value() != b.times.has_value()) return a.times.has_value();
  if (!a.ms() || !b.ms()) return a.ms().has_value();
  if (a.times) return *a.ms() < *b.ms();
  // A model does not tell such times apart: who was named first wins.
  if (std::abs(*a.ms() - *b.ms()) < kModelTold * *b.ms()) return a.rank < b.rank;
  return *a.ms() < *b.ms();
}

Outcome search(Bench& bench, const Task& task, const std::vector<policy::Proposer*>& proposers,
               const SearchOptions& options, const std::function<void(const Event&)>& tell) {
  Run run(bench, task, options, tell);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < proposers.size(); ++i)
    threads.emplace_back([&run, proposer = proposers[i], i] { run.with(*proposer, static_cast<int>(i)); });
  for (auto& thread : threads) thread.join();
  if (options.tuning) run.tune(proposers);
  if (options.fragments) run.with_fragments(proposers);
  return run.finish();
}

const Judged* furthest(const Outcome& outcome) {
  constexpr std::array<std::string_view, 9> kLadder = {"Error",         "Malformed",  "Untraceable",
                                                       "CompileFailed", "Disallowed", "Unsafe",
                                                       "TimedOut",      "Mismatch",   "Verified"};
  const auto rung = [&](const Judged& judged) {
    return std::find(kLadder.begin(), kLadder.end(), judged.word) - kLadder.begin();
  };
  const auto found = std::max_element(outcome.tried.begin(), outcome.tried.end(),
                                      [&](const Judged& a, const Judged& b) { return rung(a) < rung(b); });
  return found == outcome.tried.end() ? nullptr : &*found;
}

}  // namespace nereid::search
