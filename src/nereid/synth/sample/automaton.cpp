#include "nereid/synth/sample/automaton.h"

namespace nereid::synth {
namespace {

template <typename Types, typename Visit>
void for_each(const Types& types, const Visit& visit) {
  for (size_t type = types._Find_first(); type < types.size(); type = types._Find_next(type)) visit(type);
}

}  // namespace
template <typename Number>
Automaton<Number>::Automaton(const Space& space, int length) : space_(space), length_(length) {
  for (const Group& group : space.groups()) {
    Types& starts = starts_.emplace_back();
    for (const Transition& transition : group.starts)
      starts.set(static_cast<size_t>(type_after(transition, 0)));
    auto& onwards = onwards_.emplace_back();
    std::array<std::array<Types, kKinds>, kTypes> joins;
    bool any = false;
    for (int type = 0; type < kTypes; ++type) {
      const auto t = static_cast<size_t>(type), kind = static_cast<size_t>(type / kRuns);
      for (const Transition& transition : group.onwards[kind])
        if (transition.tap <= type % kRuns)
          onwards[t].set(static_cast<size_t>(type_after(transition, type % kRuns)));
      for (size_t branch = 0; branch < kKinds; ++branch)
        for (const Transition& transition : group.joins[kind][branch])
          joins[t][branch].set(static_cast<size_t>(type_after(transition, type % kRuns))), any = true;
    }
    if (any) joins_.push_back(joins), joining_.push_back(starts_.size() - 1);
  }
  joins_of_.resize(joining_.size());
  for (size_t j = 0; j < joining_.size(); ++j)
    for (const Group& branch : space.groups()) {
      auto& joined = joins_of_[j].emplace_back();
      for (size_t type = 0; type < kTypes; ++type)
        for (const Transition& transition : branch.starts) joined[type] |= joins_[j][type][transition.kind];
    }
  find_stronger();
  for (Types& starts : starts_) starts = pruned(starts);
  for (size_t g = 0; g < starts_.size(); ++g) {
    first_states_.push_back(number_of({.now = starts_[g], .joined = {}, .open = false}));
    for (const bool two : {false, true})
      firsts_[two].add(number<Number>(space.groups()[g].members.size()) *
                       accepted(first_states_.back(), length - 1)[two]);
  }
}

// The greatest simulation: start from all pairs, take away what is not matched until nothing changes.
template <typename Number>
void Automaton<Number>::find_stronger() {
  std::array<Types, kTypes> stronger;  // [type]: itself too
  for (Types& types : stronger) types.set();
  const auto matched = [&](const Types& results, const Types& others) {
    const Types missing = results & ~others;  // the others are matched by themselves
    for (size_t type = missing._Find_first(); type < kTypes; type = missing._Find_next(type))
      if ((stronger[type] & others).none()) return false;
    return true;
  };
  const auto simulates = [&](size_t strong, size_t weak) {
    for (const auto& onwards : onwards_)
      if (!matched(onwards[weak], onwards[strong])) return false;
    for (const auto& joins : joins_)
      for (size_t branch = 0; branch < kKinds; ++branch)
        if (!matched(joins[weak][branch], joins[strong][branch])) return false;
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t weak = 0; weak < kTypes; ++weak)
      for (size_t strong = 0; strong < kTypes; ++strong)
        if (weak != strong && stronger[weak][strong] && !simulates(strong, weak))
          stronger[weak].reset(strong), changed = true;
  }
  for (size_t weak = 0; weak < kTypes; ++weak)
    for (size_t strong = 0; strong < kTypes; ++strong)  // of two that are alike, the first stays
      stronger_[weak][strong] =
          strong != weak && stronger[weak][strong] && (!stronger[strong][weak] || strong < weak);
}

template <typename Number>
typename Automaton<Number>::Types Automaton<Number>::pruned(const Types& types) const {
  Types kept = types;
  for_each(types, [&](size_t type) {
    if ((stronger_[type] & types).any()) kept.reset(type);
  });
  return kept;
}

template <typename Number>
typename Automaton<Number>::Types Automaton<Number>::onwards(const Types& types, size_t group) const {
  Types next;
  for_each(types, [&](size_t type) { next |= onwards_[group][type]; });
  return next;
}

