#include "nereid/compiler/ir/graph.h"

#include <algorithm>
#include <functional>

namespace nereid::compiler {

Extents Node::extents() const {
  Extents all = sizes;
  all.insert(all.end(), reduced.begin(), reduced.end());
  return all;
}

Extents row_major(const Extents& sizes) {
  Extents strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = max(sizes[d], 1) * strides[d];
  return strides;
}

Size element_count(const Extents& sizes) {
  Size count = 1;
  for (const Size& size : sizes) count *= size;
  return count;
}

Size product_of(const Extents& sizes, const std::vector<int>& dims) {
  Size product = 1;
  for (const int d : dims) product *= sizes[static_cast<size_t>(d)];
  return product;
}

// Strides of what is dense in memory, in whichever order of dimensions, are products of sizes.
TracedTensor with_symbols(const trace::Trace& trace, trace::ValueId id, const OtherBatch& other) {
  const trace::Value& value = trace.values[static_cast<size_t>(id)];
  const bool known = other.trace != nullptr && static_cast<size_t>(id) < other.trace->values.size() &&
                     other.trace->values[static_cast<size_t>(id)].sizes.size() == value.sizes.size();
  const trace::Value& there = known ? other.trace->values[static_cast<size_t>(id)] : value;
  const auto size = [&](int64_t here, int64_t at_other, bool dimension) {
    const int64_t rise = here - at_other, run = other.batch - other.other;
    if (rise == 0 || rise % run != 0) return dimension ? Size::dimension(here) : Size(here);
    return Size::of_batch(other.batch, rise / run, here - rise / run * other.batch);
  };
  TracedTensor made{.storage = value.storage,
                    .dtype = value.dtype,
                    .sizes = {},
                    .strides = {},
                    .offset = size(value.offset, there.offset, false)};
  std::vector<size_t> inner_first(value.sizes.size());
  for (size_t d = 0; d < value.sizes.size(); ++d) {
    inner_first[d] = d;
    made.sizes.push_back(size(value.sizes[d], there.sizes[d], true));
    made.strides.push_back(size(value.strides[d], there.strides[d], false));
  }
  std::ranges::stable_sort(inner_first, [&](size_t a, size_t b) {
    return std::pair(value.strides[a], b) < std::pair(value.strides[b], a);
  });
  Size stride = 1;
  for (const size_t d : inner_first) {
    if (made.strides[d] != stride) break;
    made.strides[d] = stride;
    stride = max(made.sizes[d], 1) * stride;
  }
  return made;
}

Size along_strides(int64_t elements, const Extents& strides) {
  Extents order = strides;
  std::ranges::stable_sort(order, std::ranges::greater(), &Size::value);
  Size sum = 0;
  for (const Size& stride : order) {
    if (stride == 0) continue;
    sum += elements / stride.value() * stride;
    elements %= stride.value();
  }
  return sum + elements;
}

TensorId Graph::add_leaf(const TracedTensor& value, trace::ValueId id, std::string name) {
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

TensorId Graph::add_node(Node node, DType type, Extents layout, Extents sizes) {
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
  if (!node.parts.empty()) return node.parts;
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
