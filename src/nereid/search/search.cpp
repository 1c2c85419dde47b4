#include "nereid/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "nereid/base/program/interrupt.h"
#include "nereid/search/fall_back.h"
#include "nereid/search/subgraphs/subgraph_search.h"

namespace nereid::search {
namespace {

constexpr double kModelledMargin = 0.03;  // relative; modelled times that differ by less are equal

Deadline sooner(Deadline deadline, double seconds) {
  if (deadline.when() == Deadline::never().when()) return deadline;
  const std::chrono::duration<double> left = deadline.when() - Clock::now();
  return Deadline::after(left.count() - seconds, deadline.owner());
}

// One search under way; its members are shared by a thread for each proposer.
class Run {
 public:
  Run(Evaluator& evaluator, const Task& task, const SearchOptions& options,
      const std::function<void(const Event&)>& on_event)
      : evaluator_(evaluator), task_(task), options_(options), on_event_(on_event), end_(options.deadline) {}

  void with(proposers::Proposer& proposer, int rank) {
    const int samples = proposer.samples() ? std::max(1, options_.samples) : 1;
    const std::string name(proposer.name());
    std::vector<int> numbers(static_cast<size_t>(samples));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (!go_on()) return;
    const bool drawn = proposer.samples() && !proposer.paid();
    if (options_.subgraphs && too_large_for(proposer)) {
      const std::lock_guard lock(mutex_);
      if (drawn) drawn_.push_back({.proposer = &proposer, .rank = rank, .waits = true, .first = 0});
      return;
    }
    // Where one right answer is enough, most often the first is one.
    const bool speculates = options_.speculate && proposer.speculates();
    if (options_.first_is_enough && samples > 1 && !speculates) {
      judge_samples(proposer, rank, {0});
      numbers.erase(numbers.begin());
    }
    const bool waits = options_.first_is_enough && drawn && options_.subgraphs && samples > 1 && !speculates;
    if (go_on() && !waits) judge_samples(proposer, rank, numbers);
    if (!drawn || samples < 2) return;
    const std::lock_guard lock(mutex_);
    drawn_.push_back({.proposer = &proposer, .rank = rank, .waits = waits, .first = 1});
  }

  // The program's own text again: what waited (round 0), or bolder samples. Each round once.
  void again(int round) {
    for (; round_ <= round && go_on(); ++round_)
      for (const auto& [proposer, rank, waits, first] : drawn_) {
        if (!go_on() || fault_of(outcome_) != nullptr || (round_ == 0 && !waits)) continue;
        std::vector<int> numbers;
        for (int n = round_ == 0 ? first : 1; n < std::max(1, options_.samples); ++n) numbers.push_back(n);
        if (!numbers.empty()) judge_samples(*proposer, rank, numbers, round_);
      }
  }

  void judge_samples(proposers::Proposer& proposer, int rank, const std::vector<int>& numbers,
                     int round = 0) {
    const std::string name(proposer.name());
    const int samples = static_cast<int>(numbers.size());
    event({Event::Kind::kRequested, name, {}});
    const bool speculates = options_.speculate && proposer.speculates() && round == 0;
    // The first is written and judged before others take the machine from it.
    const bool apart = samples > 1 && numbers.front() == 0 && !speculates;
    auto answers = evaluator_.request_samples(proposer, task_, apart ? std::vector{0} : numbers, round,
                                              speculates, &enough_);
    Expectation expectation;
    for (int sample = 0; sample < samples && go_on(); ++sample) {
      if (apart && sample == 1)
        answers = evaluator_.request_samples(proposer, task_, {numbers.begin() + 1, numbers.end()}, round,
                                             false, &enough_);
      const auto next = answers->next(end());
      if (enough_) return;
      if (!next.ok()) return decline(name, next.error());
      if (!*next) return;
      std::vector<proposers::Attempt> attempts;
      auto judged = judge_all(name, (*next)->answer, rank, attempts, round == 0);
      if (!judged && round == 0 && options_.fallbacks)
        judged = fall_back_from(proposer, (*next)->answer, rank);
      if (judged && round > 0) return;
      const int repairs = proposer.repairs() && round == 0 ? options_.repairs : 0;
      for (int repair = 0; repair < repairs && !attempts.empty() && !judged && go_on(); ++repair) {
        event({Event::Kind::kRequested, name, {}});
        const size_t before = attempts.size();
        const auto answer = evaluator_.ask(proposer, task_, (*next)->sample, attempts, end(), &enough_);
        if (enough_) return;
        if (!answer.ok()) {
          decline(name, answer.error());
          break;
        }
        judged = judge_all(name, *answer, rank, attempts);
        if (attempts.size() == before) break;
      }
      if (judged && !options_.every_sample && enough(expectation, *judged)) {
        if (sample + 1 < samples)
          event({Event::Kind::kSaid, name,
                 fmt::format("{} of {} samples of {} are enough", sample + 1, samples, name)});
        return;
      }
    }
  }

