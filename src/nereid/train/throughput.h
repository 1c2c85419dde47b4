// How much a step computes, and how much a device could.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "nereid/lm/checkpoint/config.h"

namespace nereid::train {

// FLOPs of one forward and backward pass over documents that are one after the other: 6 for each token and
// each weight that it is multiplied with (embedding rows are only looked up; the head counts, tied or not),
// and causal attention's 6 * n * (n + 1) * heads * head_dim a layer for a document of n tokens. What is
// computed again to save memory does not count.
double training_flops(const lm::Config& shape, std::span<const int32_t> cumulative_lengths);

// Dense FLOP/s of the data sheet for products of bfloat16, by the device's name; none for what is not known.
std::optional<double> peak_bfloat16_flops(std::string_view device_name);

}  // namespace nereid::train
