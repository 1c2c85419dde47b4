// What forms leave open, drawn apart from the programs: windows as people write them, layers without a bias.
#pragma once

#include "nereid/synth/program.h"
#include "nereid/synth/sample/rng.h"

namespace nereid::synth {

// Into the steps, and into the results' sizes: those that a window makes of a grid's size. `plain`: resolved
// without. What comes of it may not be sound, or too large.
void draw_layer_options(Rng& rng, const Program& plain, const Space& space, SampledProgram& sampled);

}  // namespace nereid::synth
