// Whether a policy is about to stop exploring, or to find a way around the task: what is looked at each step,
// and when to speak up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nereid/train/metrics.h"

namespace nereid::train {

// Of one step's rollouts.
struct RolloutFigures {
  double entropy = 0;  // nats a token
  double length = 0;   // tokens a rollout
  double kl = 0;
  double reward = 0;                // mean
  double groups_alike = 0;          // share of groups whose rewards are all the same: nothing to learn from
  double cut_off = 0;               // share of rollouts that ended at the most tokens
  std::optional<double> speedup{};  // geometric mean over the Verified
  std::map<std::string, int64_t> verdicts{};  // "Verified": 12, ...
  std::map<std::string, int64_t> rules{};     // of `Disallowed`: which rule fired, how often
};

struct CollapseLimits {
  double entropy_share = 0.2;  // of the first steps' entropy: less is an alarm
  double length_factor = 3;    // longer or shorter by that than in the first steps
  double kl = 0.5;
  double alike = 0.9;        // groups that teach nothing
  double one_rule = 0.3;     // of all rollouts, by one rule: a way around the task is being learnt
  int64_t first_steps = 10;  // that later ones are compared with
};

class CollapseWatch {
 public:
  explicit CollapseWatch(const CollapseLimits& limits = {}) : limits_(limits) {}
  // What is wrong now, a sentence each. Averages over about ten steps are compared, so one step's chance says
  // nothing.
  std::vector<std::string> look(const RolloutFigures& figures);
  // For the run's metrics: "entropy", "length", "kl", "reward", "verdict/Verified" (a share), "rule/NAME" (a
  // share), ...
  static Figures metrics(const RolloutFigures& figures);

 private:
  struct Average {
    double value = 0;
    int64_t steps = 0;
    void add(double next);
  };
  CollapseLimits limits_;
  int64_t steps_ = 0;
  double first_entropy_ = 0, first_length_ = 0;
  Average entropy_, length_, kl_, alike_;
  std::map<std::string, Average> rules_;
};

}  // namespace nereid::train
