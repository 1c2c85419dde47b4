// What passes over contractions share.
#pragma once

#include <optional>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// The load that a contraction's factor is: of float32, at places that are known, alone or where a condition
// holds (a padding's) and else zero.
std::optional<ExprId> factor_load(const Graph& graph, ExprId factor);
// The same of float16 or bfloat16, widened.
std::optional<ExprId> half_factor_load(const Graph& graph, ExprId factor);
// A factor whose load became another of the same type: as it is stored where it is there, then widened.
ExprId factor_with(Graph& graph, ExprId factor, ExprId load);

// Elements of the dimensions of the result that one factor of a contraction has alone.
int64_t products_of(const Graph& graph, const Node& node, size_t side);

// A node at the end of those that a pass writes anew; the second makes its tensor too.
TensorId append(Graph& graph, Node node);
TensorId append(Graph& graph, Node node, DType type);

}  // namespace nereid::compiler
