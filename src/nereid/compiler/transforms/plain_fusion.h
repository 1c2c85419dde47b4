// What one kernel does of several calls where fusion is plain or indexed (Fusion in choices.h).
#pragma once

#include <set>
#include <vector>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

constexpr size_t kMaxPlainSteps = 12;  // calls of a kernel
constexpr size_t kMaxRepeated = 4;     // functions of what one node reads at several places
constexpr size_t kMaxPlaces = 9;       // at which it does

// The node goes over what it loads there as it is in memory, one element after the other, be it reshaped;
// what is broadcast it goes over several times. A reduction's rows and columns have an order each: a sum over
// the first of two dimensions goes element by element, too.
bool reads_in_order(const Graph& graph, const Node& node, const Expr& load);
// Strides, an offset and what a gather read say what is read: dimensions are not cut or folded on the way.
bool reads_by_index(const Graph& graph, const Expr& load);
// All that the node loads it reads in order, and it does not use its position; or, where it does, by index,
// and it may.
bool is_plain(const Graph& graph, const Node& node, Fusion fusion);
// Both are of one call.
bool of_one_call(const Node& a, const Node& b);

// Which maps are inlined into their readers. Nodes are looked at one after the other, each once it has
// taken in what it does.
class PlainFusion {
 public:
  PlainFusion(const Graph& graph, const std::vector<bool>& live, Fusion fusion);  // the graph is referred to

  void look_at(const Node& node);
  bool takes(const Node& reader, const Node& made) const {
    return !kept_.contains(made.out) && fuses_with(reader, made);
  }

 private:
  bool fuses_with(const Node& reader, const Node& made) const;
  bool is_kept(const Node& made) const;
  int64_t count(TensorId tensor) const {
    return element_count(graph_.tensors[static_cast<size_t>(tensor)].sizes);
  }

  const Graph& graph_;
  const Fusion fusion_;
  std::vector<std::vector<NodeId>> readers_;  // of each tensor
  std::set<TensorId> kept_ = {};              // of maps that are not taken in
  std::set<TensorId> of_rows_ = {};           // made by reductions, or of that element by element
};

}  // namespace nereid::compiler
