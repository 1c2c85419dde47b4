// The wirings of a sequence of operators, counted and drawn uniformly.
#pragma once

#include <array>
#include <vector>

#include "nereid/synth/sample/rng.h"
#include "nereid/synth/sample/sampled_program.h"

namespace nereid::synth {

template <typename Number>
class Wirings {
 public:
  explicit Wirings(const Space& space);
  // Of a sequence, as groups of operators; with one result or with two. `draw` then draws one of them, as
  // often as wanted.
  Number count(const std::vector<int>& groups, bool two);
  // Steps without operators and sizes. False where undecided.
  bool draw(Rng& rng, std::vector<SampledStep>& steps);

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
    std::vector<int> present{};  // the types that occur, in the order in which they were met
    std::array<Number, kKinds> kinds{};
    Number total{};
  };
  // Which value: the one that the first step begins, or a branch, and how many steps it has.
  struct Made {
    size_t last, length;
    bool branch;
  };
  static void lead(Passages& passages, int to);
  const Transition& way_of(const Candidate& candidate, size_t step, int to, uint32_t which) const;
  template <typename Visit>
  void for_each_arrival(const Made& made, const Visit& visit);
  const Chain& chain_of(const Made& made) {
    if (made.length == 1) return starts_[static_cast<size_t>(groups_[made.last])];
    return made.branch ? branch_of(made.last, made.length) : spine_[made.last];
  }
  const Chain& branch_of(size_t last, size_t length);
  static void add(Chain& chain, int type, const Number& count);
  void count_chain(const Made& made, Chain& chain);
  // With so many last steps as a branch that nothing joins.
  Number open(size_t length) {
    const size_t count = groups_.size();
    return chain_of({count - 1 - length, count - length, false}).total *
           chain_of({count - 1, length, true}).total;
  }
  bool draw_value(Rng& rng, const Made& made, std::vector<SampledStep>& steps);
  bool draw_chain(Rng& rng, Made made, int wanted, uint8_t depth, std::vector<SampledStep>& steps);
  void draw_start(Rng& rng, int type, size_t step, std::vector<SampledStep>& steps);

  const Space& space_;
  std::vector<Chain> starts_;                          // [group]: of one step of fresh inputs
  std::vector<std::array<Passages, kTypes>> onwards_;  // [group][type]
  std::vector<std::array<std::vector<std::pair<int, Passages>>, kTypes>>
      joins_;                    // [group][type]: by kind of the branch
  std::vector<bool> joins_any_;  // [group]
  std::vector<int> groups_;
  bool two_ = false;
  std::vector<Chain> spine_;                                 // [step]
  std::vector<std::array<Chain, kLongestBranch>> branches_;  // [last step][length - 1], counted when needed
  std::vector<Candidate> candidates_;
  std::vector<const Transition*> fitting_;
  std::vector<Number> weights_;
};

extern template class Wirings<double>;
extern template class Wirings<Natural>;

}  // namespace nereid::synth
