#include "nereid/synth/sample/uniform_program_sampler.h"

#include <algorithm>

namespace nereid::synth {
namespace {

constexpr size_t kMaxArrivals = 8'000'000;  // arrivals, of 24 bytes

template <typename TransitionSets>
void gather(TransitionSets& sets, const Transition& transition, int from, int branch,
            const std::vector<const ops::Operator*>& members) {
  for (auto& set : sets) {
    if (set.transition.form != transition.form || !(set.transition.feed == transition.feed) ||
        set.transition.tap != transition.tap || set.from != from || set.branch != branch ||
        set.transition.kind != transition.kind)
      continue;
    set.members.insert(set.members.end(), members.begin(), members.end());
    return;
  }
  sets.push_back({transition, from, branch, members});
}

}  // namespace

template <typename Number>
UniformProgramSampler<Number>::UniformProgramSampler(const Space& space, int length)
    : space_(space), length_(length), sizes_(space) {
  gather_way_sets();
  counts_.resize(static_cast<size_t>(length) + 1);
  branches_.resize(kLongestBranch + 1), branch_kinds_.resize(kLongestBranch + 1);
  for (int steps = 1; steps <= std::min(length - 1, kLongestBranch); ++steps) {
    count_steps(steps, true);
    for (int type = 0; type < kTypes; ++type)
      if (const Counts& counts = made_in(steps, true)[static_cast<size_t>(type)]; !counts.empty())
        add(branch_kinds_[static_cast<size_t>(steps)][static_cast<size_t>(type / kRuns)], counts, 1);
  }
  for (int steps = 1; steps <= length; ++steps) count_steps(steps, false);
  results_.emplace_back(results_of(length, false), Results{});
  for (int open = 1; open <= std::min(length - 1, kLongestBranch); ++open) {
    const auto& [waiting, branch] =
        results_.emplace_back(results_of(length - open, false), results_of(open, true));
    opens_.add(waiting.types.total() * branch.types.total());
  }
}

template <typename Number>
typename UniformProgramSampler<Number>::Results UniformProgramSampler<Number>::results_of(int steps,
                                                                                          bool branch) const {
  Results made;
  made.vectors.resize(kTypes);
  for (int type = 0; type < kTypes; ++type) {
    const Counts& counts = made_in(steps, branch)[static_cast<size_t>(type)];
    auto& vectors = made.vectors[static_cast<size_t>(type)];
    const int rank = rank_of(type / kRuns);
    for (size_t v = 0; v < counts.size(); ++v)
      vectors.add(counts[v] * number<Number>(space_.vectors().shapes(rank, static_cast<int>(v))));
    made.types.add(vectors.total());
  }
  return made;
}

template <typename Number>
void UniformProgramSampler<Number>::gather_way_sets() {
  for (const Group& group : space_.groups()) {
    for (const Transition& transition : group.starts) gather(starts_, transition, -1, -1, group.members);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto k = static_cast<size_t>(kind);
      for (const Transition& transition : group.onwards[k])
        gather(arriving_[transition.kind], transition, kind, -1, group.members);
      for (int branch = 0; branch < kKinds; ++branch)
        for (const Transition& transition : group.joins[k][static_cast<size_t>(branch)])
          gather(arriving_[transition.kind], transition, kind, branch, group.members);
    }
  }
}

template <typename Number>
void UniformProgramSampler<Number>::add(Counts& sums, const Counts& counts, size_t times) const {
  if (sums.empty()) sums.assign(counts.size(), number<Number>(0));
  for (size_t v = 0; v < counts.size(); ++v) sums[v] += counts[v] * number<Number>(times);
}

