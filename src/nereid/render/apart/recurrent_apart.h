// Recurrent layers taken apart: the inputs' products of all time steps at once, then one time step after
// another.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// aten::lstm.input, aten::gru.input, aten::rnn_tanh.input, aten::rnn_relu.input: adds the steps and returns
// true, or adds none. Not with dropout, projections, or so many time steps that a search cannot take them
// all.
bool recurrent_apart(SimplerSteps& steps);

}  // namespace nereid::render
