// The tensor IR: what a module's forward computes, as nodes whose results are written out element by element.
//
// A tensor is dense in memory or a leaf (an input, a parameter, a buffer, a constant) as it is in memory. A
// node makes one tensor. Views are no nodes: they are how a load's index reads. Writing in place makes a new
// tensor of the same storage.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/compiler/ir/expr.h"

namespace nereid::compiler {

using NodeId = int32_t;

// A value of the trace with symbols for its sizes.
struct TracedTensor {
  trace::StorageId storage = -1;
  DType dtype = DType::kF32;
  Extents sizes, strides;
  Size offset = 0;
};

// The same task traced at another batch: sizes, strides and offsets that differ are functions of the batch.
struct OtherBatch {
  const trace::Trace* trace = nullptr;  // null: none is known
  int64_t batch = 0, other = 0;         // of the trace that is lowered, and of this one
};
// What is no size in the trace (a stride that is no product of sizes, an offset) is a literal.
TracedTensor with_symbols(const trace::Trace& trace, trace::ValueId id, const OtherBatch& other = {});

struct Tensor {
  DType type = DType::kF32;  // as stored
  Extents sizes;
  Extents strides;                // elements
  Size offset = 0;                // elements from the start of the storage, of leaves
  Size shift = 0;                 // elements from where the pointer of the leaf's value points
  NodeId node = -1;               // that makes it; -1: a leaf
  trace::ValueId leaf = -1;       // the trace's value that a leaf is
  trace::StorageId storage = -1;  // of a leaf
  bool learned = false;           // a leaf that is a parameter: finite
  TensorId into = -1;             // the leaf that it is written into where it is made (update_in_place.h)
  // Part of another tensor's memory, from `slice_begin` on along a dimension (slices.h).
  TensorId slice_of = -1;
  size_t slice_axis = 0;
  Size slice_begin = 0;
  std::string name;  // for people: "x", "fc.weight", "softmax"
};

enum class Reduction : uint8_t { kNone, kSum, kProd, kMax, kMin, kLogSumExp, kArgMax, kArgMin };

// Attention in one pass over its keys (flash.h): the softmax over n of score(q . k), times v. Expressions
// over the dimensions of the result, then n, then e, which q and k are multiplied over.
struct Flash {
  ExprId query = -1, key = -1, value = -1;  // of batch, m, e; of batch, n, e; of batch, n, f
  ExprId score = -1;                        // of batch, m, n, where q . k is what a load of `product` gives
  TensorId product = -1;                    // that only registers ever hold
  std::vector<int> batch = {}, m = {}, f = {};  // which of the result's dimensions are which
  std::optional<int64_t> ahead = {};            // query m sees no key from m + ahead on
  bool masked_rows_are_zero = false;            // what sees no key at all is 0, else NaN
  bool tf32 = false;                            // PyTorch's flags let the factors be rounded
};

// A recurrent layer in one direction: steps one after the other. The node makes the hidden states, [steps +
// 1, batch, hidden], of which the first is where it starts.
enum class Cell : uint8_t { kTanh, kRelu, kGru, kLstm };
struct Recurrence {
  Cell cell = Cell::kTanh;
  Size steps = 1, batch = 1, hidden = 1;
  TensorId gates = -1;       // [steps, batch, gates * hidden]: of the inputs, with their bias
  TensorId weight = -1;      // [gates * hidden, hidden]
  TensorId bias = -1;        // [gates * hidden], of what the hidden state gives; or none
  TensorId start = -1;       // [batch, hidden]
  TensorId cell_start = -1;  // the same, of an LSTM's cell
  TensorId cell_state = -1;  // the same, which every step changes in place
  TensorId arrived = -1;     // [batch]: counters of programs that are done with a step
  bool backwards = false;    // step s is at time steps - 1 - s
};

// What is done, and of which step of the traced forward it is; -1: of none.
struct StepWord {
  int step = -1;
  std::string text;
  bool operator==(const StepWord&) const = default;
};

// result[d] = the reduction over r of body(d, r); a map where there are no reduced dimensions. A scan's
// result has an element for each r, the reduction over all up to it.
struct Node {
  TensorId out = -1;
  Extents sizes = {};    // of the result: dimensions 0 to sizes.size() - 1 of the body
  Extents reduced = {};  // the dimensions after those
  Reduction reduction = Reduction::kNone;
  ExprId body = -1;   // in the compute type of the result
  bool scan = false;  // over `reduced`, which has one dimension
  // Where in its tensor an element goes, over sizes (of a scan: and reduced); empty: element d at d. What
  // is beyond the tensor is not stored.
  std::vector<Index> at = {};
  std::string name = {};              // of the operator it came from: "softmax"
  std::vector<StepWord> before = {};  // of the maps that it has taken in, in their order
  trace::Place place = {};
  std::set<int> steps = {};  // of the traced forward: what it does, with what it has taken in
  bool tf32 = false;         // a contraction of float32 that PyTorch's flags let round its factors to TF32
  bool under_flag = false;   // such a contraction, whatever the flags are
  // Of a contraction whose factors were split: pairs of factors whose products, divided by kLowScale, belong
  // to the sum (split_factors.h). The body's own factors are float16 then.
  std::vector<std::pair<ExprId, ExprId>> low = {};
  // Of a contraction: the last of `reduced` is gone through in blocks, the others one by one.
  bool taps = false;
  // Of a contraction: a factor is a window's sum, which it computes (window_factors.h).
  bool window_factor = false;
  // Of a contraction with one reduced dimension: its factors are rounded where they are read, and may be maps
  // of many steps (channels_last.h).
  bool direct = false;
  bool whole = false;  // written to memory, and not inlined into its readers
  // Its tensor is made of these, slices of its memory: no kernel, and no body (slices.h).
  std::vector<TensorId> parts = {};
  // A reduction over a small window, better written out as a map of its elements.
  bool window = false;
  // Its `reduced` are n and e, its body only names what it reads.
  std::optional<Flash> flash = {};
  std::optional<Recurrence> recurrence = {};  // the same
  // An operator that stays PyTorch's: no body; `inputs` are the tensors that hold the values it is given,
  // `outs` what it makes.
  const trace::Call* call = nullptr;
  // Of a call that draws random numbers: the same draw in Python, without operands; its result is what is
  // drawn.
  std::string draw = {};
  std::string kept_for = {};  // why it stays PyTorch's, where it is not for want of an expression
  std::vector<std::pair<trace::ValueId, TensorId>> inputs = {};
  std::vector<TensorId> outs = {};

