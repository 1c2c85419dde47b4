// From a verdict to the reward that a trainer gets, by the arithmetic of `nereid train rl`
// (train/rl/objective).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/train/rl/objective/objective.h"

namespace nereid::serve {

enum class Objective {
  kBinary,        // plan and code earn 1 where the answer is Verified, else 0: `grpo`
  kHierarchical,  // the code earns that, the plan that times the speed-up: `hrd`
  kUniform,       // both earn what the plan does under kHierarchical: `hrd` with `uniform_reward`
  kDecoupled,     // the code earns 1, the plan the logarithm of its speed-up, and the reward is their sum
};
std::optional<Objective> objective_from_string(std::string_view name);
std::string_view to_string(Objective objective);

struct RewardSettings {
  Objective objective = Objective::kHierarchical;
  double speedup_limit = 2;  // a speed-up counts no more, and in a logarithm no less than its inverse
};

// `reward` and `speedup_limit` of an object, else the defaults.
Result<RewardSettings> read_reward(const Json& item, const std::string& where,
                                   const RewardSettings& defaults);

// What the judge says of an answer; nothing of an Error.
std::optional<train::Judged> judged_in(const Json& verdict);

// The object that every route answers with: reward, scores, reward_components, spans, status, verdict,
// receipt. A verdict that is an Error has no reward.
Json reward_answer(Json verdict, const RewardSettings& settings, Json receipt);
// Of a fault: no reward, and `blame` says whose it is: kInput where the task or the request is at fault.
// `verdict` may be null.
Json error_answer(const std::string& message, Blame blame, Json verdict = nullptr, Json receipt = nullptr);
// The HTTP status of such an answer: 200, 422 where the input is to blame, 503 where we are.
int status_of(const Json& answer);

// Advantages of each group's answers as `[rl]` of a run file would have them: {"objective": "grpo" | "hrd" |
// "best", "baseline", "speedup_limit", "incorrect_penalty", "plan_incorrect_penalty", "uniform_reward"}. An
// answer without a reward is none of its group.
Result<train::ObjectiveSettings> read_objective(const Json& json, const std::string& where);
Json group_advantages(const std::vector<std::optional<train::Judged>>& answers,
                      const std::vector<std::string>& groups, const train::ObjectiveSettings& settings);

}  // namespace nereid::serve
