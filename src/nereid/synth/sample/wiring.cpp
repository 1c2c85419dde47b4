#include "nereid/synth/sample/wiring.h"

#include "nereid/base/check.h"

namespace nereid::synth {

template <typename Number>
Wirings<Number>::Wirings(const Space& space) : space_(space) {
  for (const Group& group : space.groups()) {
    Chain& starts = starts_.emplace_back();
    for (const Transition& transition : group.starts)
      add(starts, type_after(transition, 0), number<Number>(1));
    auto& onwards = onwards_.emplace_back();
    auto& joins = joins_.emplace_back();
    joins_any_.push_back(false);
    for (int type = 0; type < kTypes; ++type) {
      const auto t = static_cast<size_t>(type), kind = static_cast<size_t>(type / kRuns);
      const int run = type % kRuns;
      for (const Transition& transition : group.onwards[kind])
        if (transition.tap <= run) lead(onwards[t], type_after(transition, run));
      for (int branch = 0; branch < kKinds; ++branch) {
        Passages passages;
        for (const Transition& transition : group.joins[kind][static_cast<size_t>(branch)])
          lead(passages, type_after(transition, run));
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
  if (!chain.counted) count_chain({last, length, true}, chain);
  return chain;
}

template <typename Number>
void Wirings<Number>::add(Chain& chain, int type, const Number& count) {
  Number& sum = chain.counts[static_cast<size_t>(type)];
  if (is_zero(sum)) chain.present.push_back(type);
  sum += count;
  chain.kinds[static_cast<size_t>(type / kRuns)] += count, chain.total += count;
}

// Of two steps at least.
template <typename Number>
void Wirings<Number>::count_chain(const Made& made, Chain& chain) {
  chain.counted = true;
  for (const int type : chain.present) {  // of the sequence before
    chain.counts[static_cast<size_t>(type)] = number<Number>(0);
    chain.kinds[static_cast<size_t>(type / kRuns)] = number<Number>(0);
  }
  chain.present.clear(), chain.total = number<Number>(0);
  for_each_arrival(made, [&](Passage passage, const Candidate&, const Number& before) {
    add(chain, passage.to, number<Number>(passage.ways) * before);
  });
}

// Every passage that the last step of a value can take, with the count of what came before.
template <typename Number>
template <typename Visit>
void Wirings<Number>::for_each_arrival(const Made& made, const Visit& visit) {
  const auto group = static_cast<size_t>(groups_[made.last]);
  const Chain& before = chain_of({made.last - 1, made.length - 1, made.branch});
  for (const int type : before.present)
    for (const Passage& passage : onwards_[group][static_cast<size_t>(type)])
      visit(passage, Candidate{type, -1, 0, passage.ways}, before.counts[static_cast<size_t>(type)]);
  if (!joins_any_[group]) return;
  for (size_t length = 1; length <= kLongestBranch && length + 1 < made.length; ++length) {
    const Chain& chain = chain_of({made.last - 1, length, true});
    if (chain.present.empty()) continue;
    const Chain& waiting = chain_of({made.last - 1 - length, made.length - 1 - length, made.branch});
    for (const int type : waiting.present)
      for (const auto& [branch, passages] : joins_[group][static_cast<size_t>(type)]) {
        if (is_zero(chain.kinds[static_cast<size_t>(branch)])) continue;
        const Number both =
            waiting.counts[static_cast<size_t>(type)] * chain.kinds[static_cast<size_t>(branch)];
        for (const Passage& passage : passages)
          visit(passage, Candidate{type, branch, length, passage.ways}, both);
      }
  }
}

// The ways that a candidate stands for, one by one.
template <typename Number>
const Transition& Wirings<Number>::way_of(const Candidate& candidate, size_t step, int to,
                                          uint32_t which) const {
  const Group& group = space_.groups()[static_cast<size_t>(groups_[step])];
  const auto kind = static_cast<size_t>(candidate.from / kRuns);
  const int run = candidate.from % kRuns;
  const auto& ways =
      candidate.branch < 0 ? group.onwards[kind] : group.joins[kind][static_cast<size_t>(candidate.branch)];
  for (const Transition& transition : ways)
    if (transition.tap <= run && type_after(transition, run) == to && which-- == 0) return transition;
  NEREID_CHECK(false, "{} ways", candidate.ways);
  return ways.front();
}

template <typename Number>
Number Wirings<Number>::count(const std::vector<int>& groups, bool two) {
  groups_ = groups, two_ = two;
  const size_t count = groups.size();
  spine_.resize(count), branches_.resize(count);
  for (auto& of_step : branches_)
    for (Chain& chain : of_step) chain.counted = false;
  for (size_t step = 1; step < count; ++step) count_chain({step, step + 1, false}, spine_[step]);
  if (!two) return chain_of({count - 1, count, false}).total;
  Number total = number<Number>(0);
  for (size_t length = 1; length <= kLongestBranch && length < count; ++length) total += open(length);
  return total;
}

template <typename Number>
void Wirings<Number>::draw_start(Rng& rng, int type, size_t step, std::vector<SampledStep>& steps) {
  fitting_.clear();
  for (const Transition& transition : space_.groups()[static_cast<size_t>(groups_[step])].starts)
    if (type_after(transition, 0) == type) fitting_.push_back(&transition);
  steps[step].transition = *fitting_[rng.below(static_cast<uint32_t>(fitting_.size()))];
}

// A value's steps, backwards from its last one, whose type is wanted.
template <typename Number>
bool Wirings<Number>::draw_chain(Rng& rng, Made made, int wanted, uint8_t depth,
                                 std::vector<SampledStep>& steps) {
  for (; made.length > 1; --made.length, --made.last) {
    candidates_.clear(), weights_.clear();
    for_each_arrival(made, [&](Passage passage, const Candidate& candidate, const Number& before) {
      if (passage.to != wanted) return;
      candidates_.push_back(candidate);
      weights_.push_back(number<Number>(passage.ways) * before);
    });
    int chosen = choose(rng, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    const Candidate candidate = candidates_[static_cast<size_t>(chosen)];
    SampledStep& step = steps[made.last];
    step.transition = way_of(candidate, made.last, wanted, rng.below(candidate.ways));
    step.depth = depth;
    wanted = candidate.from;
    if (candidate.branch < 0) continue;
    const Made branch{made.last - 1, candidate.length, true};
    weights_.clear();
    for (int run = 0; run < kRuns; ++run)
      weights_.push_back(chain_of(branch).counts[static_cast<size_t>(type_of(candidate.branch, run))]);
    chosen = choose(rng, std::span<const Number>(weights_));
    if (chosen == kUndecided) return false;
    if (!draw_chain(rng, branch, type_of(candidate.branch, chosen), static_cast<uint8_t>(depth + 1), steps))
      return false;
    made.length -= candidate.length, made.last -= candidate.length;
  }
  draw_start(rng, wanted, made.last, steps);
  steps[made.last].depth = depth;
  return true;
}

template <typename Number>
bool Wirings<Number>::draw(Rng& rng, std::vector<SampledStep>& steps) {
  const size_t count = groups_.size();
  steps.assign(count, {});
  if (!two_) return draw_value(rng, {count - 1, count, false}, steps);
  weights_.clear();
  for (size_t length = 1; length <= kLongestBranch && length < count; ++length)
    weights_.push_back(open(length));
  const int chosen = choose(rng, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  const auto length = static_cast<size_t>(chosen) + 1;
  return draw_value(rng, {count - 1 - length, count - length, false}, steps) &&
         draw_value(rng, {count - 1, length, true}, steps);
}

// One that nothing waits for.
template <typename Number>
bool Wirings<Number>::draw_value(Rng& rng, const Made& made, std::vector<SampledStep>& steps) {
  const Chain& chain = chain_of(made);
  weights_.clear();
  for (const int type : chain.present) weights_.push_back(chain.counts[static_cast<size_t>(type)]);
  const int chosen = choose(rng, std::span<const Number>(weights_));
  if (chosen == kUndecided) return false;
  return draw_chain(rng, made, chain.present[static_cast<size_t>(chosen)], made.branch ? 1 : 0, steps);
}

template class Wirings<double>;
template class Wirings<Natural>;

}  // namespace nereid::synth
