#include "nereid/synth/sample/maker.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "nereid/synth/sample/degeneracy.h"
#include "nereid/synth/sample/layer_options.h"
#include "nereid/synth/sample/size_class.h"

namespace nereid::synth {
namespace {

constexpr uint32_t kCodeStyleStream = 1, kFreeSizesStream = 2'000, kFreeFormsStream = 3'000;
constexpr int kMaxAttempts = 3;  // of details that fit

// 50000, 1700, 999, 7777, 1001, 5003, 100003: digits that repeat, and numbers next to powers of ten.
int32_t with_repeated_digits(Rng& rng, int32_t low, int32_t high) {
  const auto below = [&](int32_t n) { return static_cast<int32_t>(rng.below(static_cast<uint32_t>(n))); };
  for (int tries = 0; tries < 8; ++tries) {
    int digits = 1;
    for (int32_t rest = low + below(high - low + 1); rest >= 10; rest /= 10) ++digits;
    int32_t power = 1;
    for (int d = 1; d < digits; ++d) power *= 10;
    const int32_t digit = 1 + below(9);
    int32_t made = digit * power;
    switch (below(5)) {
      case 0:
        break;
      case 1:
        made += below(10) * (power / 10);
        break;
      case 2:
        made = digit * ((10 * power - 1) / 9);
        break;
      case 3:
        made = 10 * power + below(17) - 8;
        break;
      default:
        made += 1 + below(9);
    }
    if (made >= low && made <= high) return made;
  }
  return low + below(high - low + 1);
}

// Every size of the grid becomes another one of its class, the same one wherever it stands: some any, some as
// people choose them, some with repeated digits. What was of the highest class may be up to 64 times as
// large.
void free_sizes(Rng& rng, SampledProgram& sampled) {
  std::map<int32_t, int32_t> chosen;
  const bool repeated = rng.below(2) == 0;
  const auto set_free = [&](int32_t& size) {
    const int of = size_class_of(size);
    if (of < 2) return;  // the grid has all of them
    const auto [place, is_new] = chosen.try_emplace(size, size);
    if (is_new) {
      static constexpr int32_t kRound[] = {1,  1,  1,  1,  1,   1,   4,    8,    10,
                                           16, 32, 50, 64, 100, 100, 1000, 1000, 10000};
      static constexpr int32_t kBeyond[] = {1, 1, 1, 1, 8, 8, 8, 64};
      const int32_t low = cap(of - 1) + 1,
                    high = cap(of) * (of + 1 == kClasses ? kBeyond[rng.below(std::size(kBeyond))] : 1);
      if (repeated && rng.below(3) != 0) {
        place->second = with_repeated_digits(rng, low, high);
      } else {
        const int32_t any = low + static_cast<int32_t>(rng.below(static_cast<uint32_t>(high - low + 1)));
        const int32_t round = kRound[rng.below(std::size(kRound))], rounded = any / round * round;
        static constexpr int32_t kOffsets[] = {0, 0, 0, 0, -1, 1, 3};  // 999, 1001, 10003
        const int32_t near = rounded + (round > 1 ? kOffsets[rng.below(std::size(kOffsets))] : 0);
        place->second = near < low || near > high ? any : near;
      }
    }
    size = place->second;
  };
  for (ops::Shape* shape : {&sampled.result, &sampled.waiting})
    for (size_t d = 0; d < shape->rank; ++d) set_free(shape->dims[d]);
  for (SampledStep& step : sampled.steps)
    for (int32_t& inner : step.inner) set_free(inner);
}

bool is_sound(const Program& program) {
  return std::all_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return ops::is_sound(step.applied); });
}

double largest(const Program& program) {
  double most = 0;
  for (const Step& step : program.steps) {
    most = std::max(most, static_cast<double>(step.applied.out.elements()));
    for (size_t slot = 0; slot < step.operands.size() && slot < ops::kMaxSlots; ++slot)
      most = std::max(most, static_cast<double>(step.applied.operands[slot].elements()));
  }
  return most;
}

}  // namespace

Maker::Maker(const Space& space, const MakerConfig& config)
    : space_(space), config_(config), sampler_(space, config.length, config.uniform, config.generation) {}

// Where nothing that was drawn fits, forms stay as they are.
void Maker::free_forms(Rng& rng, double most, Program& program) {
  for (int tries = 0; tries < kMaxAttempts; ++tries) {
    freed_ = sampled_;
    draw_layer_options(rng, program, space_, freed_);
    resolve(freed_, space_, freed_program_);
    if (!is_sound(freed_program_) || largest(freed_program_) > most) continue;
    std::swap(sampled_, freed_), std::swap(program, freed_program_);
    return;
  }
}

void Maker::draw(uint64_t index, int sizes, Made& made) {
  made.index = index, made.sizes = sizes;
  sampler_.draw(config_.seed, index, sampled_);
  if (sizes > 0) sampler_.draw_sizes(config_.seed, index, sizes, sampled_);
  for (SampledStep& step : sampled_.steps) step.details = {};
  if (config_.free_sizes > 0) {
    Rng rng(config_.seed, index, kFreeSizesStream + static_cast<uint32_t>(sizes));
    if (rng.below(1U << 20) < config_.free_sizes * (1U << 20)) free_sizes(rng, sampled_);
  }
  resolve(sampled_, space_, made.program);
  const double most = std::max(std::exp2(kBitsPerClass * space_.bounds().elements), 0x1p21);
  if (config_.free_sizes > 0 && largest(made.program) > most) {
    made.outcome = Outcome::kNoSize;
    return;
  }
  if (!is_sound(made.program)) {
    made.outcome = Outcome::kNoSize;
    return;
  }
  if (config_.free_forms > 0) {
    Rng rng(config_.seed, index, kFreeFormsStream);  // of later sizes as well
    if (rng.below(1U << 20) < config_.free_forms * (1U << 20)) free_forms(rng, most, made.program);
  }
  if (is_degenerate(made.program)) {
    made.outcome = Outcome::kDegenerate;
    return;
  }
  made.outcome = Outcome::kMade;
  made.hashes = hashes_of(made.program);
}

void Maker::write(Made& made) const {
  Rng rng(config_.seed, made.index, kCodeStyleStream);  // later sizes are written in the same style
  made.code.clear();
  made.style = draw_code_style(rng, made.program);
  made.layout = emit(made.program, made.style, made.code);
}

bool held_out(uint64_t structure, double share) {
  return static_cast<double>(structure >> 11) * 0x1p-53 < share;
}

}  // namespace nereid::synth
