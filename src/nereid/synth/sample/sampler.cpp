#include "nereid/synth/sample/sampler.h"

#include "nereid/base/check.h"

namespace nereid::synth {
namespace {

// Wirings drawn in vain before it is decided whether any of the sequence's has sizes that fit.
constexpr int kPatience = 16;
constexpr size_t kMostRemembered = 100'000;
constexpr uint32_t kStream = 0, kSizesStream = 1'000;

}  // namespace

template <typename Number>
struct Sampler::Counts {
  Counts(const Space& space, int length, Uniform uniform) {
    if (uniform == Uniform::kSequences) {
      automaton.emplace(space, length), wirings.emplace(space), sizes.emplace(space);
    } else {
      programs.emplace(space, length);
    }
  }
  std::optional<Automaton<Number>> automaton;
  std::optional<Wirings<Number>> wirings;
  std::optional<Sizes<Number>> sizes;
  std::optional<UniformProgramSampler<Number>> programs;
};

Sampler::Sampler(const Space& space, int length, Uniform uniform)
    : space_(space), length_(length), uniform_(uniform) {
  NEREID_CHECK(length >= 1 && length <= kMaxLength, "a length from 1 to {}, got {}", kMaxLength, length);
  doubles_ = std::make_shared<Counts<double>>(space, length, uniform);
  // Sequences are counted by ranks and domains alone; whether sizes fit any of them, whole programs know.
  const std::optional<UniformProgramSampler<double>> programs =
      uniform == Uniform::kSequences
          ? std::optional<UniformProgramSampler<double>>(std::in_place, space, length)
          : std::nullopt;
  for (const bool two : {false, true})
    has_[two] = choices(two) > 0 && (!programs || programs->total(two) > 0);
}

double Sampler::choices(bool two) const {
  return uniform_ == Uniform::kSequences ? doubles_->automaton->total(two) : doubles_->programs->total(two);
}

bool Sampler::empty() const { return !has_[0] && !has_[1]; }

bool Sampler::two_results(Rng& rng) const { return has_[1] && (!has_[0] || rng.below(kTwoResults) == 0); }

// Of the sequence in groups_.
bool Sampler::some_sizes_fit(bool two) {
  auto& fit = fit_[two];
  const auto known = fit.find(groups_);
  if (known != fit.end()) return known->second;
  if (fit.size() >= kMostRemembered) fit.clear();
  return fit[groups_] = some_program(space_, groups_, two);
}

template <typename Number>
bool Sampler::draw_sequence(Counts<Number>& counts, Rng& rng, bool two, SampledProgram& sampled) {
  for (;;) {
    ++tally_.sequences;
    if (!counts.automaton->draw(rng, two, groups_)) return false;
    counts.wirings->count(groups_, two);
    for (int tries = 0;; ++tries) {
      if (tries == kPatience && !some_sizes_fit(two)) break;
      ++tally_.wirings;
      if (!counts.wirings->draw(rng, sampled.steps)) return false;
      if (!counts.sizes->count(sampled.steps)) continue;
      if (!counts.sizes->draw(rng, sampled)) return false;
      for (size_t i = 0; i < groups_.size(); ++i) {
        const auto& members = space_.groups()[static_cast<size_t>(groups_[i])].members;
        sampled.steps[i].op = members[rng.below(static_cast<uint32_t>(members.size()))];
      }
      return true;
    }
  }
}

template <typename Number>
bool Sampler::draw_by(Counts<Number>& counts, Rng& rng, SampledProgram& sampled) {
  const bool two = two_results(rng);
  return counts.programs ? counts.programs->draw(rng, two, sampled)
                         : draw_sequence(counts, rng, two, sampled);
}

void Sampler::draw(uint64_t seed, uint64_t index, SampledProgram& sampled) {
  ++tally_.programs;
  Rng rng(seed, index, kStream);
  if (draw_by(*doubles_, rng, sampled)) return;
  ++tally_.undecided;
  draw_with_naturals(seed, index, sampled);
}

void Sampler::draw_sizes(uint64_t seed, uint64_t index, int which, SampledProgram& sampled) {
  if (!later_) later_.emplace(space_);
  Rng rng(seed, index, kSizesStream + static_cast<uint32_t>(which));
  const bool fits = later_->count(sampled.steps);
  NEREID_CHECK(fits, "a wiring that sizes fit");
  if (later_->draw(rng, sampled)) return;
  ++tally_.undecided;
  Sizes<Natural> exact(space_);
  Rng again(seed, index, kSizesStream + static_cast<uint32_t>(which));
  NEREID_CHECK(exact.count(sampled.steps) && exact.draw(again, sampled), "naturals to decide every draw");
}

void Sampler::draw_with_naturals(uint64_t seed, uint64_t index, SampledProgram& sampled) {
  if (!naturals_) naturals_ = std::make_shared<Counts<Natural>>(space_, length_, uniform_);
  Rng rng(seed, index, kStream);
  const bool decided = draw_by(*naturals_, rng, sampled);
  NEREID_CHECK(decided, "naturals to decide every draw");
}

}  // namespace nereid::synth
