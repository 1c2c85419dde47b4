#include "nereid/synth/maker.h"

#include <algorithm>

#include "nereid/synth/values.h"

namespace nereid::synth {
namespace {

constexpr uint32_t kMannerStream = 1;

}  // namespace

Maker::Maker(const Space& space, const MakerConfig& config)
    : space_(space), config_(config), sampler_(space, config.level, config.uniform) {}

void Maker::draw(uint64_t index, int sizes, Made& made) {
  made.index = index, made.sizes = sizes;
  sampler_.draw(config_.seed, index, draft_);
  if (sizes > 0) sampler_.draw_sizes(config_.seed, index, sizes, draft_);
  resolve(draft_, space_, made.program);
  const auto& steps = made.program.steps;
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