  // The proposer's first proposal in its other ways, where that failed.
  std::optional<Judged> fall_back_from(proposers::Proposer& proposer, const proposers::Answer& answer,
                                       int rank) {
    const std::string name(proposer.name());
    if (answer.proposals.empty() || !go_on()) return std::nullopt;
    std::optional<Judged> failed;
    {
      const std::lock_guard lock(mutex_);
      for (const Judged& tried : outcome_.tried)
        if (tried.proposer == name && tried.source == answer.proposals.front().text) failed = tried;
    }
    if (!failed || !failure_of(*failed)) return std::nullopt;
    auto ways = proposer.fallback({.name = task_.name, .source = task_.source, .trace = &task_.trace});
    if (!ways) return std::nullopt;
    auto judged =
        fall_back(*ways, *failed, [&](const proposers::Proposal& proposal) -> std::optional<Judged> {
          if (!go_on()) return std::nullopt;
          event({Event::Kind::kSaid, name, proposal.variant});
          auto other = judge(name, proposal, rank);
          if (!other) return std::nullopt;
          other->sample = false;
          take(*other);
          return other;
        });
    if (!judged) return std::nullopt;
    const std::lock_guard lock(mutex_);
    fallbacks_[{name, judged->variant}] = std::move(ways);
    return judged;
  }

  // The winner's proposer tunes its parameters, where a clock measures what is better.
  void tune(const std::vector<proposers::Proposer*>& proposers) {
    if (!outcome_.best || !outcome_.best->times) return;
    const auto other_way = fallbacks_.find({outcome_.best->proposer, outcome_.best->variant});
    if (!outcome_.best->variant.empty() && other_way == fallbacks_.end()) return;
    for (size_t i = 0; i < proposers.size(); ++i) {
      const std::string name(proposers[i]->name());
      if (name != outcome_.best->proposer) continue;
      const double ms = *outcome_.best->ms();
      const auto tuner =
          other_way != fallbacks_.end()
              ? other_way->second->tuner(ms)
              : proposers[i]->tuner({.name = task_.name, .source = task_.source, .trace = &task_.trace}, ms);
      while (tuner && go_on()) {
        const auto proposal = tuner->next();
        if (!proposal) return;
        event({Event::Kind::kSaid, name, proposal->variant});
        auto judged = judge(name, *proposal, static_cast<int>(i));
        if (!judged) return;
        tuner->observe(judged->verified() ? judged->ms() : std::nullopt);
        judged->sample = false;
        take(*std::move(judged));
      }
      return;
    }
  }

  // Programs put together from subgraphs, where whole ones leave something to gain.
  void with_subgraphs(const std::vector<proposers::Proposer*>& proposers) {
    if (!go_on() || !subgraphs_may_gain(outcome_.best, proposers)) return;
    if (outcome_.best) round_ = kRounds + 1;  // what is drawn more boldly is for who has nothing
    const auto whole = [&](const proposers::Proposal& proposal) {
      auto judged = judge("subgraphs", proposal, static_cast<int>(proposers.size()));
      if (!judged) return;
      judged->sample = false;
      take(*std::move(judged));
    };
    const auto to_beat = [&] {
      const std::lock_guard lock(mutex_);
      return outcome_.best && outcome_.best->ms() ? *outcome_.best->ms()
                                                  : std::numeric_limits<double>::infinity();
    };
    const auto findings = search_subgraphs(
        evaluator_, task_, proposers,
        {.deadline = end(),
         .first_is_enough = options_.first_is_enough,
         .samples = options_.samples,
         .timeline = task_.timeline,
         .request_whole = [this](int round) { again(round); }},
        whole, to_beat, [this](const std::string& text) { event({Event::Kind::kSaid, "subgraphs", text}); });
    outcome_.cost += findings.cost;
    if (findings.fault) decline(findings.faulty, *findings.fault);
    if (!findings.fault && to_beat() == std::numeric_limits<double>::infinity())
      again(kRounds);  // a program that was not cut
  }

