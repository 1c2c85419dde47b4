// What the text of a reference's forward says about how exactly its outputs can be compared.
#pragma once

#include <set>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// The forward holds a function that tanh.approx may stand in for.
bool has_approximate_functions(const trace::Trace& trace);

// The forward holds attention as one operator.
bool has_attention(const trace::Trace& trace);

// The bounds of clamps: what has come to one is exact there, and what is between them shows all digits.
std::vector<double> bounds_of_clamps(const trace::Trace& trace);

// Storages that a forward searches as sorted rows (the edges of `bucketize`, what `searchsorted` searches):
// in another order no answer is defined.
std::set<trace::StorageId> searched_in_order(const trace::Trace& trace);

// Numbers that the forward compares something with, the bounds of clamps among them.
std::vector<double> compared_numbers(const trace::Trace& trace);

// A number stands for an infinity: one of the trace's arguments is between -2^45 and -1000 (a mask's -1e9).
// Whether that is below all others depends on how large the others are.
bool has_mask_constant(const trace::Trace& trace);

// Storages of what the forward makes with an infinity that it names (masked_fill by -inf).
std::set<trace::StorageId> made_with_infinity(const trace::Trace& trace);

// The forward takes exponentials or logarithms: of infinities kernels make NaN where an operator does not.
bool has_exponentials(const trace::Trace& trace);

// The forward makes integers of floating-point numbers, but for comparisons and places.
bool makes_integers_of_floats(const trace::Trace& trace);

// Each element of the outputs is computed from one element of each input.
bool works_on_elements(const trace::Trace& trace);

// Exact inputs alone decide comparisons and choices: some of them are looked at as they are, and what is
// computed is neither compared nor chosen from.
bool decides_by_inputs(const trace::Trace& trace);

}  // namespace nereid::replay
