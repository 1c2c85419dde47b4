// An expression as a linear combination of elements of tensors that are sums: what sums_of_products.h takes
// apart.
#pragma once

#include <set>
#include <vector>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// `factor` x an element of `tensor`.
struct Term {
  ExprId factor = -1;  // -1: one
  TensorId tensor = -1;
  std::vector<Index> at = {};
};
struct Linear {
  std::vector<Term> terms = {};
  std::vector<ExprId> rest = {};   // what is added and leads to no sum
  std::set<TensorId> walked = {};  // maps that were looked through
};

// factor x of, in `type`.
ExprId times(Exprs& exprs, ExprId factor, ExprId of, DType type);

class LinearSums {
 public:
  // `readers`: of each tensor, reader_counts; both outlive this.
  LinearSums(Graph& graph, const std::vector<int>& readers) : graph_(graph), readers_(readers) {}

  // What makes the tensor, where nothing else reads it; else null. Of a tensor that stays (keep), too.
  const Node* own(TensorId id) const {
    return id == kept_ || readers_[static_cast<size_t>(id)] == 1 ? graph_.maker(id) : nullptr;
  }
  // A sum that others read as well, which is taken apart for one reader; -1: none.
  void keep(TensorId id) { kept_ = id; }

  // `body` in `type`, over `extents`. `steps` gets those of the maps that are looked through.
  Linear combination(ExprId body, DType type, const Extents& extents, std::set<int>& steps);

  // Whether nothing that is not taken apart reads what would be gone.
  bool apart(const Linear& found) const;

 private:
  Exprs& exprs() const { return graph_.exprs; }
  bool leads_to_sum(TensorId id) const;
  bool leads_to_sum_under(ExprId of) const;
  ExprId times(ExprId factor, ExprId of) { return compiler::times(exprs(), factor, of, type_); }
  ExprId negative(ExprId factor);
  void collect(ExprId of, ExprId factor, const Extents& extents, Linear& found);

  Graph& graph_;
  const std::vector<int>& readers_;
  TensorId kept_ = -1;
  DType type_ = DType::kF32;
  std::set<int> steps_;
};

}  // namespace nereid::compiler
