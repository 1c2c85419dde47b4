// Steps of a forward taken apart: each in simpler steps that compute the same, so that a model that cannot
// write a step may write these. What remains besides simple arithmetic, products, reductions and norms are
// views, copies, casts and constants, which PyTorch may do under every policy.
//
// Convolutions are products of windows, transposed ones too; pools are reductions of windows; recurrent
// layers are their time steps; interpolation is a weighted sum of neighbours; complex numbers are pairs;
// comparisons are differences cast to bool; what is broadcast is copied first. Other steps are decomposed as
// canonicalize.h does.
#pragma once

#include <optional>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::render {

// The trace with these steps of its phase `phase`, of calls alone, taken apart. Nothing where none of them
// has a simpler form, or the result is too long for a search.
std::optional<trace::Trace> steps_apart(const trace::Trace& trace, size_t phase,
                                        const std::vector<size_t>& steps);

}  // namespace nereid::render
