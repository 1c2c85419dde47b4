// Elements of a trial's outputs that are not judged, each for a reason of its own (docs/tolerance.md).
#pragma once

#include <vector>

#include "nereid/replay/worker/trial/trial_forward.h"

namespace nereid::replay {

// Whether the trial's inputs hold infinities or NaNs.
bool holds_no_numbers(const Trial& trial);

// Elements that are no numbers, where the inputs are others than the task's own, or NaNs are handled. Where
// only integers are others, infinities that the forward names and chooses are judged.
void leave_out_undefined(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs);

// Elements that no forward defines: they differ between numbers that stand for NaN and for infinity. False
// where the inputs hold none.
bool leave_out_conventions(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                           std::vector<OutputTensors>& outputs);

// A factor of zero hides from those numbers what it multiplies, and an infinity or a NaN times zero is a NaN:
// zeros that depend on them where factors of zero are ones are not judged. False where there are none.
bool leave_out_times_zero(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                          std::vector<OutputTensors>& outputs);

// Of numbers that are close to each other differences lose their digits, and how many
// depends on the way that they are computed: elements that inputs moved by half an ulp, so many times, move
// by 16 of them are not judged. (A sum of terms of one size may stay where it was by chance.) False where
// there are none.
bool leave_out_ill_conditioned(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs, int times);

// Where infinities or NaNs are what does not agree, elements that hang on how a sum is taken, or on whether
// a number just overflows, are not judged: their own number becomes NaN where the truth is finite. False
// where there are none.
bool leave_out_undecided(TrialForward& forward, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs);

// On inputs that are not the task's own, rounding noise may be divided by zero: whether that gives an
// infinity, which one, or a NaN hangs on the way that the noise is computed. Elements that become another of
// these, or a number, in some replay whose results are rounded up or down by chance are not judged. False
// where there are none.
bool leave_out_poles_of_noise(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                              std::vector<OutputTensors>& outputs);

// On inputs that are not the task's own, a candidate that takes a product or a sum in another order may
// overflow where the reference just does not: elements that inputs a quarter larger would make infinite are
// not judged. False where there are none.
bool leave_out_nearly_infinite(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs);

// A score that overflows, before or after it is scaled, may decide which finite number comes out: elements
// at which the reference's own types have no digit right for inputs a few times larger are not judged.
// False where there are none.
bool leave_out_near_overflow(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                             std::vector<OutputTensors>& outputs);

// Among scores that are far from zero rounding decides which of two nearly equal ones a softmax chooses:
// elements that inputs moved by 32 ulps leave without a digit, or with so few that they explain the error,
// are not judged. False where there are none, or more than half are.
bool leave_out_near_ties(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs);

// Overflow may give another infinity, or a NaN, where sums and products are taken in another order; and
// attention may make a number or a NaN of what a mask hides. False where there are none.
bool leave_out_overflown(const TrialForward& forward, const Trial& trial, Comparison& comparison,
                         std::vector<OutputTensors>& outputs);

// A result that a forward subtracts from itself, or from a sum that begins with it, leaves exactly zero;
// and rounding noise where kernels compute it anew for each of its readers. On a grid, results may be equal
// to bounds but for rounding. Elements that hang on that (zero divided by its norm, a comparison) are not
// judged. False where there are none, or more than half are and the inputs are on no grid.
bool leave_out_noise_sensitive(TrialForward& forward, const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs);

}  // namespace nereid::replay
