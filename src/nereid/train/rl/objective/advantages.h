// Advantages: the worth of each rollout relative to its group.
#pragma once

#include <span>
#include <vector>

#include "nereid/verify/verdict_kind.h"

namespace nereid::train {

enum class Baseline {
  kNormalized,   // (r - mean) / (deviation + 1e-6), the deviation over n - 1: GRPO
  kMean,         // r - mean
  kLeaveOneOut,  // r - mean of the others: r's own baseline does not depend on r
};

// Of one group's rewards. All zeros where they are all the same, and where there is only one.
std::vector<double> advantages(std::span<const double> rewards, Baseline baseline);

// What the judge says of a rollout.
struct Judged {
  bool valid =
      false;  // rule: it is a kernel that does the work (nothing of Malformed, Untraceable, Disallowed)
  bool correct = false;  // execution: Verified
  double speedup = 0;    // t_ref / t, above 0 where it is correct
};

// speedup: 0 where the candidate was not timed; it then counts as fast as the reference.
Judged judged_of(verify::VerdictKind kind, double speedup);

// AutoTriton: rule times execution, 0 or 1.
double binary_reward(const Judged& judged);
// TritonRL: of the code's tokens valid * correct, of the plan's that times min(speedup, limit); theirs is 2.
struct SplitReward {
  double plan = 0, code = 0;
};
SplitReward split_reward(const Judged& judged, double speedup_limit = 2);
// Ours, of a group's plans: a right one's logarithm of its speed minus the mean of the right ones', at most
// log(speedup_limit) up or down, a wrong one's -incorrect_penalty, in the same unit: what is fast and often
// wrong can be weighed against what is slow. All zeros where none is right.
std::vector<double> log_speed_rewards(std::span<const Judged> group, double speedup_limit,
                                      double incorrect_penalty);
// Ours, of a group's answers, plan and code: the same where a right one is faster than the right ones' mean,
// 0 for other right ones, so that nothing slow is pushed away, and -incorrect_penalty for wrong ones where
// one is right: at a price of 0 nothing is learnt but to write what was right.
std::vector<double> best_advantages(std::span<const Judged> group, double speedup_limit,
                                    double incorrect_penalty = 0);
// Ours, of a group's plans where being wrong is the plan's fault and not the code's: log_speed_rewards less
// their mean, so that what is chosen is pushed by what such a choice is worth, wrong answers of it included.
std::vector<double> centred_speed_advantages(std::span<const Judged> group, double speedup_limit,
                                             double incorrect_penalty);

}  // namespace nereid::train