  Extents extents() const;  // sizes, then reduced
  // Neither a map nor a reduction nor a scan.
  bool special() const { return call != nullptr || flash || recurrence || !parts.empty(); }
  // Of the call that it came from; what it has taken in was before.
  StepWord word() const { return {steps.empty() ? -1 : *steps.rbegin(), name}; }
};

// What forward leaves in an input, a parameter or a buffer.
struct Update {
  TensorId leaf = -1, from = -1;
};

struct Graph {
  Exprs exprs;
  std::shared_ptr<const std::vector<TracedTensor>> values;  // of the trace
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;        // each after those it reads
  std::vector<TensorId> outputs;  // of the tensors in the forward's output, in their order
  // As which value each of these is looked at; -1, or nothing: as it is in memory.
  std::vector<trace::ValueId> looks;
  std::vector<Update> updates;
  std::vector<std::string> rewrites;  // algebra that changed the cost, in words (algebra.h)

  // What must exist in memory when all has run.
  std::vector<TensorId> results() const;
  TensorId add_leaf(const TracedTensor& value, trace::ValueId id, std::string name);
  // A node, and the tensor that it makes: of the node's sizes where none are given, laid out as `layout` says
  // (row-major where it is empty).
  TensorId add_node(Node node, DType type, Extents layout = {}, Extents sizes = {});
  const Node* maker(TensorId tensor) const;
  // What an element of a map is, where a load of it reads; nothing where that is unknown. Where the
  // load's place is known only to the kernel, what the map itself reads at such places stays inside its
  // tensor, for a map may look beyond where it then throws away what it finds.
  std::optional<ExprId> inlined(const Expr& load, const Extents& extents);
  // The tensors that a node loads, each once.
  std::vector<TensorId> reads(const Node& node) const;
};

Extents row_major(const Extents& sizes);
// So many elements as steps of these strides, the widest first: 2 * 96 + 3.
Size along_strides(int64_t elements, const Extents& strides);
Size element_count(const Extents& sizes);
Size product_of(const Extents& sizes, const std::vector<int>& dims);  // of those of `dims`

}  // namespace nereid::compiler
