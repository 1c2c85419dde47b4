#include "nereid/synth/sample/sizes.h"

#include <algorithm>

namespace nereid::synth {

template <typename Number>
Sizes<Number>::Sizes(const Space& space) : space_(space) {
  for (int rank = 0; rank <= ops::kMaxRank; ++rank)
    for (int v = 0; v < space.vectors().count(rank); ++v)
      shapes_[static_cast<size_t>(rank)].push_back(number<Number>(space.vectors().shapes(rank, v)));
  for (int id = 0; id < space.form_count(); ++id) {
    Counts& counts = starts_.emplace_back();
    const Edges& edges = space.edges(id, {});
    for (size_t out = 0; out + 1 < edges.first.size(); ++out) {
      Number sum = number<Number>(0);
      for (const Edge& edge : edges.of(static_cast<int>(out))) sum += number<Number>(edge.ways);
      counts.push_back(std::move(sum));
    }
  }
}

template <typename Number>
const typename Sizes<Number>::Counts* Sizes<Number>::through(const Transition& transition,
                                                             const Counts* spine, const Counts* branch,
                                                             Counts& made) const {
  const Edges& edges = space_.edges(transition.form, transition.feed);
  if (edges.identity) return spine;
  const size_t count = edges.first.size() - 1;
  made.assign(count, number<Number>(0));
  for (size_t out = 0; out < count; ++out) {
    Number& sum = made[out];
    for (const Edge& edge : edges.of(static_cast<int>(out))) {
      const Number& before = (*spine)[edge.spine];
      if (branch != nullptr) {
        sum += number<Number>(edge.ways) * before * (*branch)[edge.branch];
      } else {
        sum += number<Number>(edge.ways) * before;
      }
    }
  }
  return &made;
}

template <typename Number>
bool Sizes<Number>::count(const std::vector<SampledStep>& steps) {
  counts_.assign(steps.size(), nullptr);
  while (storage_.size() < steps.size()) storage_.emplace_back();
  for (size_t i = 0; i < steps.size(); ++i) {
    const Transition& transition = steps[i].transition;
    if (transition.feed.a < 0) {
      counts_[i] = &of_start(transition.form);
    } else if (transition.feed.b >= 0) {
      counts_[i] = through(transition, counts_[step_before(steps, i)], counts_[i - 1], storage_[i]);
    } else {
      counts_[i] = through(transition, counts_[i - 1], nullptr, storage_[i]);
    }
    if (counts_[i] != &storage_[i]) continue;
    bool any = false;
    for (const Number& count : *counts_[i]) any |= !is_zero(count);
    if (!any) return false;
  }
  return true;
}

template <typename Number>
ops::Shape Sizes<Number>::draw_shape(Rng& rng, int rank, int vector) const {
  ops::Shape shape;
  shape.rank = static_cast<uint8_t>(rank);
  const Classes& classes = space_.vectors().at(rank, vector);
  for (size_t d = 0; d < shape.rank; ++d) {
    const auto sizes = grid(classes[d]);
    shape.dims[d] = sizes.size() == 1 ? sizes[0] : sizes[rng.below(static_cast<uint32_t>(sizes.size()))];
  }
  return shape;
}

template <typename Number>
void Sizes<Number>::draw_inner(Rng& rng, const Edge& edge, SampledStep& step) const {
  const ops::Form& form = space_.form(step.transition.form);
  for (size_t i = 0; i < form.inner; ++i) {
    const auto sizes = grid((edge.inner >> (3 * i)) & 7);
    step.inner[i] = sizes.size() == 1 ? sizes[0] : sizes[rng.below(static_cast<uint32_t>(sizes.size()))];
  }
}

template <typename Number>
bool Sizes<Number>::draw_start(Rng& rng, int vector, SampledStep& step) {
  if (space_.form(step.transition.form).inner == 0) return true;
  weights_.clear();
  const auto edges = space_.edges(step.transition.form, {}).of(vector);
  for (const Edge& edge : edges) weights_.push_back(number<Number>(edge.ways));
  const int chosen = choose(rng, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  draw_inner(rng, edges[static_cast<size_t>(chosen)], step);
  return true;
}

template <typename Number>
bool Sizes<Number>::draw(Rng& rng, SampledProgram& sampled) {
  const size_t last = sampled.steps.size() - 1, open = open_end(sampled.steps);
  sampled.waiting = {};
  if (open > 0 && !draw_result(rng, sampled.steps, last - open, sampled.waiting)) return false;
  return draw_result(rng, sampled.steps, last, sampled.result);
}

template <typename Number>
bool Sizes<Number>::draw_result(Rng& rng, std::vector<SampledStep>& steps, size_t last, ops::Shape& result) {
  const int rank = rank_of(steps[last].transition.kind);
  weights_.clear();
  const Counts& shapes = shapes_[static_cast<size_t>(rank)];
  for (size_t v = 0; v < shapes.size(); ++v) weights_.push_back((*counts_[last])[v] * shapes[v]);
  int vector = choose(rng, std::span<const Number>(weights_));
  if (vector == kUndecided) return false;
  result = draw_shape(rng, rank, vector);
  return draw_steps(rng, steps, last, vector);
}

// From step `last`, whose result has the classes `vector`, back to where its value began.
template <typename Number>
bool Sizes<Number>::draw_steps(Rng& rng, std::vector<SampledStep>& steps, size_t last, int vector) {
  for (size_t i = last;; i = step_before(steps, i)) {
    SampledStep& step = steps[i];
    const Transition& transition = step.transition;
    if (transition.feed.a < 0) return draw_start(rng, vector, step);
    const Edges& edges = space_.edges(transition.form, transition.feed);
    if (edges.identity) continue;
    const bool joins = transition.feed.b >= 0;
    const auto choices = edges.of(vector);
    size_t chosen = 0;
    if (choices.size() > 1) {
      const Counts& before = *counts_[step_before(steps, i)];
      weights_.clear();
      for (const Edge& edge : choices) {
        Number weight = number<Number>(edge.ways) * before[edge.spine];
        if (joins) weight = weight * (*counts_[i - 1])[edge.branch];
        weights_.push_back(std::move(weight));
      }
      const int picked = choose(rng, std::span<const Number>(weights_));
      if (picked == kUndecided) return false;
      chosen = static_cast<size_t>(picked);
    }
    draw_inner(rng, choices[chosen], step);
    if (joins && !draw_steps(rng, steps, i - 1, choices[chosen].branch)) return false;
    vector = choices[chosen].spine;
  }
}

// The class vectors that each type's value can have after each step, under any wiring: no counts, so sets are
// enough.
bool any_program_exists(const Space& space, const std::vector<int>& groups, bool two) {
  using Set = std::vector<double>;  // 1 or 0 by class vector; empty: none
  const Sizes<double> sizes(space);
  const auto unite = [](Set& set, const Set& other) {
    if (set.empty()) set.assign(other.size(), 0);
    for (size_t v = 0; v < other.size(); ++v)
      if (other[v] != 0) set[v] = 1;
  };
  const auto any = [](const Set& set) { return std::find(set.begin(), set.end(), 1) != set.end(); };
  using Sets = std::array<Set, kTypes>;
  std::vector<Sets> reached(groups.size());
  std::vector<std::array<Sets, kLongestBranch + 1>> branches(groups.size());  // [step][length]
  Set made;
  const auto arrive = [&](Sets& sets, const Transition& transition, int run, const Set& spine,
                          const Set* branch) {
    if (spine.empty() || (branch != nullptr && branch->empty())) return;
    unite(sets[static_cast<size_t>(type_after(transition, run))],
          *sizes.through(transition, &spine, branch, made));
  };
  const auto go_on = [&](const Group& group, const Sets& before, Sets& after) {
    for (int type = 0; type < kTypes; ++type)
      for (const Transition& transition : group.onwards[static_cast<size_t>(type / kRuns)])
        if (transition.tap <= type % kRuns)
          arrive(after, transition, type % kRuns, before[static_cast<size_t>(type)], nullptr);
  };
  const auto join = [&](const Group& group, const Sets& before, const Sets& branch, Sets& after) {
    for (int type = 0; type < kTypes; ++type)
      for (int other = 0; other < kTypes; ++other)
        for (const Transition& transition :
             group.joins[static_cast<size_t>(type / kRuns)][static_cast<size_t>(other / kRuns)])
          arrive(after, transition, type % kRuns, before[static_cast<size_t>(type)],
                 &branch[static_cast<size_t>(other)]);
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = space.groups()[static_cast<size_t>(groups[i])];
    for (const Transition& transition : group.starts)
      unite((i == 0 ? reached[0] : branches[i][1])[static_cast<size_t>(type_after(transition, 0))],
            sizes.of_start(transition.form));
    if (i == 0) continue;
    go_on(group, reached[i - 1], reached[i]);
    for (size_t length = 1; length <= kLongestBranch; ++length) {
      if (length < kLongestBranch) go_on(group, branches[i - 1][length], branches[i][length + 1]);
      if (i <= length) continue;
      join(group, reached[i - 1 - length], branches[i - 1][length], reached[i]);
      for (size_t outer = 1; outer + length + 1 <= kLongestBranch && outer + length < i; ++outer)
        join(group, branches[i - 1 - length][outer], branches[i - 1][length],
             branches[i][outer + length + 1]);
    }
  }
  const auto some = [&](const Sets& sets) { return std::any_of(sets.begin(), sets.end(), any); };
  if (!two) return some(reached.back());
  bool found = false;
  for (size_t length = 1; length <= kLongestBranch && length < groups.size(); ++length)
    found |= some(reached[groups.size() - 1 - length]) && some(branches.back()[length]);
  return found;
}

template class Sizes<double>;
template class Sizes<Natural>;

}  // namespace nereid::synth
