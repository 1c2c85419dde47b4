#include "nereid/synth/wiring.h"

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
  }
}

// Every way that step `step` can continue or join, with the types it takes and the count of what came before.
template <typename Number>
template <typename Visit>
void Wirings<Number>::for_each_arrival(size_t step, const Visit& visit) const {
  const Group& group = space_.groups()[static_cast<size_t>(groups_[step])];
  for (const int type : present_[step - 1]) {
    const int run = type % kRuns;
    for (const Way& way : group.onwards[static_cast<size_t>(type / kRuns)])
      if (way.tap <= run)
        visit(way, type, -1, type_after(way, run), counts_[step - 1][static_cast<size_t>(type)]);
  }
  if (step < 2) return;
  const auto& branches = starts_[static_cast<size_t>(groups_[step - 1])];
  for (const int type : present_[step - 2]) {
    const auto& joins = group.joins[static_cast<size_t>(type / kRuns)];
    for (size_t branch = 0; branch < kKinds; ++branch) {
      if (joins[branch].empty() || is_zero(branches[branch])) continue;
      const Number before = counts_[step - 2][static_cast<size_t>(type)] * branches[branch];
      for (const Way& way : joins[branch])
        visit(way, type, static_cast<int>(branch), type_after(way, type % kRuns), before);
    }
  }
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
      for_each_arrival(step, [&](const Way&, int, int, int type, const Number& before) {
        counts[static_cast<size_t>(type)] += before;
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
    candidates_.clear();
    for (const Way& way : group.starts)
      if (fits(way)) candidates_.push_back({&way, -1, -1});
    steps[step].way = *candidates_[dice.below(static_cast<uint32_t>(candidates_.size()))].way;
  };
  for (size_t step = groups_.size(); step-- > 0;) {
    if (step == 0) {
      draw_start(0, [&](const Way& way) { return type_after(way, 0) == wanted; });
      break;
    }
    candidates_.clear(), weights_.clear();
    for_each_arrival(step, [&](const Way& way, int from, int branch, int type, const Number& before) {
      if (type == wanted) candidates_.push_back({&way, from, branch}), weights_.push_back(before);
    });
    chosen = choose(dice, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Candidate candidate = candidates_[static_cast<size_t>(chosen)];
    steps[step].way = *candidate.way;
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
