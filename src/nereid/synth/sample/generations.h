// Operators in the order in which they joined the catalogue, so that what is sampled without one stays what
// it was before it came (docs/synth.md, "A catalogue that grows").
#pragma once

#include <functional>

#include "nereid/ops/operator.h"

namespace nereid::synth {

// 0: of the first catalogue; else the place of its name in generations.cpp, from 1.
int generation(const ops::Operator& op);
using Generation = std::function<int(const ops::Operator&)>;

}  // namespace nereid::synth
