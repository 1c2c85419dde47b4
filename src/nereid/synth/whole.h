// Whole programs of a level, counted and drawn uniformly: the counts of wirings and of sizes at once, summed
// over all operators.
#pragma once

#include <unordered_map>
#include <vector>

#include "nereid/synth/sizes.h"

namespace nereid::synth {

// Caches what it works out while drawing: not for several threads at once.
template <typename Number>
class Programs {
 public:
  Programs(const Space& space, int level);
  const Number& total() const { return totals_.total(); }
  // Complete. False where undecided.
  bool draw(Dice& dice, Draft& draft);

 private:
  using Counts = typename Sizes<Number>::Counts;
  // Ways of one form that differ in the operator alone.
  struct WaySet {
    Way way;
    int from = 0, branch = -1;  // kinds of the current value and of the branch
    std::vector<const ops::Operator*> members;
  };
  struct Arrival {
    const WaySet* set;
    int run;  // of the value before
  };
  struct Arrivals {
    std::vector<Arrival> from;
    Choices<Number> choices;
  };
  void gather_way_sets();
  void count_step(int step);
  void add(Counts& sums, const Counts& counts, size_t times) const;
  const Counts& counts(int steps, int kind, int run) const {
    return counts_[static_cast<size_t>(steps)][static_cast<size_t>(type_of(kind, run))];
  }
  Number weight(const WaySet& set, const Edge& edge, const Counts& before) const;
  const Arrivals& arrivals_at(int step, int type, int vector);
  bool draw_start(Dice& dice, int type_or_kind, bool whole_type, int vector, DraftStep& step);

  const Space& space_;
  const int level_;
  Sizes<Number> sizes_;
  std::vector<WaySet> starts_;
  std::array<std::vector<WaySet>, kKinds> arriving_;  // by the kind of the result
  std::array<Counts, kKinds> branches_;               // of one step of fresh inputs
  std::vector<std::array<Counts, kTypes>> counts_;    // [step]; empty where there is none
  Choices<Number> totals_;                            // by type
  std::vector<Choices<Number>> results_;              // [type]: by class vector
  std::unordered_map<uint64_t, Arrivals> arrivals_;
  size_t remembered_ = 0;
  std::vector<Number> weights_;
};

extern template class Programs<double>;
extern template class Programs<Natural>;

}  // namespace nereid::synth
