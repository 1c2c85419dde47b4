// Other words for the same calls: what PyTorch traces alike, an author may put in several ways.
#pragma once

#include <cstdint>
#include <string>

#include "nereid/ops/applied.h"

namespace nereid::synth {

// A pattern of the catalogue (ops/spelling.h) in the words of an author: bit b of `phrasing` says whether way
// b is taken, where it applies. 0: as the catalogue has it.
std::string phrased(std::string pattern, const ops::Applied& applied, uint32_t phrasing);

}  // namespace nereid::synth
