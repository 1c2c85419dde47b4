// Draws programs of a length from a space, exactly: docs/synth.md has the distributions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "nereid/synth/sample/automaton.h"
#include "nereid/synth/sample/generations.h"
#include "nereid/synth/sample/sizes.h"
#include "nereid/synth/sample/uniform_program_sampler.h"
#include "nereid/synth/sample/wiring.h"

namespace nereid::synth {

inline constexpr int kMaxLength = 40;  // above it, counts of programs leave the range of a double

inline constexpr uint32_t kTwoResults = 8;  // one program in so many has two results, where any has

enum class Uniform : uint8_t {
  kSequences,  // over sequences of operators, then over wirings, then over sizes
  kPrograms,   // over whole programs
};

// Program `index` of a seed depends on nothing else: not on what was drawn before, on the machine or on the
// number of samplers; nor, where it has none of them, on operators that joined the catalogue later. Caches
// what it works out while drawing: one for each thread.
class Sampler {
 public:
  // 1 <= length <= kMaxLength.
  Sampler(const Space& space, int length, Uniform uniform, const Generation& generation = synth::generation);

  // Whether there is nothing to draw.
  bool empty() const;
  // How many sequences of operators that fit by ranks and domains, or whole programs, there are; of one
  // result, and of two.
  double choices() const { return choices(false) + choices(true); }
  double choices(bool two) const;
  // Whether there are programs of one result, of two.
  bool has(bool two) const { return has_[two]; }
  void draw(uint64_t seed, uint64_t index, SampledProgram& sampled);
  // Other sizes for the wiring of `draft`, uniformly; `which` counts them from 1.
  void draw_sizes(uint64_t seed, uint64_t index, int which, SampledProgram& sampled);
  // The same program, decided by integers alone: what `draw` falls back to where a double's rounding might
  // matter.
  void draw_with_naturals(uint64_t seed, uint64_t index, SampledProgram& sampled);

  struct Tally {
    uint64_t programs = 0, sequences = 0, wirings = 0, undecided = 0;  // drawn; asked again with naturals
  };
  const Tally& tally() const { return tally_; }

 private:
  template <typename Number>
  struct Counts;
  // The operators that were there before those that joined last, and what is drawn of them alone.
  struct Older;
  enum class Attempt : uint8_t { kDrawn, kNoSizesFit, kUndecided };  // in vain: no sizes fit
  template <typename Number>
  Counts<Number>& counts();
  template <typename Number>
  const Number& total(bool two);
  bool two_results(std::span<Rng> rngs) const;
  bool any_sizes_fit(bool two);
  bool is_new(const ops::Operator& op) const;
  template <typename Number>
  Attempt fit(Rng& rng, bool two, SampledProgram& sampled);
  template <typename Number>
  Attempt attempt(std::span<Rng> rngs, bool two, SampledProgram& sampled);
  template <typename Number>
  Attempt attempt_any(Rng& rng, bool two, SampledProgram& sampled);
  template <typename Number>
  Attempt attempt_new(Rng& rng, bool two, SampledProgram& sampled);
  template <typename Number>
  bool draw_by(uint64_t seed, uint64_t index, SampledProgram& sampled);
  void choose_members(Rng& rng, std::vector<const ops::Operator*>& members) const;

  const Space& space_;
  const int length_;
  const Uniform uniform_;
  std::shared_ptr<Counts<double>> doubles_;
  std::shared_ptr<Counts<Natural>> naturals_;  // made when first needed
  std::optional<Sizes<double>> later_;         // likewise
  std::vector<int> groups_;
  std::vector<const ops::Operator*> members_;
  std::shared_ptr<Older> older_;  // null: all operators are of one generation
  int newest_ = 0;                // generation of the operators that are not in older_
  size_t generations_ = 1;        // that the space has operators of
  Generation generation_;
  std::array<bool, 2> has_{};
  std::array<std::map<std::vector<int>, bool>, 2>
      fit_;  // sequences that were asked about: whether any sizes fit
  Tally tally_;
};

}  // namespace nereid::synth
