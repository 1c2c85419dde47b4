#include "nereid/synth/whole.h"

#include <algorithm>

namespace nereid::synth {
namespace {

constexpr size_t kMostArrivals = 8'000'000;  // arrivals, of 24 bytes

template <typename WaySets>
void gather(WaySets& sets, const Way& way, int from, int branch,
            const std::vector<const ops::Operator*>& members) {
  for (auto& set : sets) {
    if (set.way.form != way.form || !(set.way.feed == way.feed) || set.way.tap != way.tap ||
        set.from != from || set.branch != branch || set.way.kind != way.kind)
      continue;
    set.members.insert(set.members.end(), members.begin(), members.end());
    return;
  }
  sets.push_back({way, from, branch, members});
}

}  // namespace

template <typename Number>
Programs<Number>::Programs(const Space& space, int level) : space_(space), level_(level), sizes_(space) {
  gather_way_sets();
  counts_.resize(static_cast<size_t>(level) + 1);
  for (int step = 1; step <= level; ++step) count_step(step);
  results_.resize(kTypes);
  for (int type = 0; type < kTypes; ++type) {
    const Counts& last = counts_.back()[static_cast<size_t>(type)];
    auto& results = results_[static_cast<size_t>(type)];
    const int rank = rank_of(type / kRuns);
    for (size_t v = 0; v < last.size(); ++v)
      results.add(last[v] * number<Number>(space.vectors().shapes(rank, static_cast<int>(v))));
    totals_.add(results.total());
  }
}

template <typename Number>
void Programs<Number>::gather_way_sets() {
  for (const Group& group : space_.groups()) {
    for (const Way& way : group.starts) gather(starts_, way, -1, -1, group.members);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto k = static_cast<size_t>(kind);
      for (const Way& way : group.onwards[k]) gather(arriving_[way.kind], way, kind, -1, group.members);
      for (int branch = 0; branch < kKinds; ++branch)
        for (const Way& way : group.joins[k][static_cast<size_t>(branch)])
          gather(arriving_[way.kind], way, kind, branch, group.members);
    }
  }
  for (const WaySet& set : starts_)
    add(branches_[set.way.kind], sizes_.of_start(set.way.form), set.members.size());
}

template <typename Number>
void Programs<Number>::add(Counts& sums, const Counts& counts, size_t times) const {
  if (sums.empty()) sums.assign(counts.size(), number<Number>(0));
  for (size_t v = 0; v < counts.size(); ++v) sums[v] += counts[v] * number<Number>(times);
}

template <typename Number>
void Programs<Number>::count_step(int step) {
  auto& now = counts_[static_cast<size_t>(step)];
  if (step == 1) {
    for (const WaySet& set : starts_)
      add(now[static_cast<size_t>(type_after(set.way, 0))], sizes_.of_start(set.way.form),
          set.members.size());
    return;
  }
  Counts made;
  for (const auto& sets : arriving_)
    for (const WaySet& set : sets) {
      const bool joins = set.branch >= 0;
      if (joins && (step < 3 || branches_[static_cast<size_t>(set.branch)].empty())) continue;
      for (int run = set.way.tap; run < kRuns; ++run) {
        const Counts& before = counts(step - (joins ? 2 : 1), set.from, run);
        if (before.empty()) continue;
        const Counts* branch = joins ? &branches_[static_cast<size_t>(set.branch)] : nullptr;
        const Counts* result = sizes_.through(set.way, &before, branch, made);
        add(now[static_cast<size_t>(type_after(set.way, run))], *result, set.members.size());
      }
    }
}

template <typename Number>
Number Programs<Number>::weight(const WaySet& set, const Edge& edge, const Counts& before) const {
  Number ways = number<Number>(edge.ways) * before[edge.spine];
  if (set.branch >= 0) ways = ways * branches_[static_cast<size_t>(set.branch)][edge.branch];
  return ways;
}

