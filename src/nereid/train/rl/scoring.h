// What becomes of a run's answers: each program that they hold is judged once, and, where verdicts and times
// are had apart, what is Verified is timed once, without other load.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/train/rl/judge.h"

namespace nereid::train {

// Equal where two answers to a task hold the same program: their code (verify/batch/answer.h) has one normal
// form (verify/analysis/normal_form.h). Thoughts, comments and empty lines make no difference.
std::string program_key(const std::string& task, const std::string& answer);

// Where the seconds of timed programs went: traced, compiled (what was not in the cache), prepared (a session
// opened, run once, captured), run for the clock, compared, waited for a turn; and how long they had the GPU,
// of all these.
inline constexpr std::array<std::string_view, 7> kClockParts = {"trace",   "compile", "prepare", "run",
                                                                "compare", "wait",    "gpu"};
using ClockSeconds = std::array<double, kClockParts.size()>;
// Adds a verdict's (verify::Verdict::phases).
void add_phases(ClockSeconds& seconds, const std::map<std::string, double>& phases);

// The judges of a run, and what they said so far.
class Scoring {
 public:
  // Both outlive it. `clock`: a judge that only times (JudgeSettings::time_only), or null.
  // `straggler_timeout_s`: RlSettings::straggler_timeout_s.
  Scoring(AnswerJudge& judge, AnswerJudge* clock, double straggler_timeout_s = 0)
      : judge_(&judge), clock_(clock), straggler_timeout_s_(straggler_timeout_s) {}

 private:
  friend class ScoringRound;
  AnswerJudge* judge_;
  AnswerJudge* clock_;
  double straggler_timeout_s_;
  std::map<std::string, JudgedAnswer> known_;  // by program; no Errors, which say nothing
};

// The answers of one step.
class ScoringRound {
 public:
  enum class Clock { kIfAvailable, kNone };  // kNone: nor is anything too late
  explicit ScoringRound(Scoring& scoring, Clock clock = Clock::kIfAvailable)
      : scoring_(&scoring),
        clock_(clock == Clock::kIfAvailable ? scoring.clock_ : nullptr),
        straggler_timeout_s_(clock == Clock::kIfAvailable ? scoring.straggler_timeout_s_ : 0) {}

  void add(size_t index, const std::string& task, const std::string& answer);
  // Until what was added so far has its verdicts, without times where a clock is to say them.
  Status wait(bool interruptible = true);
  const JudgedAnswer& verdict(size_t index) const { return programs_.at(keys_.at(index)); }  // after wait()
  // Of all indices from 0 to the largest one added, each of which has been. The clock runs meanwhile, and not
  // before: the caller keeps its GPU idle. It times what is Verified while other verdicts are awaited;
  // `on_judged` is called when the last of these is there.
  Result<std::vector<JudgedAnswer>> verdicts(bool interruptible = true,
                                             const std::function<void()>& on_judged = {});

  size_t different() const { return programs_.size(); }  // programs
  size_t judged() const { return judged_; }              // of these, that were not known
  size_t timed() const { return timed_; }
  double timing_seconds() const { return timing_seconds_; }  // of verdicts(), after the last judge's word
  // Summed over programs, of which several are under way at a time: more than timing_seconds().
  const ClockSeconds& clock_seconds() const { return clock_seconds_; }
  // Likewise, of the judge: all of its verdicts, and of these what was compiled for the clock; and its
  // slowest verdict.
  double judged_seconds() const { return judged_seconds_; }
  double compiled_ahead_seconds() const { return compiled_ahead_seconds_; }
  double slowest_seconds() const { return slowest_seconds_; }

 private:
  struct Asked {
    std::string task, answer;
    std::string key;
    size_t number = 0;
    bool answered = false;           // by the judge
    std::optional<size_t> timing{};  // the clock's number
  };
  Status collect(bool interruptible, bool to_clock);
  void accept(Asked& asked, JudgedAnswer verdict);
  void submit_for_timing(Asked& asked);
  // What is said without a clock is no help where there is one.
  bool remembers() const { return clock_ == scoring_->clock_; }

  Scoring* scoring_;
  AnswerJudge* clock_;
  double straggler_timeout_s_;
  std::map<std::string, JudgedAnswer> programs_;  // by key; VerdictKind::kError until its verdict is there
  std::vector<Asked> asked_;                      // in the order in which they were handed in
  std::vector<std::string> keys_;                 // by index
  size_t judged_ = 0, timed_ = 0;
  double timing_seconds_ = 0, judged_seconds_ = 0, compiled_ahead_seconds_ = 0, slowest_seconds_ = 0;
  ClockSeconds clock_seconds_{};
};

}  // namespace nereid::train
