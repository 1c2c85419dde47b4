#include "nereid/train/rl/learner.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace nereid::train {

// The rollouts of all ranks as the objective wants them, and this rank's as rows of tokens.
struct Learner::Scored {
  std::vector<Rollout> rollouts;
  std::vector<size_t> lengths;
  std::vector<std::vector<size_t>> of_rank;  // which of the rollouts are each rank's
  PackedAnswers packed;                      // this rank's, in that order
};

Result<Learnt> Learner::learn(const PrefetchedRollouts& written, StepRollouts& step, double share) {
  if (step.rollouts.empty()) return Learnt{};
  const RlSettings& rl = run_->rl;
  Scored scored = arrange(written, step);
  // At the first update ratios are 1, and only drpo asks what the log-probabilities are.
  const bool at_once = rl.updates == 1 && rl.objective.kind != ObjectiveSettings::Kind::kDrpo;
  return at_once ? learn_at_once(written, step, scored, share)
                 : learn_in_updates(written, step, scored, share);
}

Result<Learnt> Learner::learn_at_once(const PrefetchedRollouts& written, StepRollouts& step, Scored& scored,
                                      double share) {
  for (size_t i = 0; i < scored.rollouts.size(); ++i) {
    scored.rollouts[i].log_probabilities.resize(scored.lengths[i], 0);
    scored.rollouts[i].old_log_probabilities.resize(scored.lengths[i], 0);
  }
  const ObjectiveValue value = evaluate_objective(run_->rl.objective, scored.rollouts, step.groups);
  const auto& own = scored.of_rank[static_cast<size_t>(ranks_->rank())];
  Mismatch mismatch;
  std::vector<double> entropy = {0, 0};  // sum, tokens
  const auto gradient_of = [&](size_t batch, const Trainer::Scores& scores) {
    at::Tensor gradient = at::zeros_like(scores.log_probabilities);
    for (size_t k = 0; k < own.size(); ++k) {
      const auto& place = scored.packed.places[k];
      if (place.batch != batch) continue;
      const auto& wanted = value.gradients[own[k]];
      const float* found = scores.log_probabilities.const_data_ptr<float>() + place.first;
      const float* spread = scores.entropies.const_data_ptr<float>() + place.first;
      const auto weights = truncated_weights({found, wanted.size()},
                                             written.answers[*step.rollouts[own[k]].own].engine_logprobs,
                                             run_->rl.importance_limit, mismatch);
      float* target = gradient.data_ptr<float>() + place.first;
      for (size_t t = 0; t < wanted.size(); ++t) target[t] = wanted[t] * weights[t], entropy[0] += spread[t];
      entropy[1] += static_cast<double>(wanted.size());
    }
    return gradient;
  };
  NEREID_TRY(const auto besides, supervised());
  NEREID_TRY(const auto found, trainer_->gather_from(scored.packed.batches, gradient_of, besides));
  NEREID_TRY_STATUS(ranks_->sum(entropy));
  step.figures.entropy = entropy[1] > 0 ? entropy[0] / entropy[1] : 0;
  step.figures.kl = value.kl;
  Learnt learnt;
  NEREID_TRY_STATUS(record_mismatch(mismatch, learnt));
  NEREID_TRY_STATUS(apply(share, value, found, learnt));
  return learnt;
}

