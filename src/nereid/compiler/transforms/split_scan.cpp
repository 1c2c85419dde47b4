#include "nereid/compiler/transforms/split_scan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLongScan = 16384, kMinPart = 1024, kMaxParts = 1024;

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
    return std::min({8 * target_.multiprocessors / rows, node.reduced[0].value() / kMinPart, kMaxParts});
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

// Where element `i` of a tensor goes in a map that is a load of it at `at`: the map's dimensions by the
// tensor's. Nothing where some dimension is not another one, forwards or backwards.
std::optional<std::vector<Index>> places_in_map(const Expr& load, const Extents& tensor, const Extents& map) {
  if (!load.args.empty() || load.at.size() != map.size() || tensor.size() != map.size()) return std::nullopt;
  std::vector<std::optional<Index>> found(map.size());
  for (size_t d = 0; d < load.at.size(); ++d) {
    const Index& at = load.at[d];
    if (at.terms().size() != 1) return std::nullopt;
    const auto& [atom, step] = at.terms().front();
    if (atom.kind != Atom::Kind::kDimension || (step != 1 && step != -1)) return std::nullopt;
    const auto to = static_cast<size_t>(atom.dimension);
    if (found[to] || map[to] != tensor[d]) return std::nullopt;
    found[to] = (Index::dimension(static_cast<int>(d)) - Index(at.constant())) * step;
  }
  std::vector<Index> places;
  for (auto& index : found) {
    if (!index) return std::nullopt;
    places.push_back(std::move(*index));
  }
  return places;
}

}  // namespace

void write_scans_where_read(Graph& graph, const std::set<int>& cuts) {
  const std::vector<bool> live = live_nodes(graph);
  std::map<TensorId, int> readers;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (live[n])
      for (const TensorId id : graph.reads(graph.nodes[n])) ++readers[id];
  for (const TensorId id : graph.results()) ++readers[id];
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& map = graph.nodes[n];
    if (!live[n] || map.special() || map.reduction != Reduction::kNone || !map.reduced.empty() ||
        !map.at.empty())
      continue;
    const Expr load = graph.exprs[map.body];
    if (load.kind != Expr::Kind::kLoad || readers[load.tensor] != 1) continue;
    const Tensor& from = graph.tensors[static_cast<size_t>(load.tensor)];
    if (from.node < 0 || graph.tensors[static_cast<size_t>(map.out)].type != from.type) continue;
    Node scan = graph.nodes[static_cast<size_t>(from.node)];
    const auto places = places_in_map(load, from.sizes, map.sizes);
    if (!scan.scan || !places || scan.out != load.tensor || part_of(scan, cuts) != part_of(map, cuts))
      continue;
    Extents extents = scan.sizes;
    extents.insert(extents.end(), scan.reduced.begin(), scan.reduced.end());
    const std::vector<Index> own = scan.at.empty() ? dimensions(extents.size()) : scan.at;
    scan.at.clear();
    for (const Index& place : *places) scan.at.push_back(substitute(place, own, extents));
    scan.out = map.out;
    scan.before.push_back(scan.word());
    scan.before.insert(scan.before.end(), map.before.begin(), map.before.end());
    scan.steps.insert(map.steps.begin(), map.steps.end());
    graph.nodes[n] = std::move(scan);
    graph.tensors[static_cast<size_t>(graph.nodes[n].out)].node = static_cast<NodeId>(n);
  }
}

void split_long_scans(Graph& graph, const Target& target) { ScanSplitter(graph, target).run(); }

}  // namespace nereid::compiler
