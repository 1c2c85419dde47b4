// From a trace to the tensor IR: every operator of the last forward, written out.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "nereid/base/result.h"
#include "nereid/compiler/import/cell_loops.h"
#include "nereid/compiler/ir/graph.h"
#include "nereid/compiler/ir/value.h"

namespace nereid::compiler {

// An error names the operator that has no expression here, and its line.
// Tensors and values are named after the variables of `source` that they are assigned to, where it is given.
Result<Graph> import(const trace::Trace& trace, const std::string& source = "", const OtherBatch& other = {});

// What an operator's importer works with: one call, its arguments read and its results defined.
class Importer {
 public:
  Importer(const trace::Trace& trace, Graph& graph, const std::string& source);  // `graph` has the values

  Status run();
  // Why nothing was defined; the importer of an operator says so where it meets arguments it does not know.
  Status cannot(std::string why) const;
  // The same from where no status is returned: the first such trouble is what `define` returns.
  void fail(std::string why);

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
  const TracedTensor& value(trace::ValueId id) const { return graph_.values->at(static_cast<size_t>(id)); }
  std::vector<trace::ValueId> results() const { return trace::tensors_in(call_->result); }

  // The element of a value at an index of its own dimensions, in the compute type of its dtype.
  // The leaf, or another of its storage, that holds all that a view shows.
  TensorId leaf_around(const TracedTensor& view, TensorId leaf);
  ExprId read(trace::ValueId id, const std::vector<Index>& at, const Extents& extents);
  // Where dimension d is at[d] + further[d], an i64 that only the kernel knows.
  ExprId read(trace::ValueId id, const std::vector<Index>& at, std::vector<ExprId> further,
              const Extents& extents);
  // The same of a view that need be no value of the trace.
  ExprId read(const TracedTensor& view, const std::vector<Index>& at, const Extents& extents);
  // Parts of `length` along `axis`, one after another, each over the result's dimensions with `axis` counted
  // from its own first place. One load where they are slices of one tensor at equal distances.
  ExprId joined(const std::vector<ExprId>& parts, size_t axis, const Size& length, const Extents& sizes);
  // A load of a copy is one of what was copied.
  ExprId through_copies(ExprId element, const Extents& extents);
  // An operand, broadcast to dimensions 0 to sizes.size() - 1, in `type`.
  ExprId operand(trace::ValueId id, const Extents& sizes, DType type);
  // `element`, a value over its own dimensions, less what was added to it that is the same all along `axis`
  // and finite: a number, a parameter, or its own largest along that axis (an infinite one makes NaN of all
  // either way).
  ExprId without_shift(trace::ValueId id, size_t axis, ExprId element);
  // The step s of a vector of integers that is known to be 0, s, 2 s and so on.
  std::optional<int64_t> regular_steps(trace::ValueId id);
  // A tensor or a number as an operand.
  ExprId operand(const trace::Arg* arg, const Extents& sizes, DType type);

  // The call's argument number `position` over the dimensions of its first result, in that one's compute
  // type.
  Value operand(size_t position);
  const TracedTensor& result(size_t i = 0) const { return value(results().at(i)); }

  // Makes a result of the call the last rows of what a node makes, dimension d of it being dims[d] of the
  // result; false where the result's layout, or that it is part of something, does not allow it.
  bool hold(trace::ValueId result, TensorId in, const std::vector<size_t>& dims);
  // Defines a result of the call by an expression of its dimensions.
  Status define(trace::ValueId result, ExprId body, std::string name);
  Status define_reduction(trace::ValueId result, Reduction reduction, const Extents& sizes,
                          const Extents& reduced, ExprId body, std::string name);
  // The same where element (d, ...) of the reduction is element `at` of the result.
  Status define_reduction_at(trace::ValueId result, Reduction reduction, const Extents& sizes,
                             const Extents& reduced, std::vector<Index> at, ExprId body, std::string name);
  TensorId temporary_at(Reduction reduction, const Extents& sizes, const Extents& reduced,
                        std::vector<Index> at, const Extents& out, ExprId body, DType type, std::string name);
  // An element for each of `reduced`, which has one dimension; `at`: the result's own index, over both.
  Status define_scan(trace::ValueId result, Reduction reduction, const Extents& sizes, const Extents& reduced,
                     std::vector<Index> at, ExprId body, std::string name);
  // A tensor that is no step's result: a mean on the way to a variance. Dense, in `type`.
  TensorId temporary(Reduction reduction, const Extents& sizes, const Extents& reduced, ExprId body,
                     DType type, std::string name);
  ExprId load(TensorId tensor, std::vector<Index> at);
  // A tensor that PyTorch draws: `text` in Python, which may name `device` (device_text).
  TensorId draw(const Extents& sizes, Extents strides, DType type, std::string text, std::string name);
  // Where a value is, in the text of a draw: forward's device, or the CPU.
  std::string device_text(const TracedTensor& value) const;
  // A tensor that is in memory as the value is, row by row.
  TensorId in_memory(trace::ValueId id, const std::string& name);
  // A node of the call, whose result is row-major, of the node's sizes where none are given.
  TensorId add(Node node, DType type, Extents sizes = {});
  const Extents& sizes_of(TensorId id) const { return graph_.tensors.at(static_cast<size_t>(id)).sizes; }
  Recurrence& recurrence_of(TensorId id) {
    return *graph_.nodes[static_cast<size_t>(graph_.tensors.at(static_cast<size_t>(id)).node)].recurrence;
  }
  // One more tensor that the last node makes.
  TensorId add_out(const Extents& sizes, DType type, std::string name);
  // The nodes that this call makes from here on are contractions that the flag of PyTorch's is about.
  void contraction_under(const std::string& flag);
  // Its reductions are over small windows.
  void over_windows() { window_ = true; }
  // Works on this call from here on.
  void enter(const trace::Call& call) { call_ = &call; }