Result<Learnt> Learner::learn_in_updates(const PrefetchedRollouts& written, StepRollouts& step,
                                         Scored& scored, double share) {
  Learnt learnt;
  const auto& own = scored.of_rank[static_cast<size_t>(ranks_->rank())];
  for (int64_t update = 0; update < run_->rl.updates && !learnt.no_number; ++update) {
    NEREID_TRY(const double entropy, fill_scores(scored));
    if (update == 0) {
      step.figures.entropy = entropy;
      Mismatch mismatch;
      for (Rollout& rollout : scored.rollouts) rollout.old_log_probabilities = rollout.log_probabilities;
      for (const size_t i : own)
        scored.rollouts[i].weights = truncated_weights(scored.rollouts[i].log_probabilities,
                                                       written.answers[*step.rollouts[i].own].engine_logprobs,
                                                       run_->rl.importance_limit, mismatch);
      NEREID_TRY_STATUS(record_mismatch(mismatch, learnt));
    }
    const ObjectiveValue value = evaluate_objective(run_->rl.objective, scored.rollouts, step.groups);
    std::vector<at::Tensor> gradients;
    for (const Batch& batch : scored.packed.batches)
      gradients.push_back(at::zeros({std::ssize(batch.tokens)}, at::kFloat));
    for (size_t k = 0; k < own.size(); ++k) {
      const auto& place = scored.packed.places[k];
      std::ranges::copy(value.gradients[own[k]], gradients[place.batch].data_ptr<float>() + place.first);
    }
    NEREID_TRY(const auto besides, supervised());
    NEREID_TRY(const auto found, trainer_->gather_from(scored.packed.batches, gradients, besides));
    step.figures.kl = value.kl;
    NEREID_TRY_STATUS(apply(share, value, found, learnt));
  }
  return learnt;
}

Result<Supervised> Learner::supervised() const {
  if (sft_mix_ == nullptr) return Supervised{};
  NEREID_TRY(auto data, sft_mix_->next());
  return Supervised{.data = std::move(data), .weight = sft_mix_->weight()};
}

// Where loss and gradient are numbers; the figures are those of the last update.
Status Learner::apply(double share, const ObjectiveValue& value, const Trainer::Figures& found,
                      Learnt& learnt) {
  learnt.loss = value.loss, learnt.gradient_norm = found.gradient_norm;
  learnt.no_number = !std::isfinite(value.loss) || !std::isfinite(found.gradient_norm);
  if (learnt.no_number) return ok_status();
  NEREID_TRY_STATUS(trainer_->apply(found.gradient_norm, share));
  Figures fresh = {{"loss", value.loss},
                   {"gradient_norm", found.gradient_norm},
                   {"learning_rate", run_->run.optimizer.learning_rate * share},
                   {"clipped_share", value.clipped_share}};
  if (sft_mix_ != nullptr) fresh.emplace_back("sft_mix_loss", found.loss / sft_mix_->weight());
  std::erase_if(learnt.figures, [&](const auto& figure) {
    return std::ranges::count(fresh, figure.first, &Figures::value_type::first) > 0;
  });
  learnt.figures.insert(learnt.figures.begin(), fresh.begin(), fresh.end());
  return ok_status();
}

Status Learner::record_mismatch(const Mismatch& mine, Learnt& learnt) const {
  NEREID_TRY(const auto everybody, gather_numbers<Mismatch>(*ranks_, {mine}));
  Mismatch all;
  for (const Mismatch& one : everybody) all.add(one);
  learnt.figures.insert(learnt.figures.end(), {{"mismatch/mean", all.mean()},
                                               {"mismatch/most", all.most},
                                               {"mismatch/truncated", all.truncated_share()}});
  return ok_status();
}

Learner::Scored Learner::arrange(const PrefetchedRollouts& written, const StepRollouts& step) const {
  Scored scored;
  scored.of_rank.resize(static_cast<size_t>(ranks_->count()));
  std::vector<WrittenAnswer> own;
  for (size_t i = 0; i < step.rollouts.size(); ++i) {
    const ScoredRollout& rollout = step.rollouts[i];
    scored.rollouts.push_back({.log_probabilities = {},
                               .old_log_probabilities = {},
                               .plan_tokens = rollout.plan_tokens,
                               .judged = rollout.judged,
                               .later = rollout.later});
    scored.lengths.push_back(rollout.length);
    scored.of_rank[rollout.prompt % scored.of_rank.size()].push_back(i);
    if (rollout.own) own.push_back(written.answers[*rollout.own].tokens);
  }
  scored.packed = pack_answers(own, run_->run.data.sequence_length, run_->run.data.micro_batch_size);
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
