// From logits to tokens, on the device where the logits are.
//
// A sequence's distribution is softmax(logits / temperature), then cut, in this order: `top_k` keeps the k
// most probable tokens (of equals the one with the lower number first); `top_p` keeps the fewest most
// probable of these whose share of the remaining probability reaches top_p; `min_p` drops what is less
// probable than min_p times the most probable. The remainder is scaled to one and drawn from by inversion,
// with one uniform number: a token depends on its own logits, parameters, seed and index alone. Temperature 0
// takes the most probable token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nereid::lm {

struct DrawParameters {
  double temperature = 1;  // 0: greedy
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // in (0, 1]; 1: all
  double min_p = 0;        // in [0, 1]; 0: all
  uint64_t seed = 0;
  uint64_t index = 0;  // of this token among those its sequence draws
};

struct Drawn {
  std::vector<int64_t> tokens;
  // Of those tokens: under softmax(logits) as the model gave them, and under the distribution that was drawn
  // from (0 where greedy).
  std::vector<float> logprobs, drawn_logprobs;
};

// logits: [sequences, vocab], of any floating-point type; one parameter set for each row.
Drawn draw(const at::Tensor& logits, const std::vector<DrawParameters>& parameters);

struct Likely {
  int64_t token = 0;
  float logprob = 0;  // under softmax(logits)
};

// The counts[i] most probable tokens of each row, the most probable first, of equals the lower first. Rows
// with a count of 0 cost nothing.
std::vector<std::vector<Likely>> likeliest(const at::Tensor& logits, const std::vector<int64_t>& counts);

}  // namespace nereid::lm