 private:
  Status step(const trace::Call& call, const trace::Call* next);
  // The steps of forward in `loop`, at its place.
  Status loop(const CellLoop& loop, const std::vector<const trace::Call*>& calls);
  // After the variable that the call's line assigns, where it is the last of the line.
  void name_results(const trace::Call* next, size_t first_node);
  Status outputs(const trace::Phase& forward);
  // Outputs that are handed out as views, for nothing would be computed by writing them: of what forward is
  // given, next to others that are computed; of a tensor of which all is handed out; and of a layer's states.
  std::set<trace::ValueId> views_among(const std::vector<trace::ValueId>& outputs);
  Status leaf_of(trace::StorageId storage);
  TensorId add_leaf(trace::ValueId id, const std::string& name);
  // The tensor that a storage holds now.
  std::optional<TensorId> current(trace::StorageId storage);
  // The call as PyTorch's.
  Status keep(const trace::Call& call, std::string why = {});  // as PyTorch's
  // Why a draw of the call's would not be the same from the default generator; empty: it would.
  std::string other_stream(const trace::Call& call) const;
  std::pair<bool, bool> complex_in(const trace::Call& call) const;
  Status define(trace::ValueId result, Node node);
  Node without_empty_reduction(Node node);
  // A view of what was there before becomes `made`, the rest stays.
  Status patch(const TracedTensor& view, TensorId base, TensorId made);
  TensorId dense(trace::ValueId id);

  const trace::Trace& trace_;
  Graph& graph_;
  std::vector<std::string> assigned_;  // of each line of the source: the variable, or nothing
  const trace::Call* call_ = nullptr;
  bool tf32_ = false, under_flag_ = false, window_ = false;
  bool seeded_ = false;  // forward has set a generator's state
  Status trouble_ = ok_status();
  std::map<trace::StorageId, TensorId> current_;  // what each storage holds now
  std::map<trace::StorageId, TensorId> leaves_;
  std::map<trace::ValueId, TensorId>
      parts_;  // leaves besides: of storages that several inputs or buffers share
  std::map<trace::StorageId, trace::ValueId> allocated_;  // as a whole, of unwritten storages
};

using OperatorImport = std::function<Status(Importer&)>;
using OperatorTable =
    std::map<std::string, OperatorImport, std::less<>>;  // by "aten::add"; overloads share one
void add_pointwise(OperatorTable& table);
void add_special_functions(OperatorTable& table);
void add_reductions(OperatorTable& table);
void add_distances(OperatorTable& table);
void add_norms(OperatorTable& table);
void add_contractions(OperatorTable& table);
void add_factories(OperatorTable& table);
void add_shapes(OperatorTable& table);
void add_gathers(OperatorTable& table);
void add_pools(OperatorTable& table);
void add_resampling(OperatorTable& table);
void add_losses(OperatorTable& table);
void add_counts(OperatorTable& table);
void add_scans(OperatorTable& table);
void add_attention(OperatorTable& table);
void add_recurrent(OperatorTable& table);
void add_sorts(OperatorTable& table);
void add_scatters(OperatorTable& table);
void add_random(OperatorTable& table);

// A loop's calls as one recurrent layer.
Status import_cell_loop(Importer& import, const std::vector<const trace::Call*>& steps);

// "softmax" of "aten::softmax.int"
std::string short_name(const std::string& op);

// A dimension counted from the front, of one that may be negative.
size_t axis_of(int64_t axis, size_t rank);

// An i64 that counts elements row by row, as one for each dimension.
std::vector<ExprId> unraveled(Value linear, const Extents& sizes);

// Null where there is none.
const trace::Phase* last_forward(const trace::Trace& trace);

// dims 0 to count - 1
std::vector<Index> dimensions(size_t count, size_t from = 0);

}  // namespace nereid::compiler
