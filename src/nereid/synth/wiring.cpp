#include "nereid/synth/wiring.h"

#include "nereid/base/check.h"

namespace nereid::synth {

template <typename Number>
Wirings<Number>::Wirings(const Space& space) : space_(space) {
  for (const Group& group : space.groups()) {
    auto& types = starts_.emplace_back();
    types.fill(number<Number>(0));
    for (const Way& way : group.starts) types[static_cast<size_t>(type_after(way, 0))] += number<Number>(1);
    auto& onwards = onwards_.emplace_back();
    auto& joins = joins_.emplace_back();
    joins_any_.push_back(false);
    for (int type = 0; type < kTypes; ++type) {
      const auto t = static_cast<size_t>(type), kind = static_cast<size_t>(type / kRuns);
      const int run = type % kRuns;
      for (const Way& way : group.onwards[kind])
        if (way.tap <= run) lead(onwards[t], type_after(way, run));
      for (int branch = 0; branch < kKinds; ++branch) {
        Passages passages;
        for (const Way& way : group.joins[kind][static_cast<size_t>(branch)])
          lead(passages, type_after(way, run));
        if (passages.empty()) continue;
        joins[t].emplace_back(branch, std::move(passages));
        joins_any_.back() = true;
      }
    }
  }
}

template <typename Number>
void Wirings<Number>::lead(Passages& passages, int to) {
  for (Passage& passage : passages)
    if (passage.to == to) return static_cast<void>(++passage.ways);
  passages.push_back({static_cast<uint16_t>(to), 1});
}

// The branch of `length` steps of which `last` is the last, whatever it is joined to.
template <typename Number>
const typename Wirings<Number>::Chain& Wirings<Number>::branch_of(size_t last, size_t length) {
  Chain& chain = branches_[last][length - 1];
  if (chain.counted) return chain;
  chain.counted = true;
  const auto group = static_cast<size_t>(groups_[last]);
  if (length == 1) {
    chain.counts = starts_[group];
  } else {
    chain.counts.fill(number<Number>(0));
    const Chain& before = branch_of(last - 1, length - 1);
    for (const int type : before.present)
      for (const Passage& passage : onwards_[group][static_cast<size_t>(type)])
        chain.counts[passage.to] += number<Number>(passage.ways) * before.counts[static_cast<size_t>(type)];
  }
  chain.present.clear(), chain.kinds.fill(number<Number>(0));
  for (int type = 0; type < kTypes; ++type) {
    const Number& count = chain.counts[static_cast<size_t>(type)];
    if (is_zero(count)) continue;
    chain.present.push_back(type);
    chain.kinds[static_cast<size_t>(type / kRuns)] += count;
  }
  return chain;
}

// Every passage that step `step` can take, with the count of what came before.
template <typename Number>
template <typename Visit>
void Wirings<Number>::for_each_arrival(size_t step, const Visit& visit) {
  const auto group = static_cast<size_t>(groups_[step]);
  for (const int type : present_[step - 1])
    for (const Passage& passage : onwards_[group][static_cast<size_t>(type)])
      visit(passage, Candidate{type, -1, 0, passage.ways}, counts_[step - 1][static_cast<size_t>(type)]);
  if (!joins_any_[group]) return;
  for (size_t length = 1; length <= kLongestBranch && length < step; ++length) {
    const size_t before = step - 1 - length;
    const Chain& chain = branch_of(step - 1, length);
    if (chain.present.empty()) continue;
    for (const int type : present_[before])
      for (const auto& [branch, passages] : joins_[group][static_cast<size_t>(type)]) {
        if (is_zero(chain.kinds[static_cast<size_t>(branch)])) continue;
        const Number both =
            counts_[before][static_cast<size_t>(type)] * chain.kinds[static_cast<size_t>(branch)];
        for (const Passage& passage : passages)
          visit(passage, Candidate{type, branch, length, passage.ways}, both);
      }
  }
}

// The ways that a candidate stands for, one by one.
template <typename Number>
const Way& Wirings<Number>::way_of(const Candidate& candidate, size_t step, int to, uint32_t which) const {
  const Group& group = space_.groups()[static_cast<size_t>(groups_[step])];
  const auto kind = static_cast<size_t>(candidate.from / kRuns);
  const int run = candidate.from % kRuns;
  const auto& ways =
      candidate.branch < 0 ? group.onwards[kind] : group.joins[kind][static_cast<size_t>(candidate.branch)];
  for (const Way& way : ways)
    if (way.tap <= run && type_after(way, run) == to && which-- == 0) return way;
  NEREID_CHECK(false, "{} ways", candidate.ways);
  return ways.front();
}

template <typename Number>
Number Wirings<Number>::count(const std::vector<int>& groups) {
  groups_ = groups;
  counts_.resize(groups.size()), present_.resize(groups.size()), branches_.resize(groups.size());
  for (auto& of_step : branches_)
    for (Chain& chain : of_step) chain.counted = false;
  for (size_t step = 0; step < groups.size(); ++step) {
    Counts& counts = counts_[step];
    if (step == 0) {
      counts = starts_[static_cast<size_t>(groups[0])];
    } else {
      counts.fill(number<Number>(0));
      for_each_arrival(step, [&](Passage passage, const Candidate&, const Number& before) {
        counts[passage.to] += number<Number>(passage.ways) * before;
      });
    }
    present_[step].clear();
    for (int type = 0; type < kTypes; ++type)
      if (!is_zero(counts[static_cast<size_t>(type)])) present_[step].push_back(type);
  }
  Number total = number<Number>(0);
  for (const int type : present_.back()) total += counts_.back()[static_cast<size_t>(type)];
  return total;
}

template <typename Number>
void Wirings<Number>::draw_start(Dice& dice, int type, size_t step, std::vector<DraftStep>& steps) {
  fitting_.clear();
  for (const Way& way : space_.groups()[static_cast<size_t>(groups_[step])].starts)
    if (type_after(way, 0) == type) fitting_.push_back(&way);
  steps[step].way = *fitting_[dice.below(static_cast<uint32_t>(fitting_.size()))];
}

template <typename Number>
bool Wirings<Number>::draw_branch(Dice& dice, size_t last, const Candidate& joined,
                                  std::vector<DraftStep>& steps) {
  weights_.clear();
  for (int run = 0; run < kRuns; ++run)
    weights_.push_back(
        branch_of(last, joined.length).counts[static_cast<size_t>(type_of(joined.branch, run))]);
  int chosen = choose(dice, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  int wanted = type_of(joined.branch, chosen);
  for (size_t length = joined.length;; --length, --last) {
    steps[last].branch = true;
    if (length == 1) break;
    candidates_.clear(), weights_.clear();
    const Chain& before = branch_of(last - 1, length - 1);
    for (const int type : before.present)
      for (const Passage& passage : onwards_[static_cast<size_t>(groups_[last])][static_cast<size_t>(type)]) {
        if (passage.to != wanted) continue;
        candidates_.push_back({type, -1, 0, passage.ways});
        weights_.push_back(number<Number>(passage.ways) * before.counts[static_cast<size_t>(type)]);
      }
    chosen = choose(dice, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Candidate candidate = candidates_[static_cast<size_t>(chosen)];
    steps[last].way = way_of(candidate, last, wanted, dice.below(candidate.ways));
    wanted = candidate.from;
  }
  draw_start(dice, wanted, last, steps);
  return true;
}

template <typename Number>
bool Wirings<Number>::draw(Dice& dice, std::vector<DraftStep>& steps) {
  steps.assign(groups_.size(), {});
  int chosen = choose(dice, std::span<const Number>(counts_.back()));
  if (chosen == kUndecided) return false;
  int wanted = chosen;
  for (size_t step = groups_.size() - 1; step > 0;) {
    candidates_.clear(), weights_.clear();
    for_each_arrival(step, [&](Passage passage, const Candidate& candidate, const Number& before) {
      if (passage.to != wanted) return;
      candidates_.push_back(candidate);
      weights_.push_back(number<Number>(passage.ways) * before);
    });
    chosen = choose(dice, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Candidate candidate = candidates_[static_cast<size_t>(chosen)];
    steps[step].way = way_of(candidate, step, wanted, dice.below(candidate.ways));
    wanted = candidate.from;
    --step;
    if (candidate.branch < 0) continue;
    if (!draw_branch(dice, step, candidate, steps)) return false;
    step -= candidate.length;
  }
  draw_start(dice, wanted, 0, steps);
  return true;
}

template class Wirings<double>;
template class Wirings<Natural>;

}  // namespace nereid::synth
