#include "nereid/synth/sample/sampler.h"

#include <algorithm>

#include "nereid/base/check.h"

namespace nereid::synth {
namespace {

// Wirings drawn in vain before it is decided whether any of the sequence's has sizes that fit.
constexpr int kPatience = 16;
constexpr size_t kMaxRemembered = 100'000;
constexpr uint32_t kStream = 0, kSizesStream = 1'000, kGenerationStream = 1'000'000;

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

struct Sampler::Older {
  Older(const std::vector<const ops::Operator*>& operators, const Space& all, int length, Uniform uniform,
        const Generation& generation)
      : space(operators, all.bounds()), sampler(space, length, uniform, generation) {
    for (int form = 0; form < space.form_count(); ++form)
      forms.push_back(static_cast<uint16_t>(all.id_of(space.form(form))));
  }
  Space space;
  Sampler sampler;
  std::vector<uint16_t> forms;  // [form of its space]: of the space with all operators
};

Sampler::Sampler(const Space& space, int length, Uniform uniform, const Generation& generation)
    : space_(space), length_(length), uniform_(uniform), generation_(generation) {
  NEREID_CHECK(length >= 1 && length <= kMaxLength, "a length from 1 to {}, got {}", kMaxLength, length);
  doubles_ = std::make_shared<Counts<double>>(space, length, uniform);
  // Sequences are counted by ranks and domains alone; whether sizes fit any of them, whole programs know.
  const std::optional<UniformProgramSampler<double>> programs =
      uniform == Uniform::kSequences
          ? std::optional<UniformProgramSampler<double>>(std::in_place, space, length)
          : std::nullopt;
  for (const bool two : {false, true})
    has_[two] = choices(two) > 0 && (!programs || programs->total(two) > 0);

  for (const ops::Operator* op : space.operators()) newest_ = std::max(newest_, generation_(*op));
  std::vector<const ops::Operator*> before;
  for (const ops::Operator* op : space.operators())
    if (!is_new(*op)) before.push_back(op);
  if (before.empty()) return;
  older_ = std::make_shared<Older>(before, space, length, uniform, generation_);
  generations_ = older_->sampler.generations_ + 1;
}

bool Sampler::is_new(const ops::Operator& op) const { return generation_(op) == newest_; }

double Sampler::choices(bool two) const {
  return uniform_ == Uniform::kSequences ? doubles_->automaton->total(two) : doubles_->programs->total(two);
}

bool Sampler::empty() const { return !has_[0] && !has_[1]; }

template <>
Sampler::Counts<double>& Sampler::counts() {
  return *doubles_;
}

template <>
Sampler::Counts<Natural>& Sampler::counts() {
  if (!naturals_) naturals_ = std::make_shared<Counts<Natural>>(space_, length_, uniform_);
  return *naturals_;
}

template <typename Number>
const Number& Sampler::total(bool two) {
  Counts<Number>& all = counts<Number>();
  return all.automaton ? all.automaton->total(two) : all.programs->total(two);
}

// Decided by the first generations that have programs of both kinds, as they did before others came.
bool Sampler::two_results(std::span<Rng> rngs) const {
  if (!has_[0] || !has_[1]) return has_[1];
  const Sampler* first = this;
  while (first->older_ && first->older_->sampler.has_[0] && first->older_->sampler.has_[1])
    first = &first->older_->sampler;
  return rngs[first->generations_ - 1].below(kTwoResults) == 0;
}

// Of the sequence in groups_.
bool Sampler::any_sizes_fit(bool two) {
  auto& fit = fit_[two];
  const auto known = fit.find(groups_);
  if (known != fit.end()) return known->second;
  if (fit.size() >= kMaxRemembered) fit.clear();
  return fit[groups_] = any_program_exists(space_, groups_, two);
}

// Forms and sizes for the sequence in groups_.
template <typename Number>
Sampler::Attempt Sampler::fit(Rng& rng, bool two, SampledProgram& sampled) {
  Counts<Number>& all = counts<Number>();
  all.wirings->count(groups_, two);
  for (int tries = 0;; ++tries) {
    if (tries == kPatience && !any_sizes_fit(two)) return Attempt::kNoSizesFit;
    ++tally_.wirings;
    if (!all.wirings->draw(rng, sampled.steps)) return Attempt::kUndecided;
    if (!all.sizes->count(sampled.steps)) continue;
    return all.sizes->draw(rng, sampled) ? Attempt::kDrawn : Attempt::kUndecided;
  }
}

// Operators for the groups in groups_.
void Sampler::choose_members(Rng& rng, std::vector<const ops::Operator*>& members) const {
  members.clear();
  for (const int group : groups_) {
    const auto& all = space_.groups()[static_cast<size_t>(group)].members;
    members.push_back(all[rng.below(static_cast<uint32_t>(all.size()))]);
  }
}

template <typename Number>
Sampler::Attempt Sampler::attempt_any(Rng& rng, bool two, SampledProgram& sampled) {
  Counts<Number>& all = counts<Number>();
  if (all.programs) return all.programs->draw(rng, two, sampled) ? Attempt::kDrawn : Attempt::kUndecided;
  ++tally_.sequences;
  if (!all.automaton->draw(rng, two, groups_)) return Attempt::kUndecided;
  const Attempt done = fit<Number>(rng, two, sampled);
  if (done != Attempt::kDrawn) return done;
  choose_members(rng, members_);
  for (size_t i = 0; i < members_.size(); ++i) sampled.steps[i].op = members_[i];
  return done;
}

// One that has an operator of the last generation: others are drawn again. Sequences are decided before their
// sizes, for those that no sizes fit count as attempts.
template <typename Number>
Sampler::Attempt Sampler::attempt_new(Rng& rng, bool two, SampledProgram& sampled) {
  Counts<Number>& all = counts<Number>();
  const auto new_one = [&](const ops::Operator* op) { return is_new(*op); };
  for (;;) {
    if (all.programs) {
      if (!all.programs->draw(rng, two, sampled)) return Attempt::kUndecided;
      const auto of_step = [&](const SampledStep& step) { return new_one(step.op); };
      if (std::ranges::any_of(sampled.steps, of_step)) return Attempt::kDrawn;
      continue;
    }
    ++tally_.sequences;
    if (!all.automaton->draw(rng, two, groups_)) return Attempt::kUndecided;
    choose_members(rng, members_);
    if (std::ranges::none_of(members_, new_one)) continue;
    const Attempt done = fit<Number>(rng, two, sampled);
    if (done != Attempt::kDrawn) return done;
    for (size_t i = 0; i < members_.size(); ++i) sampled.steps[i].op = members_[i];
    return done;
  }
}

// `rngs`: one for each generation, which nothing that came later draws from.
template <typename Number>
Sampler::Attempt Sampler::attempt(std::span<Rng> rngs, bool two, SampledProgram& sampled) {
  if (!older_) return attempt_any<Number>(rngs.back(), two, sampled);
  Sampler& older = older_->sampler;
  const int as_before = falls_to(rngs.back(), older.total<Number>(two), total<Number>(two));
  if (as_before == kUndecided) return Attempt::kUndecided;
  if (as_before == 0) return attempt_new<Number>(rngs.back(), two, sampled);
  const Attempt done = older.attempt<Number>(rngs.first(rngs.size() - 1), two, sampled);
  if (done == Attempt::kDrawn)
    for (SampledStep& step : sampled.steps) step.transition.form = older_->forms[step.transition.form];
  return done;
}

template <typename Number>
bool Sampler::draw_by(uint64_t seed, uint64_t index, SampledProgram& sampled) {
  std::vector<Rng> rngs;
  for (size_t i = 0; i < generations_; ++i)
    rngs.emplace_back(seed, index, i == 0 ? kStream : kGenerationStream + static_cast<uint32_t>(i));
  const bool two = two_results(rngs);
  for (;;) {
    const Attempt done = attempt<Number>(rngs, two, sampled);
    if (done != Attempt::kNoSizesFit) return done == Attempt::kDrawn;
  }
}

void Sampler::draw(uint64_t seed, uint64_t index, SampledProgram& sampled) {
  ++tally_.programs;
  if (draw_by<double>(seed, index, sampled)) return;
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
  const bool decided = draw_by<Natural>(seed, index, sampled);
  NEREID_CHECK(decided, "naturals to decide every draw");
}

}  // namespace nereid::synth
