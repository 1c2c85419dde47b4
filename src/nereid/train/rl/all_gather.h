// One step's rollouts with their verdicts, of all ranks: every rank comes to the same.
#pragma once

#include <optional>

#include "nereid/train/ranks/ranks.h"
#include "nereid/train/rl/judge.h"
#include "nereid/train/rl/objective/collapse_watch.h"
#include "nereid/train/rl/objective/objective.h"
#include "nereid/train/rl/prefetched_rollouts.h"
#include "nereid/train/rollout_log.h"

namespace nereid::train {

struct ScoredRollout {
  size_t prompt = 0, turn = 0, sample = 0;
  verify::VerdictKind kind = verify::VerdictKind::kError;
  std::string rule{};
  Judged judged{};
  size_t length = 0, plan_tokens = 0;  // tokens
  bool cut_off = false;
  std::optional<size_t> own{};  // which of this rank's answers it is
  SplitReward later{};          // what its return has of later turns
};

// Of one turn of all conversations.
struct TurnFigures {
  double answers = 0, verified = 0;
};

struct StepRollouts {
  // By prompts, turns, samples; without conversations in which an answer could not be judged.
  std::vector<ScoredRollout> rollouts;
  std::vector<size_t> groups{0};     // where those of each prompt and turn begin, and the end
  std::vector<TurnFigures> turns{};  // from the first turn on
  RolloutFigures figures{};          // entropy and KL are the learner's to say
  int64_t unjudged = 0;
  double tokens = 0;
};

// verdicts: of written.answers, in their order.
Result<StepRollouts> all_gather_rollouts(Ranks& ranks, const PrefetchedRollouts& written,
                                         const std::vector<JudgedAnswer>& verdicts,
                                         const ObjectiveSettings& objective, double turn_discount);

// What the run keeps of this rank's answers.
std::vector<RolloutRecord> records_of(const PrefetchedRollouts& written,
                                      const std::vector<JudgedAnswer>& verdicts, const StepRollouts& step,
                                      const ObjectiveSettings& objective);

}  // namespace nereid::train