  Outcome finish() {
    outcome_.seconds = watch_.seconds();
    outcome_.all_tried = !interrupted() && !end_.passed() && !enough_was_found();
    outcome_.spans = task_.timeline->spans();
    for (Span& span : outcome_.spans) span.from -= began_, span.to -= began_;
    return std::move(outcome_);
  }

 private:
  bool go_on() {
    if (interrupted() || end().passed()) return false;
    const std::lock_guard lock(mutex_);
    return !enough_was_found();
  }

  // With mutex_ held.
  bool enough_was_found() const {
    if (!outcome_.best) return false;
    return options_.first_is_enough ||
           (options_.target_speedup > 0 && speedup_of(task_, *outcome_.best) >= options_.target_speedup);
  }

  Deadline end() {
    const std::lock_guard lock(mutex_);
    return end_;
  }

  // Nothing where there was no time for a verdict.
  std::optional<Judged> judge(const std::string& name, const proposers::Proposal& proposal, int rank) {
    std::unique_lock turn(turn_, std::defer_lock);
    if (evaluator_.settings().device == replay::Device::kCpu) turn.lock();
    const Deadline deadline = end();
    std::optional<Judged> judged;
    if (!interrupted() && !deadline.passed()) judged = evaluator_.judge(task_, name, proposal, deadline);
    if (!judged || judged->broken_off || (interrupted() && !judged->verified())) {
      if (!interrupted()) decline(name, "the time budget ended before its proposals were judged");
      return std::nullopt;
    }
    judged->rank = rank;
    if (judged->verified()) {  // before the next one has its turn: that one has the budget alone
      const std::lock_guard lock(mutex_);
      if (options_.to_finish) end_ = sooner(options_.deadline, options_.to_finish(*judged));
    }
    return judged;
  }

  // Such a program is cut anyway, and each subgraph is what the proposer is better at.
  bool too_large_for(const proposers::Proposer& proposer) {
    if (proposer.max_operators() == INT_MAX) return false;
    const auto partitioner = Partitioner::cut(task_);
    if (!partitioner.ok() || static_cast<int>(partitioner->nodes()) <= proposer.max_operators()) return false;
    event({Event::Kind::kSaid, std::string(proposer.name()),
           fmt::format("{} gets subgraphs alone: the program has {} operators", proposer.name(),
                       partitioner->nodes())});
    return true;
  }

  // The best verified one of an answer's proposals. Adds to `attempts` what may be repaired.
  std::optional<Judged> judge_all(const std::string& name, const proposers::Answer& answer, int rank,
                                  std::vector<proposers::Attempt>& attempts, bool sample = true) {
    if (answer.proposals.empty()) decline(name, answer.declined);
    {
      const std::lock_guard lock(mutex_);
      outcome_.cost += answer.cost;
    }
    std::optional<Judged> best;
    for (const auto& proposal : answer.proposals) {
      auto judged = judge(name, proposal, rank);
      if (!judged) return best;
      if (!judged->verified() && judged->kind != verify::VerdictKind::kError)
        attempts.push_back({.text = proposal.text, .evidence = feedback_of(*judged)});
      judged->sample = sample;
      if (judged->verified() && (!best || better(*judged, *best))) best = *judged;
      take(*std::move(judged));
    }
    return best;
  }

  bool enough(Expectation& expectation, const Judged& judged) {
    const std::lock_guard lock(mutex_);
    const Judged* others = nullptr;
    for (const auto& other : outcome_.tried)
      if (other.verified() && other.proposer != judged.proposer &&
          (others == nullptr || better(other, *others)))
        others = &other;
    return expectation.enough(judged, others);
  }

  void take(Judged judged) {
    const std::lock_guard lock(mutex_);
    event_locked({Event::Kind::kJudged, judged.proposer, {}, &judged});
    if (judged.verified() && (!outcome_.best || better(judged, *outcome_.best))) {
      if (!outcome_.best) outcome_.first_seconds = watch_.seconds();
      outcome_.best = judged, outcome_.best_seconds = watch_.seconds();
      event_locked({Event::Kind::kBest, judged.proposer, {}, &judged});
      enough_ = enough_was_found();
    }
    outcome_.tried.push_back(std::move(judged));
  }

  void decline(const std::string& name, const std::string& why, std::optional<Blame> fault = {}) {
    const std::lock_guard lock(mutex_);
    outcome_.declined.push_back({name, why, fault});
    event_locked({Event::Kind::kDeclined, name, why});
  }
  // What did not come in time is no fault.
  void decline(const std::string& name, const Error& error) {
    if (!interrupted()) decline(name, error.message, end().passed() ? std::optional<Blame>() : error.blame);
  }

