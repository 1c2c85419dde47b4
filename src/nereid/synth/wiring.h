// The wirings of a sequence of operators, counted and drawn uniformly.
#pragma once

#include <array>
#include <vector>

#include "nereid/synth/dice.h"
#include "nereid/synth/draft.h"

namespace nereid::synth {

template <typename Number>
class Wirings {
 public:
  explicit Wirings(const Space& space);
  // Of a sequence, as groups of operators. `draw` then draws one of them, as often as wanted.
  Number count(const std::vector<int>& groups);
  // Steps without operators and sizes. False where undecided.
  bool draw(Dice& dice, std::vector<DraftStep>& steps);

 private:
  using Counts = std::array<Number, kTypes>;
  struct Candidate {
    const Way* way;
    int from, branch;  // type of the value before; kind of the branch, or -1
  };
  template <typename Visit>
  void for_each_arrival(size_t step, const Visit& visit) const;

  const Space& space_;
  std::vector<std::array<Number, kKinds>> starts_;  // [group]: of one step of fresh inputs
  std::vector<Counts> start_types_;
  std::vector<int> groups_;
  std::vector<Counts> counts_;             // [step]
  std::vector<std::vector<int>> present_;  // [step]: the types that occur
  std::vector<Candidate> candidates_;
  std::vector<Number> weights_;
};

extern template class Wirings<double>;
extern template class Wirings<Natural>;

}  // namespace nereid::synth
