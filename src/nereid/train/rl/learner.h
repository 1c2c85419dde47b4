// What one step's rollouts do to the model: scores, the objective, and the optimizer's steps.
#pragma once

#include "nereid/train/metrics.h"
#include "nereid/train/rl/all_gather.h"
#include "nereid/train/rl/objective/importance.h"
#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/rl/sft_mix.h"
#include "nereid/train/sft/trainer.h"

namespace nereid::train {

struct Learnt {
  Figures figures;
  bool no_number = false;  // loss or gradient is no finite number: nothing was applied
  double loss = 0, gradient_norm = 0;
};

class Learner {
 public:
  // All outlive it. `sft_mix`: what is learnt from in every update besides; or null.
  Learner(const RlRun& run, Trainer& trainer, Ranks& ranks, SftMix* sft_mix)
      : run_(&run), trainer_(&trainer), ranks_(&ranks), sft_mix_(sft_mix) {}

  // rl.updates optimizer steps at this share of the learning rate; says entropy and KL in step.figures. The
  // objective is that of all ranks' rollouts, evaluated by each; a rank's gradients are those of its own.
  Result<Learnt> learn(const PrefetchedRollouts& written, StepRollouts& step, double share);

 private:
  struct Scored;
  Scored arrange(const PrefetchedRollouts& written, const StepRollouts& step) const;
  // Where log-probabilities change nothing but importance weights: one forward for scores and gradients.
  Result<Learnt> learn_at_once(const PrefetchedRollouts& written, StepRollouts& step, Scored& scored,
                               double share);
  Result<Learnt> learn_in_updates(const PrefetchedRollouts& written, StepRollouts& step, Scored& scored,
                                  double share);
  Status apply(double share, const ObjectiveValue& value, const Trainer::Figures& found, Learnt& learnt);
  Result<Supervised> supervised() const;  // of the next update
  Result<double> fill_scores(Scored& scored) const;
  Status record_mismatch(const Mismatch& mine, Learnt& learnt) const;

  const RlRun* run_;
  Trainer* trainer_;
  Ranks* ranks_;
  SftMix* sft_mix_;
};

}  // namespace nereid::train
