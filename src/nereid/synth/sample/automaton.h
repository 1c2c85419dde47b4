// Sequences of operators that some wiring fits whose branches are of one step (the last one may stay open),
// counted and drawn uniformly.
//
// With branches of two steps 3.5 % more are counted at length 5, for which the automaton would need 404,000
// states instead of 5,600.
//
// What a prefix of a sequence leaves open is the set of types (rank, domain, run) that its value may have
// under some wiring, and, in case its last operator is a branch, the sets that a join would add. These are
// the states of a deterministic automaton, so that sequences, not wirings, are counted. What adds nothing is
// left out of the sets: a type whose every continuation another type in the set has too (simulation), a join
// that does no better than going on.
#pragma once

#include <bitset>
#include <unordered_map>
#include <vector>

#include "nereid/synth/sample/rng.h"
#include "nereid/synth/sample/sampled_program.h"

namespace nereid::synth {

template <typename Number>
class Automaton {
 public:
  Automaton(const Space& space, int length);
  // How many sequences it accepts; `two`: with two results, the last operator's and the one before it.
  const Number& total(bool two) const { return firsts_[two].total(); }
  int states() const { return static_cast<int>(states_.size()); }
  // The groups of a sequence's operators. False where undecided.
  bool draw(Rng& rng, bool two, std::vector<int>& groups);

 private:
  using Types = std::bitset<kTypes>;
  struct State {
    Types now;
    std::vector<Types> joined;  // by the place in joining_; empty where no join adds anything
    bool open = false;          // its last operator may be a branch that nothing joins
    bool operator==(const State&) const = default;
  };
  struct Hash {
    size_t operator()(const State& state) const {
      size_t hash = std::hash<Types>()(state.now) + (state.open ? 1 : 0);
      for (const Types& types : state.joined) hash = hash * 31 + std::hash<Types>()(types);
      return hash;
    }
  };
  void find_stronger();
  Types pruned(const Types& types) const;
  Types onwards(const Types& types, size_t group) const;
  State after(const State& state, size_t group) const;
  bool joins_anything(const State& state, size_t group) const;
  int number_after(int state, size_t group);
  int number_of(const State& state);
  using Accepted = std::array<Number, 2>;  // with one result, with two
  const Accepted& accepted(int state, int steps);
  const Choices<Number>& choices_at(int state, int steps, bool two);

  const Space& space_;
  const int length_;
  std::vector<Types> starts_;                       // [group]
  std::vector<std::array<Types, kTypes>> onwards_;  // [group][type]
  std::vector<size_t> joining_;                     // the groups that join anything
  std::vector<std::array<std::array<Types, kKinds>, kTypes>>
      joins_;  // [place in joining_][type][kind of the branch]
  std::vector<std::vector<std::array<Types, kTypes>>>
      joins_of_;                        // [place in joining_][group of the branch][type]
  std::array<Types, kTypes> stronger_;  // [type]: what can be followed by all that can follow it; not itself
  std::vector<State> states_;
  std::unordered_map<State, int, Hash> numbers_;
  std::vector<std::vector<int>> next_;  // [state][group]
  std::unordered_map<Types, std::vector<int>>
      next_of_types_;  // [group]: as next_ where nothing is joined, for states of equal types; -1: unknown
  std::vector<std::vector<Accepted>> accepted_;  // [state][steps]
  std::vector<std::vector<std::array<Choices<Number>, 2>>>
      choices_;                            // [state][steps left]: of groups; made when first drawn from
  std::array<Choices<Number>, 2> firsts_;  // likewise, before the first step
  std::vector<int> first_states_;
};

extern template class Automaton<double>;
extern template class Automaton<Natural>;

}  // namespace nereid::synth