  void event(const Event& event) {
    const std::lock_guard lock(mutex_);
    event_locked(event);
  }
  void event_locked(const Event& event) {
    if (on_event_) on_event_(event);
  }

  Evaluator& evaluator_;
  const Task& task_;
  const SearchOptions& options_;
  const std::function<void(const Event&)>& on_event_;
  const Stopwatch watch_;
  const double began_ = task_.timeline->now();  // of the task's timeline
  struct Drawn {
    proposers::Proposer* proposer;
    int rank;
    bool waits;  // for subgraphs, with all samples from the first of these on
    int first;
  };
  std::vector<Drawn> drawn_{};        // who may be asked again; one thread's after `with`
  int round_ = 0;                     // the next of `again`
  std::atomic<bool> enough_ = false;  // nothing else is wanted
  std::mutex turn_;                   // to judge, on a CPU
  std::mutex mutex_;                  // guards what follows
  // By proposer and variant: what found it where the first way failed.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<proposers::Fallback>> fallbacks_{};
  Outcome outcome_{};
  Deadline end_;  // the deadline, less what the caller needs for the latest verified result
};

}  // namespace

bool Expectation::enough(const Judged& sample, const Judged* others) {
  if (!sample.verified() || !sample.ms()) return false;
  const double ms = *sample.ms(), factor = sample.times ? 1 : 1 - kModelledMargin;
  const bool known = verified_ > 0;
  const double mean = known ? sum_ / verified_ : 0;
  sum_ += ms, ++verified_;
  if (others == nullptr) return known && ms < mean * factor;
  return others->times.has_value() == sample.times.has_value() && others->ms() && ms < *others->ms() * factor;
}

double speedup_of(const Task& task, const Judged& judged) {
  if (judged.times) return judged.times->speedup;
  return judged.work && judged.work->ms > 0 ? task.work.ms / judged.work->ms : 0;
}

bool better(const Judged& a, const Judged& b) {
  if (a.verified() != b.verified()) return a.verified();
  // A measured time is never compared with a modelled one.
  if (a.times.has_value() != b.times.has_value()) return a.times.has_value();
  if (!a.ms() || !b.ms()) return a.ms().has_value();
  if (a.times) return *a.ms() < *b.ms();
  // The cost model does not distinguish such times: the proposer that was named first wins.
  if (std::abs(*a.ms() - *b.ms()) < kModelledMargin * *b.ms()) return a.rank < b.rank;
  return *a.ms() < *b.ms();
}

bool subgraphs_may_gain(const std::optional<Judged>& best,
                        const std::vector<proposers::Proposer*>& proposers) {
  if (!best) return true;
  if (best->work && best->work->steps.size() <= 1) return false;
  const auto fuses = [](const proposers::Proposer* proposer) { return proposer->fuses_whole_programs(); };
  return best->times.has_value() || !std::ranges::all_of(proposers, fuses);
}

Outcome search(Evaluator& evaluator, const Task& task, const std::vector<proposers::Proposer*>& proposers,
               const SearchOptions& options, const std::function<void(const Event&)>& on_event) {
  Run run(evaluator, task, options, on_event);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < proposers.size(); ++i)
    threads.emplace_back([&run, proposer = proposers[i], i] { run.with(*proposer, static_cast<int>(i)); });
  for (auto& thread : threads) thread.join();
  if (options.tuning) run.tune(proposers);
  if (options.subgraphs) run.with_subgraphs(proposers);
  return run.finish();
}

const Declined* fault_of(const Outcome& outcome) {
  const auto found = std::find_if(outcome.declined.begin(), outcome.declined.end(),
                                  [](const Declined& declined) { return declined.fault.has_value(); });
  return found == outcome.declined.end() ? nullptr : &*found;
}

const Judged* furthest(const Outcome& outcome) {
  using Kind = verify::VerdictKind;
  constexpr std::array kWorstFirst = {Kind::kError,         Kind::kMalformed,  Kind::kUntraceable,
                                      Kind::kCompileFailed, Kind::kDisallowed, Kind::kUnsafe,
                                      Kind::kTimedOut,      Kind::kMismatch,   Kind::kVerified};
  const auto rank = [&](const Judged& judged) {
    return std::ranges::find(kWorstFirst, judged.kind) - kWorstFirst.begin();
  };
  const auto found = std::max_element(outcome.tried.begin(), outcome.tried.end(),
                                      [&](const Judged& a, const Judged& b) { return rank(a) < rank(b); });
  return found == outcome.tried.end() ? nullptr : &*found;
}

}  // namespace nereid::search
