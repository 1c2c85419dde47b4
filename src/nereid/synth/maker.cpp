#include "nereid/synth/maker.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "nereid/synth/size_class.h"
#include "nereid/synth/values.h"

namespace nereid::synth {
namespace {

constexpr uint32_t kMannerStream = 1, kFreeSizesStream = 2'000;

// Every size of the grid becomes another one of its class, the same one wherever it stands: half of them any, half of them
// as people choose them. What was of the highest class may be eight times as large.
void free_sizes(Dice& dice, Draft& draft) {
  std::map<int32_t, int32_t> chosen;
  const auto set_free = [&](int32_t& size) {
    const int of = size_class_of(size);
    if (of < 2) return;  // the grid has all of them
    const auto [place, is_new] = chosen.try_emplace(size, size);
    if (is_new) {
      static constexpr int32_t kRound[] = {1, 1, 1, 1, 1, 1, 4, 8, 10, 16, 32, 50, 64, 100, 100, 1000, 1000, 10000};
      const int32_t low = cap(of - 1) + 1, high = cap(of) * (of + 1 == kClasses && dice.below(2) == 0 ? 8 : 1);
      const int32_t any = low + static_cast<int32_t>(dice.below(static_cast<uint32_t>(high - low + 1)));
      const int32_t round = kRound[dice.below(std::size(kRound))], rounded = any / round * round;
      static constexpr int32_t kBeside[] = {0, 0, 0, 0, -1, 1, 3};  // 999, 1001, 10003
      const int32_t beside = rounded + (round > 1 ? kBeside[dice.below(std::size(kBeside))] : 0);
      place->second = beside < low || beside > high ? any : beside;
    }
    size = place->second;
  };
  for (ops::Shape* shape : {&draft.result, &draft.waiting})
    for (size_t d = 0; d < shape->rank; ++d) set_free(shape->dims[d]);
  for (DraftStep& step : draft.steps)
    for (int32_t& born : step.born) set_free(born);
}

}  // namespace

Maker::Maker(const Space& space, const MakerConfig& config)
    : space_(space), config_(config), sampler_(space, config.level, config.uniform) {}

void Maker::draw(uint64_t index, int sizes, Made& made) {
  made.index = index, made.sizes = sizes;
  sampler_.draw(config_.seed, index, draft_);
  if (sizes > 0) sampler_.draw_sizes(config_.seed, index, sizes, draft_);
  if (config_.free_sizes > 0) {
    Dice dice(config_.seed, index, kFreeSizesStream + static_cast<uint32_t>(sizes));
    if (dice.below(1U << 20) < config_.free_sizes * (1U << 20)) free_sizes(dice, draft_);
  }
  resolve(draft_, space_, made.program);
  const auto& steps = made.program.steps;
  const double most = std::max(std::exp2(kBitsPerClass * space_.bounds().elements), 0x1p21);
  const bool too_large = config_.free_sizes > 0 && std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    double elements = static_cast<double>(step.applied.out.elements());
    for (size_t slot = 0; slot < step.operands.size(); ++slot)
      elements = std::max(elements, static_cast<double>(step.applied.operands[slot].elements()));
    return elements > most;
  });
  if (too_large) {
    made.outcome = Outcome::kNoSize;
    return;
  }
  if (!std::all_of(steps.begin(), steps.end(),
                   [](const Step& step) { return ops::is_sound(step.applied); })) {
    made.outcome = Outcome::kNoSize;
    return;
  }
  if (is_degenerate(made.program)) {
    made.outcome = Outcome::kDegenerate;
    return;
  }
  made.outcome = Outcome::kMade;
  made.hashes = hashes_of(made.program);
}

void Maker::write(Made& made) const {
  Dice dice(config_.seed, made.index, kMannerStream);  // later sizes are written in the same manner
  made.code.clear();
  made.manner = draw_manner(dice, made.program);
  made.layout = emit(made.program, made.manner, made.code);
}

bool held_out(uint64_t structure, double share) {
  return static_cast<double>(structure >> 11) * 0x1p-53 < share;
}

}  // namespace nereid::synth
