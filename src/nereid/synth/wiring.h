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
  // Ways of a group that lead from one type to one type.
  struct Passage {
    uint16_t to, ways;
  };
  using Passages = std::vector<Passage>;
  struct Candidate {
    int from, branch;  // type of the value before; kind of the branch, or -1
    size_t length;     // steps of the branch
    uint32_t ways;
  };
  // Of a value's steps up to one, by its type.
  struct Chain {
    bool counted = false;
    Counts counts{};
    std::vector<int> present{};  // the types that occur
    std::array<Number, kKinds> kinds{};
  };
  static void lead(Passages& passages, int to);
  const Way& way_of(const Candidate& candidate, size_t step, int to, uint32_t which) const;
  template <typename Visit>
  void for_each_arrival(size_t step, const Visit& visit);
  const Chain& branch_of(size_t last, size_t length);
  bool draw_branch(Dice& dice, size_t last, const Candidate& joined, std::vector<DraftStep>& steps);
  void draw_start(Dice& dice, int type, size_t step, std::vector<DraftStep>& steps);

  const Space& space_;
  std::vector<Counts> starts_;                         // [group]: of one step of fresh inputs
  std::vector<std::array<Passages, kTypes>> onwards_;  // [group][type]
  std::vector<std::array<std::vector<std::pair<int, Passages>>, kTypes>>
      joins_;                    // [group][type]: by kind of the branch
  std::vector<bool> joins_any_;  // [group]
  std::vector<int> groups_;
  std::vector<Counts> counts_;                               // [step]
  std::vector<std::vector<int>> present_;                    // [step]: the types that occur
  std::vector<std::array<Chain, kLongestBranch>> branches_;  // [last step][length - 1], counted when needed
  std::vector<Candidate> candidates_;
  std::vector<const Way*> fitting_;
  std::vector<Number> weights_;
};

extern template class Wirings<double>;
extern template class Wirings<Natural>;

}  // namespace nereid::synth
