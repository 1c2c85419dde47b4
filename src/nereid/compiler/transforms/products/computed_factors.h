// Which maps are computed again in the loads of the products that read them.
//
// A map between memory and products, as `elu(x) + 1` of a linear attention, is stored only to be read once by
// each of them. It is not stored where the products compute it in less time than memory takes for it: to
// read what it is made of and to write it, and for each reader what the two differ by. A product computes
// an element once for each of its tiles of the other factor. Reductions and maps that read it compute it
// anyway.
//
// Precondition: the map reads tensors in memory by their dimensions alone (no gather, no reshape that cuts a
// dimension), which no product, reduction or scan of the forward makes, for their kernels would store the map
// as they end; all its readers are products and what takes in a map; and it is no result.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

bool computed_in_products(const Graph& graph, TensorId tensor, const std::vector<bool>& live,
                          const Target& target);

}  // namespace nereid::compiler
