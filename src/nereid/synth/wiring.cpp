#include "nereid/synth/wiring.h"

#include "nereid/base/check.h"

namespace nereid::synth {

template <typename Number>
Wirings<Number>::Wirings(const Space& space) : space_(space) {
  for (const Group& group : space.groups()) {
    auto& kinds = starts_.emplace_back();
    auto& types = start_types_.emplace_back();
    kinds.fill(number<Number>(0)), types.fill(number<Number>(0));
    for (const Way& way : group.starts) {
      kinds[way.kind] += number<Number>(1);
      types[static_cast<size_t>(type_after(way, 0))] += number<Number>(1);
    }
    auto& onwards = onwards_.emplace_back();
    auto& joins = joins_.emplace_back();
    for (int type = 0; type < kTypes; ++type) {
      const auto t = static_cast<size_t>(type), kind = static_cast<size_t>(type / kRuns);
      const int run = type % kRuns;
      for (const Way& way : group.onwards[kind])
        if (way.tap <= run) lead(onwards[t], type_after(way, run));
      for (int branch = 0; branch < kKinds; ++branch) {
        Passages passages;
        for (const Way& way : group.joins[kind][static_cast<size_t>(branch)])
          lead(passages, type_after(way, run));
        if (!passages.empty()) joins[t].emplace_back(branch, std::move(passages));
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

// Every passage that step `step` can take, with the count of what came before.
template <typename Number>
template <typename Visit>
void Wirings<Number>::for_each_arrival(size_t step, const Visit& visit) const {
  const auto group = static_cast<size_t>(groups_[step]);
  for (const int type : present_[step - 1])
    for (const Passage& passage : onwards_[group][static_cast<size_t>(type)])
      visit(passage, type, -1, counts_[step - 1][static_cast<size_t>(type)]);
  if (step < 2) return;
  const auto& branches = starts_[static_cast<size_t>(groups_[step - 1])];
  for (const int type : present_[step - 2])
    for (const auto& [branch, passages] : joins_[group][static_cast<size_t>(type)]) {
      if (is_zero(branches[static_cast<size_t>(branch)])) continue;
      const Number before =
          counts_[step - 2][static_cast<size_t>(type)] * branches[static_cast<size_t>(branch)];
      for (const Passage& passage : passages) visit(passage, type, branch, before);
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
  counts_.resize(groups.size()), present_.resize(groups.size());
  for (size_t step = 0; step < groups.size(); ++step) {
    Counts& counts = counts_[step];
    if (step == 0) {
      counts = start_types_[static_cast<size_t>(groups[0])];
    } else {
      counts.fill(number<Number>(0));
      for_each_arrival(step, [&](Passage passage, int, int, const Number& before) {
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
bool Wirings<Number>::draw(Dice& dice, std::vector<DraftStep>& steps) {
  steps.assign(groups_.size(), {});
  int chosen = choose(dice, std::span<const Number>(counts_.back()));
  if (chosen == kUndecided) return false;
  int wanted = chosen;
  const auto draw_start = [&](size_t step, auto fits) {
    const Group& group = space_.groups()[static_cast<size_t>(groups_[step])];
    fitting_.clear();
    for (const Way& way : group.starts)
      if (fits(way)) fitting_.push_back(&way);
    steps[step].way = *fitting_[dice.below(static_cast<uint32_t>(fitting_.size()))];
  };
  for (size_t step = groups_.size(); step-- > 0;) {
    if (step == 0) {
      draw_start(0, [&](const Way& way) { return type_after(way, 0) == wanted; });
      break;
    }
    candidates_.clear(), weights_.clear();
    for_each_arrival(step, [&](Passage passage, int from, int branch, const Number& before) {
      if (passage.to != wanted) return;
      candidates_.push_back({from, branch, passage.ways});
      weights_.push_back(number<Number>(passage.ways) * before);
    });
    chosen = choose(dice, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Candidate candidate = candidates_[static_cast<size_t>(chosen)];
    steps[step].way = way_of(candidate, step, wanted, dice.below(candidate.ways));
    wanted = candidate.from;
    if (candidate.branch < 0) continue;
    --step;
    draw_start(step, [&](const Way& way) { return way.kind == candidate.branch; });
    steps[step].branch = true;
  }
  return true;
}

template class Wirings<double>;
template class Wirings<Natural>;

}  // namespace nereid::synth
