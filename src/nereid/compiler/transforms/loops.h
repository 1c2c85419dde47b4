// Recurrences that forward writes as a Python loop:
//
//     h = tanh(x[t] @ w.T + b + h @ u.T)      for one t after the other
//
// become a recurrent layer (Recurrence): the products of the inputs are one product for all steps, and the
// steps are one node. A stack of the states reads that node's result.
//
// Precondition: at least three steps, each tanh or relu of a sum of which one term is a product of the state
// before with the same square matrix; the other terms are the same expressions at every step but for indices
// that advance by the same number from step to step.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// In place; before any other pass.
void roll_loops(Graph& graph);

}  // namespace nereid::compiler
