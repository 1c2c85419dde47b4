// The assignments of sizes to a wiring, counted and drawn uniformly.
//
// The number of assignments of the steps so far that give their value one exact shape depends on nothing but
// the classes of that shape, so a vector of counts indexed by class vectors goes from step to step.
#pragma once

#include <deque>
#include <vector>

#include "nereid/synth/sample/rng.h"
#include "nereid/synth/sample/sampled_program.h"

namespace nereid::synth {

template <typename Number>
class Sizes {
 public:
  using Counts = std::vector<Number>;  // by class vector of one rank

  explicit Sizes(const Space& space);
  // False where no sizes fit. `draw` then draws some into the steps.
  bool count(const std::vector<SampledStep>& steps);
  // False where undecided. Leaves operators alone.
  bool draw(Rng& rng, SampledProgram& sampled);

  // The counts of a result whose operands were counted; `spine` itself where nothing changes.
  const Counts* through(const Transition& transition, const Counts* spine, const Counts* branch,
                        Counts& made) const;
  const Counts& of_start(int form) const { return starts_[static_cast<size_t>(form)]; }

  // The parts of `draw`: exact sizes of the given classes.
  ops::Shape draw_shape(Rng& rng, int rank, int vector) const;
  void draw_inner(Rng& rng, const Edge& edge, SampledStep& step) const;
  bool draw_start(Rng& rng, int vector, SampledStep& step);

 private:
  bool draw_steps(Rng& rng, std::vector<SampledStep>& steps, size_t last, int vector);
  bool draw_result(Rng& rng, std::vector<SampledStep>& steps, size_t last, ops::Shape& result);

  const Space& space_;
  std::vector<Counts> starts_;                    // [form]: of a step of fresh inputs alone
  std::array<Counts, ops::kMaxRank + 1> shapes_;  // [rank]: how many shapes have a class vector
  std::deque<Counts> storage_;                    // [step]
  std::vector<const Counts*> counts_;
  std::vector<Number> weights_;
};

// Whether any program has these operators, as groups: decides what no wiring drawn so far has shown.
bool any_program_exists(const Space& space, const std::vector<int>& groups, bool two);

extern template class Sizes<double>;
extern template class Sizes<Natural>;

}  // namespace nereid::synth