template <typename Number>
const typename Programs<Number>::Arrivals& Programs<Number>::arrivals_at(int step, int type, int vector) {
  const uint64_t key = (static_cast<uint64_t>(step) * kTypes + static_cast<uint64_t>(type)) << 16 |
                       static_cast<uint64_t>(vector);
  const auto known = arrivals_.find(key);
  if (known != arrivals_.end()) return known->second;
  if (remembered_ > kMostArrivals) arrivals_.clear(), remembered_ = 0;
  Arrivals& made = arrivals_[key];
  for (const WaySet& set : arriving_[static_cast<size_t>(type / kRuns)]) {
    if (set.branch >= 0 && (step < 3 || branches_[static_cast<size_t>(set.branch)].empty())) continue;
    for (int run = set.way.tap; run < kRuns; ++run) {
      if (type_after(set.way, run) != type) continue;
      const Counts& before = counts(step - (set.branch >= 0 ? 2 : 1), set.from, run);
      if (before.empty()) continue;
      Number sum = number<Number>(0);
      for (const Edge& edge : space_.edges(set.way.form, set.way.feed).of(vector))
        sum += weight(set, edge, before);
      if (is_zero(sum)) continue;
      made.from.push_back({&set, run});
      made.choices.add(sum * number<Number>(set.members.size()));
    }
  }
  remembered_ += made.from.size();
  return made;
}

// A step of fresh inputs whose result is of the type (or, of a branch, of the kind) and has these classes.
template <typename Number>
bool Programs<Number>::draw_start(Dice& dice, int wanted, bool whole_type, int vector, DraftStep& step) {
  std::vector<const WaySet*> sets;
  weights_.clear();
  for (const WaySet& set : starts_) {
    if ((whole_type ? type_after(set.way, 0) : set.way.kind) != wanted) continue;
    sets.push_back(&set);
    weights_.push_back(sizes_.of_start(set.way.form)[static_cast<size_t>(vector)] *
                       number<Number>(set.members.size()));
  }
  const int chosen = choose(dice, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  const WaySet& set = *sets[static_cast<size_t>(chosen)];
  step.way = set.way;
  step.op = set.members[dice.below(static_cast<uint32_t>(set.members.size()))];
  return sizes_.draw_start(dice, vector, step);
}

template <typename Number>
bool Programs<Number>::draw(Dice& dice, Draft& draft) {
  draft.steps.assign(static_cast<size_t>(level_), {});
  int type = totals_.choose(dice);
  if (type == kUndecided) return false;
  int vector = results_[static_cast<size_t>(type)].choose(dice);
  if (vector == kUndecided) return false;
  draft.result = sizes_.draw_shape(dice, rank_of(type / kRuns), vector);
  for (int number_of_steps = level_; number_of_steps > 1;) {
    DraftStep& step = draft.steps[static_cast<size_t>(number_of_steps - 1)];
    const Arrivals& arrivals = arrivals_at(number_of_steps, type, vector);
    int chosen = arrivals.choices.choose(dice);
    if (chosen == kUndecided) return false;
    const auto [set, run] = arrivals.from[static_cast<size_t>(chosen)];
    step.way = set->way;
    step.op = set->members[dice.below(static_cast<uint32_t>(set->members.size()))];
    const bool joins = set->branch >= 0;
    const Counts& before = counts(number_of_steps - (joins ? 2 : 1), set->from, run);
    const auto edges = space_.edges(step.way.form, step.way.feed).of(vector);
    weights_.clear();
    for (const Edge& edge : edges) weights_.push_back(weight(*set, edge, before));
    chosen = choose(dice, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Edge& edge = edges[static_cast<size_t>(chosen)];
    sizes_.draw_born(dice, edge, step);
    type = type_of(set->from, run), vector = edge.spine;
    --number_of_steps;
    if (!joins) continue;
    DraftStep& branch = draft.steps[static_cast<size_t>(number_of_steps - 1)];
    branch.branch = true;
    if (!draw_start(dice, set->branch, false, edge.branch, branch)) return false;
    --number_of_steps;
  }
  return draw_start(dice, type, true, vector, draft.steps[0]);
}

template class Programs<double>;
template class Programs<Natural>;

}  // namespace nereid::synth
