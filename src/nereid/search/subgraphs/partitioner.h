// A traced forward cut into subgraphs: what a subgraph needs, gives and costs, its text as a task of its own,
// and the whole put together again from subgraphs.
//
// A node is a step that computes or copies; views are not nodes, but are taken along by the nodes that need
// them. A subgraph is a convex set of nodes (no way out of it leads back into it), so that a program of
// subgraphs can be put in order. What writes in place is one node with what made it, and so are the calls of
// a composite (composite_at). What no output depends on is no part of it: counters of calls, running
// statistics of what is normalised by its own. Programs that write what they were given, draw random numbers
// or launch kernels of their own are not cut.
#pragma once

#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/search/evaluator.h"

namespace nereid::search {

inline constexpr size_t kMaxNodes = 512;
using Nodes = std::bitset<kMaxNodes>;

template <typename F>
void each_node(const Nodes& set, F f) {
  for (size_t n = set._Find_first(); n < kMaxNodes; n = set._Find_next(n)) f(n);
}

struct Subgraph {
  Nodes nodes{};
  std::string source{};  // a task in KernelBench's format; equal for subgraphs that do the same
  std::vector<trace::ValueId> inputs{};  // in the order of its forward's parameters
  // Of the inputs, as its source has them; where they are not the trace's, results have other sizes too.
  std::vector<std::vector<int64_t>> sizes{};
  // More inputs after these: tensors of such sizes, of which every element is this number.
  std::vector<std::pair<std::vector<int64_t>, double>> numbers{};
  std::vector<trace::ValueId> outputs{};
  double eager_ms = 0;  // of its steps one by one, modelled
  double min_ms = 0;    // one launch that reads the inputs and writes the outputs once, modelled
};

// One subgraph of a program, and what computes it: a file with ModelNew for its source, or nothing (its own
// steps).
struct Piece {
  const Subgraph* subgraph = nullptr;
  std::string candidate{};
  std::string proposer{};
};

class Partitioner {
 public:
  // An error says why the program is not cut. Refers to the task.
  static Result<Partitioner> cut(const Task& task);

  size_t nodes() const { return nodes_.size(); }
  // Connected convex sets of at most `max_nodes` nodes, at most `most` of them, the small ones first. What
  // cannot be a task of its own (it takes unknown integers, or something that has no text) is left
  // out.
  std::vector<Subgraph> subgraphs(size_t max_nodes, size_t most) const;
  // The nodes of each line of the reference's file, where they are connected, convex, and at most so many:
  // often one operator in several calls. Those of several nodes alone.
  std::vector<Subgraph> lines_as_subgraphs(size_t max_nodes) const;
  // All nodes as one; nothing where that cannot be a task of its own.
  std::optional<Subgraph> whole() const;
  // The same nodes in another form, for a model that does not understand `subgraphs`' own: canonical, as our
  // models are trained (render/canonicalize.h), without the views that they read through, and by ATen's calls
  // alone. Each text differs from the others and from that.
  std::vector<Subgraph> alternative_sources(const Nodes& set) const;
  // A single node as it is; for what no proposer can do.
  Subgraph alone(size_t node) const;
  // How many lines of the reference's file the set's steps come from.
  size_t lines(const Nodes& set) const;
  bool computes(size_t node) const;  // PyTorch's work on it is work under some policy
  bool is_reserved(size_t node, verify::Policy policy) const;  // PyTorch must not do it: no share is allowed

  Nodes all() const;
  // The set's steps of the traced forward, and the views between them, in the program's order.
  std::vector<size_t> steps_of(const Nodes& set) const;
  // True where everything that the set needs is in it or in `done`.
  bool may_follow(const Nodes& set, const Nodes& done) const;

  // A file with ModelNew: pieces that are disjoint and cover all nodes, in an order that `may_follow` allows.
  Result<std::string> compose(const std::vector<Piece>& pieces) const;

 private:
  class Composition;

  explicit Partitioner(const Task& task) : task_(&task) {}
  Status read();
  std::vector<bool> reaches_output() const;  // of each step
  bool convex(const Nodes& set) const;
  Status join(size_t step, const std::vector<trace::ValueId>& written);
  std::vector<trace::ValueId> read_by_node(size_t node) const;
  // That one of them which is the same elements of the same storage.
  std::optional<trace::ValueId> same_place(const std::vector<trace::ValueId>& values,
                                           trace::ValueId id) const;
  std::vector<size_t> steps_with_views(const Nodes& set) const;
  struct SourceStyle {
    bool views = true;       // that lead to what is not contiguous are among the steps
    bool idiomatic = true;   // as people write it, where that is known
    bool canonical = false;  // in the canonical form, which our models are trained on
  };
  Result<Subgraph> describe(const Nodes& set) const { return describe(set, {}); }
  Result<Subgraph> describe(const Nodes& set, SourceStyle style) const;
  const trace::Call& call(size_t step) const;
  const trace::Value& value(trace::ValueId id) const { return task_->trace.values[static_cast<size_t>(id)]; }

  const Task* task_;
  std::shared_ptr<const trace::Phase> forward_;  // without what no output depends on
  std::vector<std::vector<size_t>> nodes_{};     // the steps of each: one, but for what writes in place
  std::map<size_t, size_t> node_of_{};           // and back
  std::vector<Nodes> before_{}, after_{};        // neighbours
  std::vector<Nodes> ancestors_{}, descendants_{};
  std::map<trace::StorageId, size_t> maker_{};  // the step that made a storage
  std::map<trace::ValueId, size_t> view_{};     // the view step that made a value, where one did
};

}  // namespace nereid::search
