#include "nereid/train/rl/scoring.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/deadline.h"
#include "nereid/base/hash.h"
#include "nereid/verify/analysis/normal_form.h"
#include "nereid/verify/batch/answer.h"

namespace nereid::train {

std::string program_key(const std::string& task, const std::string& answer) {
  const auto read = verify::read_answer(answer);
  const auto* code = std::get_if<verify::Code>(&read);
  // Without code, a verdict says only why there is none.
  const std::string program = code != nullptr ? verify::normal_form(code->source)
                                              : "no code: " + std::get<verify::NoCode>(read).reason;
  return sha256_hex(fmt::format("{}:{}{}", task.size(), task, program));
}

void add_phases(ClockSeconds& seconds, const std::map<std::string, double>& phases) {
  static const std::map<std::string_view, std::string_view> kPartOf = {
      {"reference", "trace"},  {"candidate", "trace"},    {"compile", "compile"},
      {"open", "prepare"},     {"time_trial", "prepare"}, {"time_capture", "prepare"},
      {"time_samples", "run"}, {"time_judge", "compare"}, {"time_needs", "compare"},
      {"wait", "wait"},        {"time_wait", "wait"},     {"gpu", "gpu"}};
  for (const auto& [phase, spent] : phases)
    if (const auto part = kPartOf.find(phase); part != kPartOf.end())
      seconds[static_cast<size_t>(std::ranges::find(kClockParts, part->second) - kClockParts.begin())] +=
          spent;
}

void ScoringRound::add(size_t index, const std::string& task, const std::string& answer) {
  std::string key = program_key(task, answer);
  if (const auto [program, fresh] = programs_.try_emplace(key); fresh) {
    const auto known = scoring_->known_.find(key);
    if (remembers() && known != scoring_->known_.end()) {
      program->second = known->second;
    } else {
      ++judged_;
      asked_.push_back({.task = task,
                        .answer = answer,
                        .key = key,
                        .number = scoring_->judge_->submit({.task = task, .answer = answer})});
    }
  }
  if (keys_.size() <= index) keys_.resize(index + 1);
  keys_[index] = std::move(key);
}

Status ScoringRound::wait(bool interruptible) { return collect(interruptible, /*to_clock=*/false); }

Status ScoringRound::collect(bool interruptible, bool to_clock) {
  std::vector<Asked*> missing;
  for (Asked& asked : asked_)
    if (!asked.answered) missing.push_back(&asked);
  const size_t all = missing.size();
  std::optional<Deadline> patience;  // with the last tenth
  while (!missing.empty()) {
    std::vector<Asked*> still;
    for (Asked* asked : missing) {
      auto verdict = scoring_->judge_->take(asked->number);
      if (!verdict) {
        still.push_back(asked);
        continue;
      }
      accept(*asked, *std::move(verdict));
      if (to_clock) submit_for_timing(*asked);
    }
    missing = std::move(still);
    if (missing.empty()) break;
    if (straggler_timeout_s_ > 0 && !patience && 10 * missing.size() <= all)
      patience = Deadline::after(straggler_timeout_s_);
    if (patience && patience->passed()) {
      std::vector<size_t> late;
      for (const Asked* asked : missing) late.push_back(asked->number);
      scoring_->judge_->give_up(late);
      continue;
    }
    NEREID_TRY_STATUS(scoring_->judge_->wait_for_any(interruptible));
  }
  return ok_status();
}

void ScoringRound::accept(Asked& asked, JudgedAnswer verdict) {
  asked.answered = true;
  judged_seconds_ += verdict.seconds, slowest_seconds_ = std::max(slowest_seconds_, verdict.seconds);
  if (const auto compiled = verdict.phases.find("compile"); compiled != verdict.phases.end())
    compiled_ahead_seconds_ += compiled->second;
  programs_.at(asked.key) = std::move(verdict);
}

void ScoringRound::submit_for_timing(Asked& asked) {
  auto& verdict = programs_.at(asked.key);
  // The round before may have timed it since it was handed in, and taken its trace.
  if (const auto known = scoring_->known_.find(asked.key); remembers() && known != scoring_->known_.end()) {
    verdict = known->second;
    return;
  }
  if (clock_ == nullptr || !verdict.judged.correct || asked.timing) return;
  asked.timing = clock_->submit({.task = asked.task, .answer = asked.answer, .trace = verdict.trace});
  ++timed_;
}

Result<std::vector<JudgedAnswer>> ScoringRound::verdicts(bool interruptible,
                                                         const std::function<void()>& on_judged) {
  for (Asked& asked : asked_)
    if (asked.answered) submit_for_timing(asked);
  NEREID_TRY_STATUS(collect(interruptible, /*to_clock=*/true));
  if (on_judged) on_judged();
  const Stopwatch timing;
  for (const Asked& asked : asked_) {
    if (!asked.timing) continue;
    NEREID_TRY(JudgedAnswer found, clock_->wait(*asked.timing, interruptible));
    add_phases(clock_seconds_, found.phases);
    auto& verdict = programs_.at(asked.key);
    if (found.judged.correct)
      verdict.judged = found.judged, verdict.reference_ms = found.reference_ms;
    else
      verdict = std::move(found);  // the GPU has the last word
  }
  timing_seconds_ = timing.seconds();
  if (remembers())
    for (const Asked& asked : asked_)
      if (const auto& verdict = programs_.at(asked.key); verdict.kind != verify::VerdictKind::kError)
        scoring_->known_.emplace(asked.key, verdict);
  asked_.clear();
  std::vector<JudgedAnswer> found;
  for (const auto& key : keys_) found.push_back(programs_.at(key));
  return found;
}

}  // namespace nereid::train
