#include "nereid/train/reinforce/learner.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "nereid/train/rl/importance.h"

namespace nereid::train {

// The rollouts of all ranks as the objective wants them, and this rank's as rows of tokens.
struct Learner::Scored {
  std::vector<Rollout> rollouts;
  std::vector<size_t> lengths;
  std::vector<std::vector<size_t>> of_rank;  // which of the rollouts are each rank's
  PackedAnswers packed;                      // this rank's, in that order
};

Result<Learnt> Learner::learn(const WrittenStep& written, Gathered& gathered, int64_t step) {
  Learnt learnt;
  if (gathered.told.empty()) return learnt;
  const RlSettings& rl = run_->rl;
  const double share = learning_rate_share(run_->run.schedule, step);
  NEREID_TRY(Scored scored, score(written, gathered));
  const auto& own = scored.of_rank[static_cast<size_t>(ranks_->rank())];
  for (int64_t update = 0; update < rl.updates; ++update) {
    NEREID_TRY(const double entropy, fill_scores(scored));
    if (update == 0) {
      gathered.figures.entropy = entropy;
      Mismatch mismatch;
      for (Rollout& rollout : scored.rollouts) rollout.old_log_probabilities = rollout.log_probabilities;
      for (const size_t i : own)
        scored.rollouts[i].weights = truncated_weights(scored.rollouts[i].log_probabilities,
                                                       written.answers[*gathered.told[i].own].engine_logprobs,
                                                       rl.importance_limit, mismatch);
      NEREID_TRY(const auto everybody, gather_numbers<Mismatch>(*ranks_, {mismatch}));
      Mismatch all;
      for (const Mismatch& one : everybody) all.add(one);
      learnt.figures = {{"mismatch/mean", all.mean()},
                        {"mismatch/most", all.most},
                        {"mismatch/truncated", all.truncated_share()}};
    }
    const ObjectiveValue value = evaluate_objective(rl.objective, scored.rollouts, gathered.groups);
    std::vector<at::Tensor> gradients;
    for (const Batch& batch : scored.packed.batches)
      gradients.push_back(at::zeros({std::ssize(batch.tokens)}, at::kFloat));
    for (size_t k = 0; k < own.size(); ++k) {
      const auto& place = scored.packed.places[k];
      std::ranges::copy(value.gradients[own[k]], gradients[place.batch].data_ptr<float>() + place.first);
    }
    NEREID_TRY(const auto found, trainer_->gather_from(scored.packed.batches, gradients));
    learnt.loss = value.loss, learnt.gradient_norm = found.gradient_norm;
    learnt.no_number = !std::isfinite(value.loss) || !std::isfinite(found.gradient_norm);
    if (learnt.no_number) return learnt;
    NEREID_TRY_STATUS(trainer_->apply(found.gradient_norm, share));
    gathered.figures.kl = value.kl;
    if (update + 1 == rl.updates)
      learnt.figures.insert(learnt.figures.begin(),
                            {{"loss", value.loss},
                             {"gradient_norm", found.gradient_norm},
                             {"learning_rate", run_->run.optimizer.learning_rate * share},
                             {"clipped_share", value.clipped_share}});
  }
  return learnt;
}

Result<Learner::Scored> Learner::score(const WrittenStep& written, const Gathered& gathered) const {
  Scored scored;
  scored.of_rank.resize(static_cast<size_t>(ranks_->count()));
  std::vector<WrittenAnswer> own;
  for (size_t i = 0; i < gathered.told.size(); ++i) {
    const ToldRollout& told = gathered.told[i];
    scored.rollouts.push_back({.log_probabilities = {},
                               .old_log_probabilities = {},
                               .plan_tokens = told.plan_tokens,
                               .judged = told.judged});
    scored.lengths.push_back(told.length);
    scored.of_rank[told.prompt % scored.of_rank.size()].push_back(i);
    if (told.own) own.push_back(written.answers[*told.own].tokens);
  }
  scored.packed = pack_answers(own, run_->run.data.sequence_length, run_->run.data.rows_at_once);
  return scored;
}

// Every rollout's log-probabilities under the weights as they are, of whatever rank; the mean entropy of a
// token.
Result<double> Learner::fill_scores(Scored& scored) const {
  std::vector<Trainer::Scores> found;
  for (const Batch& batch : scored.packed.batches) found.push_back(trainer_->score(batch));
  std::vector<float> mine;
  std::vector<double> entropy = {0, 0};  // sum, tokens
  const auto& own = scored.of_rank[static_cast<size_t>(ranks_->rank())];
  for (size_t k = 0; k < own.size(); ++k) {
    const auto& place = scored.packed.places[k];
    const size_t length = scored.lengths[own[k]];
    const float* scores = found[place.batch].log_probabilities.const_data_ptr<float>() + place.first;
    const float* spread = found[place.batch].entropies.const_data_ptr<float>() + place.first;
    mine.insert(mine.end(), scores, scores + length);
    for (size_t t = 0; t < length; ++t) entropy[0] += spread[t];
    entropy[1] += static_cast<double>(length);
  }
  NEREID_TRY(const auto all, gather_numbers<float>(*ranks_, mine));
  auto at = all.begin();
  for (const auto& of_rank : scored.of_rank)
    for (const size_t i : of_rank) {
      const auto length = static_cast<std::ptrdiff_t>(scored.lengths[i]);
      if (all.end() - at < length)
        return our_error("expected {} log-probabilities of a rollout, got {}", length, all.end() - at);
      scored.rollouts[i].log_probabilities.assign(at, at + length);
      at += length;
    }
  NEREID_TRY_STATUS(ranks_->sum(entropy));
  return entropy[1] > 0 ? entropy[0] / entropy[1] : 0;
}

}  // namespace nereid::train
