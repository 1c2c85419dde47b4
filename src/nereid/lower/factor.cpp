#include "nereid/lower/factor.h"

namespace nereid::lower {

std::optional<ExprId> factor_load(const Graph& graph, ExprId factor) {
  if (const Expr& padded = graph.exprs[factor];
      padded.kind == Expr::Kind::kApply && padded.fn == Fn::kWhere) {
    const Expr& otherwise = graph.exprs[padded.args[2]];
    if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0) return std::nullopt;
    for (const ExprId under : graph.exprs.below(padded.args[0]))
      if (graph.exprs[under].kind == Expr::Kind::kLoad) return std::nullopt;
    factor = padded.args[1];
  }
  const Expr& load = graph.exprs[factor];
  if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return std::nullopt;
  if (graph.tensors[static_cast<size_t>(load.tensor)].type != DType::kF32) return std::nullopt;
  return factor;
}

TensorId append(Graph& graph, Node node) {
  const auto id = static_cast<NodeId>(graph.nodes.size());
  const TensorId out = node.out;
  if (out >= 0) graph.tensors[static_cast<size_t>(out)].node = id;
  for (const TensorId each : node.outs) graph.tensors[static_cast<size_t>(each)].node = id;
  graph.nodes.push_back(std::move(node));
  return out;
}

TensorId append(Graph& graph, Node node, DType type) {
  node.out = static_cast<TensorId>(graph.tensors.size());
  graph.tensors.push_back(
      {.type = type, .sizes = node.sizes, .strides = row_major(node.sizes), .node = -1, .name = node.name});
  return append(graph, std::move(node));
}

}  // namespace nereid::lower
