#include "nereid/compiler/transforms/plain_fusion.h"

#include <algorithm>
#include <utility>

#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

bool reads_in_order(const Graph& graph, const Node& node, const Expr& load) {
  const Extents extents = node.extents(), &sizes = graph.tensors[static_cast<size_t>(load.tensor)].sizes;
  const std::vector<int64_t> strides = row_major(sizes);
  Index address;
  for (size_t d = 0; d < sizes.size(); ++d) address = address + load.at[d] * strides[d];
  if (address.constant() != 0 || !load.args.empty()) return false;
  std::vector<std::pair<int64_t, int>> steps;  // strides, dimensions
  for (const auto& [atom, stride] : address.terms()) {
    if (atom.kind != Atom::Kind::kDimension) return false;
    if (extents[static_cast<size_t>(atom.dimension)] > 1) steps.emplace_back(stride, atom.dimension);
  }
  std::ranges::sort(steps);
  int64_t next = 1;
  int row = static_cast<int>(node.sizes.size()), column = static_cast<int>(extents.size());
  for (const auto& [stride, dimension] : steps) {
    int& last = static_cast<size_t>(dimension) < node.sizes.size() ? row : column;
    if (stride != next || dimension >= last) return false;
    next *= extents[static_cast<size_t>(dimension)];
    last = dimension;
  }
  return true;
}

bool reads_by_index(const Graph& graph, const Expr& load) {
  const std::vector<int64_t> strides = row_major(graph.tensors[static_cast<size_t>(load.tensor)].sizes);
  Index address;
  for (size_t d = 0; d < load.at.size(); ++d) address = address + load.at[d] * strides[d];
  return std::ranges::all_of(address.terms(),
                             [](const auto& term) { return term.first.kind == Atom::Kind::kDimension; });
}

bool is_plain(const Graph& graph, const Node& node, Fusion fusion) {
  return std::ranges::all_of(graph.exprs.below(node.body), [&](ExprId id) {
    const Expr& expr = graph.exprs[id];
    const bool indexed = fusion == Fusion::kIndexed;
    if (expr.kind == Expr::Kind::kIndex || expr.kind == Expr::Kind::kWithin) return indexed;
    return expr.kind != Expr::Kind::kLoad || reads_in_order(graph, node, expr) ||
           (indexed && reads_by_index(graph, expr));
  });
}

bool of_one_call(const Node& a, const Node& b) {
  return !a.steps.empty() && !b.steps.empty() && *a.steps.rbegin() == *b.steps.rbegin();
}

PlainFusion::PlainFusion(const Graph& graph, const std::vector<bool>& live, Fusion fusion)
    : graph_(graph), fusion_(fusion), readers_(graph.tensors.size()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (live[n])
      for (const TensorId read : graph.reads(graph.nodes[n]))
        readers_[static_cast<size_t>(read)].push_back(static_cast<NodeId>(n));
}

void PlainFusion::look_at(const Node& node) {
  const bool reduces = node.reduction != Reduction::kNone;
  if (!reduces && is_kept(node)) kept_.insert(node.out);
  const int64_t elements = element_count(node.sizes);
  if (reduces || std::ranges::any_of(graph_.reads(node), [&](TensorId read) {
        return of_rows_.contains(read) && count(read) == elements;
      }))
    of_rows_.insert(node.out);
}

// Every element of the map is one of the reader's, in the same order; by index what is itself plain may be
// any of them. A reduction takes in only what is itself plain.
bool PlainFusion::fuses_with(const Node& reader, const Node& made) const {
  if (of_one_call(reader, made)) return true;
  if (element_count(made.sizes) == 1 && graph_.reads(made).size() <= 1) return true;  // a number
  if (reader.special() || is_contraction(graph_, reader)) return false;
  const bool plain = is_plain(graph_, made, fusion_);
  if (reader.reduction != Reduction::kNone && !plain) return false;
  const bool indexed = plain && fusion_ == Fusion::kIndexed;
  const auto& exprs = graph_.exprs;
  const auto places = static_cast<size_t>(std::ranges::count_if(exprs.below(reader.body), [&](ExprId id) {
    return exprs[id].kind == Expr::Kind::kLoad && exprs[id].tensor == made.out;
  }));
  const auto functions = static_cast<size_t>(std::ranges::count_if(
      exprs.below(made.body), [&](ExprId id) { return exprs[id].kind == Expr::Kind::kApply; }));
  if (indexed && places > 1 && (functions > kMaxRepeated || places > kMaxPlaces)) return false;
  std::set<int> steps = reader.steps;
  steps.insert(made.steps.begin(), made.steps.end());
  return steps.size() <= kMaxPlainSteps &&
         (indexed || element_count(made.sizes) == element_count(reader.extents())) &&
         std::ranges::all_of(exprs.below(reader.body), [&](ExprId id) {
           const Expr& expr = exprs[id];
           return expr.kind != Expr::Kind::kLoad || expr.tensor != made.out ||
                  reads_in_order(graph_, reader, expr) || (indexed && reads_by_index(graph_, expr));
         });
}

// A map is computed once, unless all who read it may do it. What ends a call that reduces, as a mean's
// division does, belongs to the reduction's kernel; what ends a reduction over rows, as a norm does, is taken
// in by one who goes on element by element, and what is not plain by one.
bool PlainFusion::is_kept(const Node& made) const {
  const int64_t elements = element_count(made.sizes);
  const bool ends_reduction = std::ranges::any_of(graph_.reads(made), [&](TensorId read) {
    return of_rows_.contains(read) && count(read) > 1 && count(read) < elements;
  });
  const bool ends_call = std::ranges::any_of(graph_.reads(made), [&](TensorId read) {
    const Node* maker = graph_.maker(read);
    return maker != nullptr && maker->reduction != Reduction::kNone && count(read) == elements &&
           of_one_call(*maker, made) && !is_contraction(graph_, *maker);
  });
  std::set<int> calls;
  for (const NodeId id : readers_[static_cast<size_t>(made.out)]) {
    const Node& reader = graph_.nodes[static_cast<size_t>(id)];
    if (!fuses_with(reader, made)) return true;
    if (of_one_call(reader, made)) continue;
    if (ends_call || (ends_reduction && reader.reduction != Reduction::kNone)) return true;
    if (!reader.steps.empty()) calls.insert(*reader.steps.rbegin());
  }
  return calls.size() > 1 && (ends_reduction || !is_plain(graph_, made, fusion_));
}

}  // namespace nereid::compiler
