#include "nereid/compiler/transforms/split_scan.h"

#include <algorithm>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/contraction_operands.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLongScan = 16384, kLeastPart = 1024, kMostParts = 1024;

class ScanSplitter {
 public:
  ScanSplitter(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  void run() {
    const std::vector<bool> live = live_nodes(graph_);
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      if (const int64_t parts = live[n] ? parts_of(before[n]) : 1; parts > 1)
        split(std::move(before[n]), parts);
      else
        append(graph_, std::move(before[n]));
    }
  }

 private:
  Exprs& exprs() { return graph_.exprs; }

  int64_t parts_of(const Node& node) const {
    if (node.special() || !node.scan || node.reduced.size() != 1 || node.reduced[0] < kLongScan) return 1;
    if (node.reduction != Reduction::kSum) return 1;
    const int64_t rows = element_count(node.sizes);
    if (rows > target_.multiprocessors) return 1;
    return std::min({8 * target_.multiprocessors / rows, node.reduced[0].value() / kLeastPart, kMostParts});
  }

  void split(Node node, int64_t parts) {
    const size_t rank = node.sizes.size();
    const int64_t length = node.reduced[0], chunk = power_of_two(length / parts / 2 + 1);  // a whole block
    parts = (length + chunk - 1) / chunk;
    const auto dim = [](size_t d) { return Index::dimension(static_cast<int>(d)); };
    // Over the row, its chunk, the place in that.
    Extents sizes = node.sizes;
    sizes.push_back(parts);
    Extents extents = sizes;
    extents.push_back(chunk);
    const Index place = dim(rank) * chunk + dim(rank + 1);
    std::vector<Index> by = dimensions(rank);
    by.push_back(place);
    const Value element(exprs(), exprs().substitute(node.body, by, extents));
    const Value inside(exprs(), exprs().within(place, 0, length, extents));
    const DType type = element.type();
    const Value body = inside.where(element, element.constant(identity(node.reduction)));

    Node totals{.sizes = sizes, .reduced = {chunk}, .reduction = node.reduction, .body = body.id()};
    const TensorId of_chunks = added(std::move(totals), node, node.name + "_of_chunk", type);
    // The sum of all chunks before: over the row, the chunk, any chunk.
    Extents pairs = sizes;
    pairs.push_back(parts);
    std::vector<Index> other = dimensions(rank);
    other.push_back(dim(rank + 1));
    const Value total(exprs(), exprs().load(of_chunks, other, type));
    const Value earlier(exprs(), exprs().within(dim(rank + 1) - dim(rank), -parts, 0, pairs));
    Node prefix{.sizes = sizes,
                .reduced = {parts},
                .reduction = node.reduction,
                .body = earlier.where(total, total.constant(identity(node.reduction))).id()};
    const TensorId before = added(std::move(prefix), node, node.name + "_before", type);

    // What comes before a chunk belongs to its first element.
    const Value first(exprs(), exprs().load(before, dimensions(rank + 1), type));
    const Value begins(exprs(), exprs().within(dim(rank + 1), 0, 1, extents));
    node.sizes = sizes;
    node.reduced = {chunk};
    node.body = begins.where(body + first, body).id();
    std::vector<Index> at = node.at.empty() ? dimensions(rank + 1) : std::move(node.at);
    for (Index& index : at) index = substitute(index, by, extents);
    node.at = std::move(at);
    append(graph_, std::move(node));
  }

  TensorId added(Node node, const Node& from, const std::string& name, DType type) {
    node.name = name;
    node.place = from.place;
    node.steps = from.steps;
    return append(graph_, std::move(node), type);
  }

  Graph& graph_;
  const Target& target_;
};

}  // namespace

void split_long_scans(Graph& graph, const Target& target) { ScanSplitter(graph, target).run(); }

}  // namespace nereid::compiler
