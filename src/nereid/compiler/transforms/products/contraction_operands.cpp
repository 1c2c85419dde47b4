#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {

namespace {

ExprId without_cast(const Graph& graph, ExprId id) {
  const Expr& expr = graph.exprs[id];
  return expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast ? expr.args[0] : id;
}

// The condition under which a factor is not zero, or -1; and what it is then.
struct Padded {
  ExprId condition = -1, value = -1;
};
std::optional<Padded> padded_of(const Graph& graph, ExprId factor) {
  const Expr& padded = graph.exprs[factor];
  if (padded.kind != Expr::Kind::kApply || padded.fn != Fn::kWhere) return Padded{-1, factor};
  const Expr& otherwise = graph.exprs[padded.args[2]];
  if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0) return std::nullopt;
  for (const ExprId under : graph.exprs.below(padded.args[0]))
    if (graph.exprs[under].kind == Expr::Kind::kLoad) return std::nullopt;
  return Padded{padded.args[0], padded.args[1]};
}

}  // namespace

std::optional<ExprId> factor_load(const Graph& graph, ExprId factor) {
  const auto padded = padded_of(graph, factor);
  if (!padded) return std::nullopt;
  const Expr& load = graph.exprs[padded->value];
  if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return std::nullopt;
  if (graph.tensors[static_cast<size_t>(load.tensor)].type != DType::kF32) return std::nullopt;
  return padded->value;
}

std::optional<ExprId> half_factor_load(const Graph& graph, ExprId factor) {
  const auto padded = padded_of(graph, without_cast(graph, factor));
  if (!padded) return std::nullopt;
  const ExprId found = without_cast(graph, padded->value);
  const Expr& load = graph.exprs[found];
  if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return std::nullopt;
  return load.type == DType::kF16 || load.type == DType::kBF16 ? std::optional(found) : std::nullopt;
}

ExprId factor_with(Graph& graph, ExprId factor, ExprId load) {
  const ExprId condition = padded_of(graph, without_cast(graph, factor))->condition;
  const DType type = graph.exprs[load].type;
  const ExprId stored =
      condition < 0 ? load : graph.exprs.apply(Fn::kWhere, {condition, load, graph.exprs.constant(0, type)});
  return graph.exprs.cast(stored, graph.exprs[factor].type);
}

int64_t products_of(const Graph& graph, const Node& node, size_t side) {
  const Expr& body = graph.exprs[node.body];
  int64_t products = 1;
  for (size_t d = 0; d < node.sizes.size(); ++d)
    if (graph.exprs.uses(body.args[side], static_cast<int>(d)) &&
        !graph.exprs.uses(body.args[1 - side], static_cast<int>(d)))
      products *= node.sizes[d];
  return products;
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

}  // namespace nereid::compiler
