// Whether a factor may be infinite: then a sum that is multiplied by it is not the sum of its products.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// Parameters are assumed to be finite. An input may hold an infinity, which times a sum is one, and
// times terms of both signs none.
bool is_finite(const Graph& graph, ExprId factor);

// Whether numbers are as long as what is read from memory is: a quotient, an exponential or what another
// kernel made may be infinite, and then times a sum of terms of both signs or of zeros it is not what a sum
// of such is. True without a factor (-1).
bool is_bounded(const Graph& graph, ExprId factor);

}  // namespace nereid::compiler
