// Which class of tasks (a level, say) the next ones are drawn from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid::train {

struct CurriculumSettings {
  enum class Kind {
    kLevels,   // DRTriton: one class after the other; the next when held-out pass@1 is high enough
    kMixture,  // TritonRL: fixed shares
    kLearnt,   // shares by how fast each class's rewards change
  };
  Kind kind = Kind::kLevels;
  int64_t classes = 1;
  double promote_at = 0.8;       // kLevels: pass@1
  std::vector<double> shares{};  // kMixture: one a class, not negative, not all zero
  double min_share = 0.1;        // kLearnt: spread over all classes whatever their progress
  double memory = 200;           // kLearnt: rollouts after which an earlier one counts 1 / e
};

// Deterministic: what is drawn follows from the seed, the number of the draw and earlier observations.
class Curriculum {
 public:
  Curriculum(const CurriculumSettings& settings, uint64_t seed);

  // Of each class, what share of the next tasks is drawn from it. They add up to 1.
  std::vector<double> shares() const;
  int64_t draw();
  // A rollout of that class had this reward.
  void rewarded(int64_t of_class, double reward);
  // pass@1 of that class on held-out tasks. True: the class after it is the one to train on now.
  bool looked(int64_t of_class, double pass_at_1);

  // What a checkpoint keeps.
  Json state() const;
  Status restore(const Json& state, const std::string& what);

 private:
  struct Progress {
    double rollouts = 0;
    double slow = 0, fast = 0;  // averages of rewards: of `memory` rollouts, and of a quarter as many
    double change() const;
  };
  CurriculumSettings settings_;
  uint64_t seed_, draws_ = 0;
  int64_t level_ = 0;
  std::vector<Progress> progress_;
};

}  // namespace nereid::train