// Visits how a value can come of its last step: what that is, and the counts before it.
template <typename Number>
template <typename Visit>
void UniformProgramSampler<Number>::for_each_arrival(int steps, bool branch,
                                                     const std::vector<TransitionSet>& sets,
                                                     const Visit& visit) const {
  for (const TransitionSet& set : sets) {
    const bool joins = set.branch >= 0;
    for (int length = joins ? 1 : 0; length <= (joins ? kLongestBranch : 0) && steps - 1 - length > 0;
         ++length) {
      if (joins && branch_kinds_[static_cast<size_t>(length)][static_cast<size_t>(set.branch)].empty())
        continue;
      for (int run = set.transition.tap; run < kRuns; ++run) {
        const Counts& before =
            made_in(steps - 1 - length, branch)[static_cast<size_t>(type_of(set.from, run))];
        if (!before.empty()) visit(Arrival{&set, run, length}, before);
      }
    }
  }
}

template <typename Number>
void UniformProgramSampler<Number>::count_steps(int steps, bool branch) {
  auto& now = (branch ? branches_ : counts_)[static_cast<size_t>(steps)];
  if (steps == 1) {
    for (const TransitionSet& set : starts_)
      add(now[static_cast<size_t>(type_after(set.transition, 0))], sizes_.of_start(set.transition.form),
          set.members.size());
    return;
  }
  Counts made;
  for (const auto& sets : arriving_)
    for_each_arrival(steps, branch, sets, [&](const Arrival& arrival, const Counts& before) {
      const TransitionSet& set = *arrival.set;
      const Counts* other =
          set.branch < 0
              ? nullptr
              : &branch_kinds_[static_cast<size_t>(arrival.length)][static_cast<size_t>(set.branch)];
      add(now[static_cast<size_t>(type_after(set.transition, arrival.run))],
          *sizes_.through(set.transition, &before, other, made), set.members.size());
    });
}

template <typename Number>
Number UniformProgramSampler<Number>::weight(const Arrival& arrival, const Edge& edge,
                                             const Counts& before) const {
  Number ways = number<Number>(edge.ways) * before[edge.spine];
  if (arrival.length > 0)
    ways = ways * branch_kinds_[static_cast<size_t>(arrival.length)][static_cast<size_t>(arrival.set->branch)]
                               [edge.branch];
  return ways;
}

template <typename Number>
const typename UniformProgramSampler<Number>::Arrivals& UniformProgramSampler<Number>::arrivals_at(
    int steps, bool branch, int type, int vector) {
  const uint64_t key =
      ((static_cast<uint64_t>(steps) * 2 + (branch ? 1 : 0)) * kTypes + static_cast<uint64_t>(type)) << 16 |
      static_cast<uint64_t>(vector);
  const auto known = arrivals_.find(key);
  if (known != arrivals_.end()) return known->second;
  if (remembered_ > kMaxArrivals) arrivals_.clear(), remembered_ = 0;
  Arrivals& made = arrivals_[key];
  for_each_arrival(
      steps, branch, arriving_[static_cast<size_t>(type / kRuns)],
      [&](const Arrival& arrival, const Counts& before) {
        const TransitionSet& set = *arrival.set;
        if (type_after(set.transition, arrival.run) != type) return;
        Number sum = number<Number>(0);
        for (const Edge& edge : space_.edges(set.transition.form, set.transition.feed).of(vector))
          sum += weight(arrival, edge, before);
        if (is_zero(sum)) return;
        made.from.push_back(arrival);
        made.choices.add(sum * number<Number>(set.members.size()));
      });
  remembered_ += made.from.size();
  return made;
}

