#include "nereid/compiler/ir/graph.h"

#include <algorithm>

namespace nereid::compiler {

Extents Node::extents() const {
  Extents all = sizes;
  all.insert(all.end(), reduced.begin(), reduced.end());
  return all;
}

std::vector<int64_t> row_major(const Extents& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

int64_t element_count(const Extents& sizes) {
  int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return count;
}

int64_t product_of(const Extents& sizes, const std::vector<int>& dims) {
  int64_t product = 1;
  for (const int d : dims) product *= sizes[static_cast<size_t>(d)];
  return product;
}

TensorId Graph::add_leaf(const trace::Value& value, trace::ValueId id, std::string name) {
  tensors.push_back({.type = value.dtype,
                     .sizes = value.sizes,
                     .strides = value.strides,
                     .offset = value.offset,
                     .node = -1,
                     .leaf = id,
                     .storage = value.storage,
                     .name = std::move(name)});
  return static_cast<TensorId>(tensors.size()) - 1;
}

TensorId Graph::add_node(Node node, DType type, std::vector<int64_t> layout, Extents sizes) {
  const auto id = static_cast<TensorId>(tensors.size());
  node.out = id;
  if (sizes.empty()) sizes = node.sizes;
  if (layout.empty()) layout = row_major(sizes);
  tensors.push_back({.type = type,
                     .sizes = std::move(sizes),
                     .strides = std::move(layout),
                     .offset = 0,
                     .node = static_cast<NodeId>(nodes.size()),
                     .leaf = -1,
                     .name = node.name});
  nodes.push_back(std::move(node));
  return id;
}

std::vector<TensorId> Graph::results() const {
  std::vector<TensorId> all = outputs;
  for (const Update& update : updates) all.push_back(update.from);
  return all;
}

const Node* Graph::maker(TensorId tensor) const {
  const NodeId node = tensors.at(static_cast<size_t>(tensor)).node;
  return node < 0 ? nullptr : &nodes[static_cast<size_t>(node)];
}

std::optional<ExprId> Graph::inlined(const Expr& load, const Extents& extents) {
  const Node map = *maker(load.tensor);
  if (load.args.empty()) return exprs.substitute(map.body, load.at, extents);
  const ExprId body = exprs.replace_loads(map.body, [&](const Expr& read) {
    const Expr copy = read;
    std::vector<Index> at = copy.at;
    std::vector<ExprId> further = copy.args;
    further.resize(at.size(), exprs.integer(0));
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t size = tensors[static_cast<size_t>(copy.tensor)].sizes[d];
      const Bounds bounds = at[d].bounds(map.sizes);
      if (bounds.low >= 0 && bounds.high < size) continue;
      const ExprId place = exprs.apply(Fn::kAdd, {exprs.index(at[d]), further[d]});
      const ExprId above = exprs.apply(Fn::kMax, {place, exprs.integer(0)});
      further[d] = exprs.apply(Fn::kMin, {above, exprs.integer(size - 1)});
      at[d] = Index();
    }
    return exprs.load(copy.tensor, std::move(at), copy.type, std::move(further));
  });
  return exprs.substitute(body, load.at, load.args, extents);
}

std::vector<TensorId> Graph::reads(const Node& node) const {
  std::vector<TensorId> found;
  for (const auto& [value, tensor] : node.inputs) found.push_back(tensor);
  if (node.call != nullptr) return found;
  const auto note = [&](ExprId root) {
    for (const ExprId id : exprs.below(root)) {
      const Expr& expr = exprs[id];
      if (expr.kind == Expr::Kind::kLoad && std::ranges::find(found, expr.tensor) == found.end())
        found.push_back(expr.tensor);
    }
  };
  note(node.body);
  for (const auto& [left, right] : node.low) note(left), note(right);
  return found;
}

}  // namespace nereid::compiler
