#include "nereid/lm/checkpoint/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nereid::lm {
namespace {

void scale_as_llama3(const RopeScaling& scaling, std::vector<float>& frequencies) {
  const auto context = static_cast<float>(scaling.original_max_position_embeddings);
  const auto factor = static_cast<float>(scaling.factor);
  const auto low = static_cast<float>(scaling.low_freq_factor),
             high = static_cast<float>(scaling.high_freq_factor);
  for (float& frequency : frequencies) {
    const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
    if (wavelength < context / high) continue;
    if (wavelength > context / low) {
      frequency /= factor;
      continue;
    }
    const float smooth = (context / wavelength - low) / (high - low);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
}

double yarn_magnitude(double scale, double mscale) {
  return scale <= 1 ? 1 : 0.1 * mscale * std::log(scale) + 1;
}

double scale_as_yarn(const Config& config, std::vector<float>& frequencies) {
  const RopeScaling& scaling = config.rope_scaling;
  // The dimension whose wave turns so many times in the old context.
  const auto dimension_of = [&](double turns) {
    return static_cast<double>(config.head_dim) *
           std::log(static_cast<double>(scaling.original_max_position_embeddings) /
                    (turns * 2 * std::numbers::pi)) /
           (2 * std::log(config.rope_theta));
  };
  double low = dimension_of(scaling.beta_fast), high = dimension_of(scaling.beta_slow);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(config.head_dim - 1));
  if (low == high) high += 0.001;  // a step, not a division by zero
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const auto ramp = static_cast<float>((static_cast<double>(i) - low) / (high - low));
    const float kept = 1 - std::clamp(ramp, 0.0f, 1.0f);
    frequencies[i] = frequencies[i] / static_cast<float>(scaling.factor) * (1 - kept) + frequencies[i] * kept;
  }
  if (scaling.attention_factor) return *scaling.attention_factor;
  if (scaling.mscale.value_or(0) != 0 && scaling.mscale_all_dim.value_or(0) != 0)
    return yarn_magnitude(scaling.factor, *scaling.mscale) /
           yarn_magnitude(scaling.factor, *scaling.mscale_all_dim);
  return yarn_magnitude(scaling.factor, 1);
}

}  // namespace

Rope make_rope(const Config& config) {
  Rope rope;
  const auto theta = static_cast<float>(config.rope_theta);
  for (int64_t i = 0; i < config.head_dim; i += 2)
    rope.inverse_frequencies.push_back(
        1 / std::pow(theta, static_cast<float>(i) / static_cast<float>(config.head_dim)));
  switch (config.rope_scaling.kind) {
    case RopeScaling::Kind::kDefault:
      break;
    case RopeScaling::Kind::kLinear:
      for (float& frequency : rope.inverse_frequencies)
        frequency /= static_cast<float>(config.rope_scaling.factor);
      break;
    case RopeScaling::Kind::kLlama3:
      scale_as_llama3(config.rope_scaling, rope.inverse_frequencies);
      break;
    case RopeScaling::Kind::kYarn:
      rope.attention_factor = scale_as_yarn(config, rope.inverse_frequencies);
      break;
  }
  return rope;
}

}  // namespace nereid::lm