// A step of fresh inputs whose result is of the type and has these classes.
template <typename Number>
bool UniformProgramSampler<Number>::draw_start(Rng& rng, int type, int vector, SampledStep& step) {
  std::vector<const TransitionSet*> sets;
  weights_.clear();
  for (const TransitionSet& set : starts_) {
    if (type_after(set.transition, 0) != type) continue;
    sets.push_back(&set);
    weights_.push_back(sizes_.of_start(set.transition.form)[static_cast<size_t>(vector)] *
                       number<Number>(set.members.size()));
  }
  const int chosen = choose(rng, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  const TransitionSet& set = *sets[static_cast<size_t>(chosen)];
  step.transition = set.transition;
  step.op = set.members[rng.below(static_cast<uint32_t>(set.members.size()))];
  return sizes_.draw_start(rng, vector, step);
}

// A value's steps, from `first` on, backwards.
template <typename Number>
bool UniformProgramSampler<Number>::draw_steps(Rng& rng, int first, int steps, bool branch, int type,
                                               int vector, SampledProgram& sampled) {
  const auto at = [&](int step) -> SampledStep& { return sampled.steps[static_cast<size_t>(step)]; };
  if (branch)
    for (int step = first; step < first + steps; ++step) ++at(step).depth;
  while (steps > 1) {
    SampledStep& step = at(first + steps - 1);
    const Arrivals& arrivals = arrivals_at(steps, branch, type, vector);
    int chosen = arrivals.choices.choose(rng);
    if (chosen == kUndecided) return false;
    const Arrival arrival = arrivals.from[static_cast<size_t>(chosen)];
    const TransitionSet& set = *arrival.set;
    step.transition = set.transition;
    step.op = set.members[rng.below(static_cast<uint32_t>(set.members.size()))];
    const int before = steps - 1 - arrival.length;
    const Counts& counts = made_in(before, branch)[static_cast<size_t>(type_of(set.from, arrival.run))];
    const auto edges = space_.edges(step.transition.form, step.transition.feed).of(vector);
    weights_.clear();
    for (const Edge& edge : edges) weights_.push_back(weight(arrival, edge, counts));
    chosen = choose(rng, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Edge& edge = edges[static_cast<size_t>(chosen)];
    sizes_.draw_inner(rng, edge, step);
    if (arrival.length > 0) {
      weights_.clear();
      for (int run = 0; run < kRuns; ++run) {
        const Counts& other = made_in(arrival.length, true)[static_cast<size_t>(type_of(set.branch, run))];
        weights_.push_back(other.empty() ? number<Number>(0) : other[edge.branch]);
      }
      chosen = choose(rng, std::span<const Number>(weights_));
      if (chosen == kUndecided) return false;
      if (!draw_steps(rng, first + before, arrival.length, true, type_of(set.branch, chosen), edge.branch,
                      sampled))
        return false;
    }
    type = type_of(set.from, arrival.run), vector = edge.spine, steps = before;
  }
  return draw_start(rng, type, vector, at(first));
}

template <typename Number>
bool UniformProgramSampler<Number>::draw(Rng& rng, bool two, SampledProgram& sampled) {
  sampled.steps.assign(static_cast<size_t>(length_), {});
  sampled.waiting = {};
  if (!two) return draw_value(rng, 0, length_, false, results_[0].first, sampled.result, sampled);
  const int chosen = opens_.choose(rng);
  if (chosen == kUndecided) return false;
  const int open = chosen + 1;
  const auto& [first, branch] = results_[static_cast<size_t>(open)];
  return draw_value(rng, 0, length_ - open, false, first, sampled.waiting, sampled) &&
         draw_value(rng, length_ - open, open, true, branch, sampled.result, sampled);
}

template <typename Number>
bool UniformProgramSampler<Number>::draw_value(Rng& rng, int first, int steps, bool branch,
                                               const Results& results, ops::Shape& shape,
                                               SampledProgram& sampled) {
  const int type = results.types.choose(rng);
  if (type == kUndecided) return false;
  const int vector = results.vectors[static_cast<size_t>(type)].choose(rng);
  if (vector == kUndecided) return false;
  shape = sizes_.draw_shape(rng, rank_of(type / kRuns), vector);
  return draw_steps(rng, first, steps, branch, type, vector, sampled);
}

template class UniformProgramSampler<double>;
template class UniformProgramSampler<Natural>;

}  // namespace nereid::synth
