#include "nereid/synth/sampler.h"

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
  Counts(const Space& space, int level, Uniform uniform) {
    if (uniform == Uniform::kSequences) {
      automaton.emplace(space, level), wirings.emplace(space), sizes.emplace(space);
    } else {
      programs.emplace(space, level);
    }
  }
  std::optional<Automaton<Number>> automaton;
  std::optional<Wirings<Number>> wirings;
  std::optional<Sizes<Number>> sizes;
  std::optional<Programs<Number>> programs;
};

Sampler::Sampler(const Space& space, int level, Uniform uniform)
    : space_(space), level_(level), uniform_(uniform) {
  NEREID_CHECK(level >= 1 && level <= kHighestLevel, "a level from 1 to {}, got {}", kHighestLevel, level);
  doubles_ = std::make_shared<Counts<double>>(space, level, uniform);
}

double Sampler::choices() const {
  return uniform_ == Uniform::kSequences ? doubles_->automaton->total() : doubles_->programs->total();
}

bool Sampler::empty() const {
  if (choices() == 0) return true;
  // Sequences are counted by ranks and domains alone; whether sizes fit any of them, whole programs know.
  return uniform_ == Uniform::kSequences && Programs<double>(space_, level_).total() == 0;
}

// Of the sequence in groups_.
bool Sampler::some_sizes_fit() {
  const auto known = fit_.find(groups_);
  if (known != fit_.end()) return known->second;
  if (fit_.size() >= kMostRemembered) fit_.clear();
  return fit_[groups_] = some_program(space_, groups_);
}

template <typename Number>
bool Sampler::draw_sequence(Counts<Number>& counts, Dice& dice, Draft& draft) {
  for (;;) {
    ++tally_.sequences;
    if (!counts.automaton->draw(dice, groups_)) return false;
    counts.wirings->count(groups_);
    for (int tries = 0;; ++tries) {
      if (tries == kPatience && !some_sizes_fit()) break;
      ++tally_.wirings;
      if (!counts.wirings->draw(dice, draft.steps)) return false;
      if (!counts.sizes->count(draft.steps)) continue;
      if (!counts.sizes->draw(dice, draft)) return false;
      for (size_t i = 0; i < groups_.size(); ++i) {
        const auto& members = space_.groups()[static_cast<size_t>(groups_[i])].members;
        draft.steps[i].op = members[dice.below(static_cast<uint32_t>(members.size()))];
      }
      return true;
    }
  }
}

void Sampler::draw(uint64_t seed, uint64_t index, Draft& draft) {
  ++tally_.programs;
  Dice dice(seed, index, kStream);
  const bool decided = uniform_ == Uniform::kSequences ? draw_sequence(*doubles_, dice, draft)
                                                       : doubles_->programs->draw(dice, draft);
  if (decided) return;
  ++tally_.undecided;
  draw_with_naturals(seed, index, draft);
}

void Sampler::draw_sizes(uint64_t seed, uint64_t index, int which, Draft& draft) {
  if (!later_) later_.emplace(space_);
  Dice dice(seed, index, kSizesStream + static_cast<uint32_t>(which));
  const bool fits = later_->count(draft.steps);
  NEREID_CHECK(fits, "a wiring that sizes fit");
  if (later_->draw(dice, draft)) return;
  ++tally_.undecided;
  Sizes<Natural> exact(space_);
  Dice again(seed, index, kSizesStream + static_cast<uint32_t>(which));
  NEREID_CHECK(exact.count(draft.steps) && exact.draw(again, draft), "naturals to decide every draw");
}

void Sampler::draw_with_naturals(uint64_t seed, uint64_t index, Draft& draft) {
  if (!naturals_) naturals_ = std::make_shared<Counts<Natural>>(space_, level_, uniform_);
  Dice dice(seed, index, kStream);
  const bool decided = uniform_ == Uniform::kSequences ? draw_sequence(*naturals_, dice, draft)
                                                       : naturals_->programs->draw(dice, draft);
  NEREID_CHECK(decided, "naturals to decide every draw");
}

}  // namespace nereid::synth
