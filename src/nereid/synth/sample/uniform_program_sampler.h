// Whole programs of a length, counted and drawn uniformly: the counts of wirings and of sizes at once, summed
// over all operators.
#pragma once

#include <unordered_map>
#include <vector>

#include "nereid/synth/sample/sizes.h"

namespace nereid::synth {

// Caches what it works out while drawing: not for several threads at once.
template <typename Number>
class UniformProgramSampler {
 public:
  UniformProgramSampler(const Space& space, int length);
  const Number& total(bool two) const { return two ? opens_.total() : results_[0].first.types.total(); }
  // Complete, with one result or with two. False where undecided.
  bool draw(Rng& rng, bool two, SampledProgram& sampled);

 private:
  using Counts = typename Sizes<Number>::Counts;
  // Ways of one form that differ in the operator alone.
  struct TransitionSet {
    Transition transition;
    int from = 0, branch = -1;  // kinds of the current value and of the branch
    std::vector<const ops::Operator*> members;
  };
  struct Arrival {
    const TransitionSet* set;
    int run;     // of the value before
    int length;  // steps of the branch; 0: none
  };
  struct Arrivals {
    std::vector<Arrival> from;
    Choices<Number> choices;
  };
  void gather_way_sets();
  void count_steps(int steps, bool branch);
  void add(Counts& sums, const Counts& counts, size_t times) const;
  using ByType = std::array<Counts, kTypes>;
  // Of a value made in so many steps: the current one, or a branch.
  const ByType& made_in(int steps, bool branch) const {
    return (branch ? branches_ : counts_)[static_cast<size_t>(steps)];
  }
  template <typename Visit>
  void for_each_arrival(int steps, bool branch, const std::vector<TransitionSet>& sets,
                        const Visit& visit) const;
  Number weight(const Arrival& arrival, const Edge& edge, const Counts& before) const;
  const Arrivals& arrivals_at(int steps, bool branch, int type, int vector);
  // Of all values made in so many steps, by type and by class vector.
  struct Results {
    Choices<Number> types;
    std::vector<Choices<Number>> vectors;  // [type]
  };
  Results results_of(int steps, bool branch) const;
  bool draw_value(Rng& rng, int first, int steps, bool branch, const Results& results, ops::Shape& shape,
                  SampledProgram& sampled);
  bool draw_steps(Rng& rng, int first, int steps, bool branch, int type, int vector, SampledProgram& sampled);
  bool draw_start(Rng& rng, int type, int vector, SampledStep& step);

  const Space& space_;
  const int length_;
  Sizes<Number> sizes_;
  std::vector<TransitionSet> starts_;
  std::array<std::vector<TransitionSet>, kKinds> arriving_;  // by the kind of the result
  std::vector<ByType> counts_, branches_;                    // [steps]; empty where there is none
  std::vector<std::array<Counts, kKinds>> branch_kinds_;     // [steps]: likewise, whatever the run
  // [steps of the branch that nothing joins; 0: none]: those of the value that waits, those of the branch.
  std::vector<std::pair<Results, Results>> results_;
  Choices<Number> opens_;  // likewise, from one on
  std::unordered_map<uint64_t, Arrivals> arrivals_;
  size_t remembered_ = 0;
  std::vector<Number> weights_;
};

extern template class UniformProgramSampler<double>;
extern template class UniformProgramSampler<Natural>;

}  // namespace nereid::synth
