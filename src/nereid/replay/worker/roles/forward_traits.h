// What the text of a reference's forward says about how exactly its outputs can be compared.
#pragma once

#include <set>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// The forward holds a function that tanh.approx may stand in for.
bool goes_near_one(const trace::Trace& trace);

// The bounds of clamps: what has come to one is exact there, and what is between them shows all digits.
std::vector<double> bounds_of_clamps(const trace::Trace& trace);

// Storages that a forward searches as sorted rows (the edges of `bucketize`, what `searchsorted` searches):
// in another order no answer is defined.
std::set<trace::StorageId> searched_in_order(const trace::Trace& trace);

}  // namespace nereid::replay
