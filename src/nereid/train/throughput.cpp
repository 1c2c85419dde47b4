#include "nereid/train/throughput.h"

#include <utility>

namespace nereid::train {

double training_flops(const lm::Config& shape, std::span<const int32_t> cumulative_lengths) {
  const auto hidden = static_cast<double>(shape.hidden_size),
             wide = static_cast<double>(shape.heads * shape.head_dim);
  const auto narrow = static_cast<double>(shape.key_value_heads * shape.head_dim);
  const double attention = hidden * (2 * wide + 2 * narrow),
               mlp = 3 * hidden * static_cast<double>(shape.intermediate_size);
  const auto layers = static_cast<double>(shape.layers);
  const double weights = layers * (attention + mlp) + hidden * static_cast<double>(shape.vocab_size);
  double flops = 0;
  for (size_t i = 1; i < cumulative_lengths.size(); ++i) {
    const double n = cumulative_lengths[i] - cumulative_lengths[i - 1];
    flops += 6 * n * weights + layers * 6 * n * (n + 1) * wide;
  }
  return flops;
}

std::optional<double> peak_bfloat16_flops(std::string_view device_name) {
  // "NVIDIA H100 PCIe" comes before the H100 that is not.
  for (const auto& [name, flops] : {std::pair{"H200", 989.4e12},
                                    {"H100 PCIe", 756e12},
                                    {"H100", 989.4e12},
                                    {"A100", 312e12},
                                    {"L40S", 362e12}})
    if (device_name.find(name) != device_name.npos) return flops;
  return std::nullopt;
}

}  // namespace nereid::train
