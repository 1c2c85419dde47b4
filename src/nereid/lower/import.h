// From a trace to the tensor IR: every operator of the last forward, written out.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "nereid/base/result.h"
#include "nereid/lower/graph.h"

namespace nereid::lower {

// An error names the operator that has no expression here, and its line.
Result<Graph> import(const trace::Trace& trace);

// What an operator's importer works with: one call, its arguments read and its results defined.
class Importer {
 public:
  Importer(const trace::Trace& trace, Graph& graph) : trace_(trace), graph_(graph) {}

  Status run();
  // Why nothing was defined; the importer of an operator says so where it meets arguments it does not know.
  Status cannot(std::string why) const;

  Exprs& exprs() { return graph_.exprs; }
  const trace::Call& call() const { return *call_; }

  // Arguments by position or name, in the schema's order.
  const trace::Arg* arg(size_t position, std::string_view name) const;
  std::optional<trace::ValueId> tensor(const trace::Arg* arg) const;
  double number(const trace::Arg* arg, double otherwise) const;
  int64_t integer(const trace::Arg* arg, int64_t otherwise) const;
  bool flag(const trace::Arg* arg, bool otherwise) const;
  std::vector<int64_t> integers(const trace::Arg* arg) const;
  std::string text(const trace::Arg* arg, std::string otherwise) const;
  const trace::Value& value(trace::ValueId id) const { return trace_.values.at(static_cast<size_t>(id)); }
  std::vector<trace::ValueId> results() const { return trace::tensors_in(call_->result); }

  // The element of a value at an index of its own dimensions, as it is stored.
  ExprId read(trace::ValueId id, const std::vector<Index>& at, const Extents& extents);
  // An operand, broadcast to dimensions 0 to sizes.size() - 1, in `type`.
  ExprId operand(trace::ValueId id, const Extents& sizes, DType type);
  // A tensor or a number as an operand.
  ExprId operand(const trace::Arg* arg, const Extents& sizes, DType type);

  // Defines a result of the call by an expression of its dimensions.
  Status define(trace::ValueId result, ExprId body, std::string name);
  Status define_reduction(trace::ValueId result, Reduction reduction, const Extents& sizes,
                          const Extents& reduced, ExprId body, std::string name);
  // A tensor that is nobody's result: a mean on the way to a variance. Dense, in `type`.
  TensorId temporary(Reduction reduction, const Extents& sizes, const Extents& reduced, ExprId body,
                     DType type, std::string name);
  ExprId load(TensorId tensor, std::vector<Index> at);
  // The nodes that this call makes from here on are contractions that the flag of PyTorch's is about.
  void contraction_under(const std::string& flag);

 private:
  Status step(const trace::Call& call);
  Status leaf_of(trace::StorageId storage);

  const trace::Trace& trace_;
  Graph& graph_;
  const trace::Call* call_ = nullptr;
  bool tf32_ = false;
  std::map<trace::StorageId, TensorId> current_;  // what each storage holds now
};

using OperatorImport = std::function<Status(Importer&)>;
using OperatorTable =
    std::map<std::string, OperatorImport, std::less<>>;  // by "aten::add"; overloads share one
void add_pointwise(OperatorTable& table);
void add_reductions(OperatorTable& table);
void add_contractions(OperatorTable& table);

// dims 0 to count - 1
std::vector<Index> dimensions(size_t count, size_t from = 0);

}  // namespace nereid::lower