template <typename Number>
typename Automaton<Number>::State Automaton<Number>::after(const State& state, size_t group) const {
  State next;
  next.now = onwards(state.now, group);
  if (!state.joined.empty())
    for (size_t j = 0; j < joining_.size(); ++j)
      if (joining_[j] == group) next.now |= state.joined[j];
  next.now = pruned(next.now);
  next.open = state.now.any() && starts_[group].any();

  // In case this step is a branch: what a join would make of it and the value before.
  bool adds = false;
  next.joined.resize(joining_.size());
  for (size_t j = 0; j < joining_.size(); ++j) {
    Types& joined = next.joined[j];
    for_each(state.now, [&](size_t type) { joined |= joins_of_[j][group][type]; });
    if (joined.none()) continue;
    const Types instead = onwards(next.now, joining_[j]);
    joined &= ~instead;
    if (joined.none()) continue;
    joined = pruned(joined | instead) & ~instead;
    adds |= joined.any();
  }
  if (!adds) next.joined.clear();
  return next;
}

template <typename Number>
bool Automaton<Number>::joins_anything(const State& state, size_t group) const {
  for (size_t j = 0; j < state.joined.size(); ++j)
    if (joining_[j] == group && state.joined[j].any()) return true;
  return false;
}

// Most states have the types of another one, and what follows differs only where a group joins.
template <typename Number>
int Automaton<Number>::number_after(int state, size_t group) {
  const State& from = states_[static_cast<size_t>(state)];
  if (joins_anything(from, group)) return number_of(after(from, group));
  auto& known = next_of_types_[from.now];
  if (known.empty()) known.assign(starts_.size(), -1);
  if (known[group] < 0) known[group] = number_of(after(from, group));
  return known[group];
}

template <typename Number>
int Automaton<Number>::number_of(const State& state) {
  const auto [place, fresh] = numbers_.try_emplace(state, static_cast<int>(states_.size()));
  if (fresh) {
    states_.push_back(state);
    next_.emplace_back();
    accepted_.emplace_back();
  }
  return place->second;
}

template <typename Number>
const typename Automaton<Number>::Accepted& Automaton<Number>::accepted(int state, int steps) {
  const auto s = static_cast<size_t>(state);
  const auto n = static_cast<size_t>(steps);
  if (accepted_[s].size() > n) return accepted_[s][n];
  if (steps == 0) {
    accepted_[s].push_back(
        {number<Number>(states_[s].now.any() ? 1 : 0), number<Number>(states_[s].open ? 1 : 0)});
    return accepted_[s][0];
  }
  accepted(state, steps - 1);  // in the order of steps
  const size_t groups = starts_.size();
  if (next_[s].empty())
    for (size_t g = 0; g < groups; ++g) {
      const int next = number_after(state, g);
      next_[s].push_back(next);
    }
  Accepted sums = {number<Number>(0), number<Number>(0)};
  for (size_t g = 0; g < groups; ++g) {
    const Accepted& then = accepted(next_[s][g], steps - 1);
    for (const bool two : {false, true})
      sums[two] += number<Number>(space_.groups()[g].members.size()) * then[two];
  }
  accepted_[s].push_back(std::move(sums));
  return accepted_[s][n];
}

template <typename Number>
const Choices<Number>& Automaton<Number>::choices_at(int state, int steps, bool two) {
  choices_.resize(states_.size());
  auto& of_state = choices_[static_cast<size_t>(state)];
  if (of_state.size() <= static_cast<size_t>(steps)) of_state.resize(static_cast<size_t>(steps) + 1);
  Choices<Number>& made = of_state[static_cast<size_t>(steps)][two];
  if (!made.empty()) return made;
  const std::vector<int>& next = next_[static_cast<size_t>(state)];
  for (size_t g = 0; g < next.size(); ++g)
    made.add(number<Number>(space_.groups()[g].members.size()) *
             accepted_[static_cast<size_t>(next[g])][static_cast<size_t>(steps - 1)][two]);
  return made;
}

template <typename Number>
bool Automaton<Number>::draw(Rng& rng, bool two, std::vector<int>& groups) {
  groups.clear();
  int chosen = firsts_[two].choose(rng);
  if (chosen == kUndecided) return false;
  groups.push_back(chosen);
  int state = first_states_[static_cast<size_t>(chosen)];
  for (int steps = length_ - 1; steps > 0; --steps) {
    chosen = choices_at(state, steps, two).choose(rng);
    if (chosen == kUndecided) return false;
    groups.push_back(chosen);
    state = next_[static_cast<size_t>(state)][static_cast<size_t>(chosen)];
  }
  return true;
}

template class Automaton<double>;
template class Automaton<Natural>;

}  // namespace nereid::synth
