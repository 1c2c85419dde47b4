// Rotary position embeddings: the frequency of each pair of a head's dimensions, scaled as config.json asks.
//
// Dimensions i and i + head_dim/2 of a query or key at position p are turned by the angle p *
// inverse_frequencies[i]. Unscaled that is theta^(-2i/head_dim) (Su et al., 2021). `linear` divides all by
// the factor; `llama3` divides those whose wavelength exceeds the old context, and blends in between; `yarn`
// (Peng et al., 2023) blends by the number of turns in the old context, and scales cosines and sines by
// `attention_factor`. Computed in float32, operation by operation, as transformers does: positions multiply
// what is rounded here.
#pragma once

#include <vector>

#include "nereid/lm/checkpoint/config.h"

namespace nereid::lm {

struct Rope {
  std::vector<float> inverse_frequencies;  // [head_dim / 2]
  double attention_factor = 1;
};

Rope make_rope(const Config& config);

}  // namespace nereid::lm
