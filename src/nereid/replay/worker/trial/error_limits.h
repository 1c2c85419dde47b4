// How much error a trial's outputs are allowed: what TF32, the rounding of inputs and rounding on the way
// make of them.
#pragma once

#include <vector>

#include "nereid/replay/worker/trial/trial_forward.h"
#include "nereid/replay/worker/trial/trial_inputs.h"

namespace nereid::replay {

// What the trial's distribution says of outputs: which have come to one number, how alike roundings are.
void set_expectations(const TrialForward& forward, const Trial& trial, const Tolerance& tolerance,
                      std::vector<OutputTensors>& outputs);

// Where PyTorch lets a GPU compute with TF32, an operand may be rounded to it or truncated.
void take_tf32(TrialForward& forward, const Tolerance& tolerance, const Comparison& comparison,
               std::vector<OutputTensors>& outputs);

// Kernels that round some factors and truncate others err by a part of what truncating all of them does, and
// parts may have opposite signs. Where an answer is refused, right ones get samples of that. Says whether
// they did.
bool mix_tf32(TrialForward& forward, const Tolerance& tolerance, const Comparison& comparison,
              std::vector<OutputTensors>& outputs);

// Inputs that move by half an ulp move outputs by what no candidate can avoid.
void move_inputs(TrialForward& forward, TrialInputs& inputs, const Trial& trial, Comparison& comparison,
                 std::vector<OutputTensors>& outputs);

// An index is right or wrong, and how nearly is not known: what rounding on the way does to the values that
// it points to decides.
bool nearly_agrees(TrialForward& forward, const Comparison& comparison,
                   const std::vector<OutputTensors>& outputs);

// Where everything hangs on one number on the way (a loss, a norm), the reference's own error may be small
// by chance: so it is measured again, with every result on the way rounded up or down.
void round_intermediates(TrialForward& forward, const Trial& trial, std::vector<OutputTensors>& outputs);

}  // namespace nereid::replay
