// The tensor IR: what a module's forward computes, as nodes whose results are written out element by element.
//
// A tensor is dense in memory or a leaf (an input, a parameter, a buffer, a constant) as it lies. A node
// makes one tensor. Views are no nodes: they are how a load's index reads. Writing in place makes a new
// tensor of the same storage.
#pragma once

#include <string>
#include <vector>

#include "nereid/lower/expr.h"

namespace nereid::lower {

using NodeId = int32_t;

struct Tensor {
  DType type = DType::kF32;  // as stored
  Extents sizes;
  std::vector<int64_t> strides;  // elements
  int64_t offset = 0;            // elements from the start of the storage, of leaves
  NodeId node = -1;              // that makes it; -1: a leaf
  trace::ValueId leaf = -1;      // the trace's value that a leaf is
  std::string name;              // for people: "x", "fc.weight", "softmax"
};

enum class Reduction : uint8_t { kNone, kSum, kProd, kMax, kMin, kAny, kAll, kArgMax, kArgMin };

// result[d] = the reduction over r of body(d, r); a map where there are no reduced dimensions.
struct Node {
  TensorId out = -1;
  Extents sizes = {};    // of the result: dimensions 0 to sizes.size() - 1 of the body
  Extents reduced = {};  // the dimensions behind those
  Reduction reduction = Reduction::kNone;
  ExprId body = -1;       // in the compute type of the result
  std::string name = {};  // of the operator it came from: "softmax"
  trace::Place place = {};
  bool tf32 = false;  // a contraction of float32 that PyTorch's flags let round its factors to TF32

  Extents extents() const;  // sizes, then reduced
};

struct Graph {
  Exprs exprs;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;        // each after those it reads
  std::vector<TensorId> outputs;  // of the tensors in the forward's output, in their order

  TensorId add_leaf(const trace::Value& value, trace::ValueId id, std::string name);
  // A node, and the tensor that it makes, laid out as `layout` says (row-major where it is empty).
  TensorId add_node(Node node, DType type, std::vector<int64_t> layout = {});
  const Node* maker(TensorId tensor) const;
  // The tensors that a node loads, each once.
  std::vector<TensorId> reads(const Node& node) const;
};

std::vector<int64_t> row_major(const Extents& sizes);
int64_t element_count(const Extents& sizes);

}  // namespace nereid::lower
