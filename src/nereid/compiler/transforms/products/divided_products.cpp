#include "nereid/compiler/transforms/products/divided_products.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLeastHalf = 64;  // columns of a product that is worth a kernel

bool maps_all(const Node& node) {
  return !node.special() && node.reduction == Reduction::kNone && node.at.empty();
}

class Divider {
 public:
  explicit Divider(Graph& graph) : graph_(graph), readers_(graph.tensors.size()) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const TensorId id : tensors_of(graph.nodes[n])) readers_[static_cast<size_t>(id)].push_back(n);
  }

  void run() {
    const std::vector<TensorId> results = graph_.results();
    whole_.insert(results.begin(), results.end());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) find(n);
    if (!divided_.empty()) rewrite();
  }

 private:
  using Halves = std::array<TensorId, 2>;

  std::vector<TensorId> tensors_of(const Node& node) const {
    std::vector<TensorId> all;
    if (!node.special()) return graph_.reads(node);
    for (const auto& input : node.inputs) all.push_back(input.second);
    all.insert(all.end(), node.parts.begin(), node.parts.end());
    if (const auto& r = node.recurrence)
      for (const TensorId id : {r->gates, r->weight, r->bias, r->start, r->cell_start, r->cell_state})
        if (id >= 0) all.push_back(id);
    return all;
  }

  // 0 or 1: the half of the tensor's last dimension that the load is of, all of it; else -1.
  int half_of(const Expr& load, const Node& reader) const {
    const Size count = graph_.tensors[static_cast<size_t>(load.tensor)].sizes.back() / Size(2);
    const Extents extents = reader.extents();
    for (size_t d = 0; d < extents.size() && load.args.empty(); ++d) {
      const Index column = Index::dimension(static_cast<int>(d));
      if (!load.at.back().uses(static_cast<int>(d)) || extents[d] != count) continue;
      if (load.at.back() == column) return 0;
      if (load.at.back() == column + Index(count)) return 1;
    }
    return -1;
  }

  // Whether each reader reads one half at a time, and maps of both meet.
  bool is_read_by_halves(TensorId tensor) const {
    std::array<std::set<TensorId>, 2> made;
    bool meet = false;
    for (const Node& node : graph_.nodes) {
      if (node.special()) {
        const std::vector<TensorId> read = tensors_of(node);
        if (std::ranges::find(read, tensor) != read.end()) return false;
        continue;
      }
      std::array<bool, 2> reads = {};
      for (const ExprId id : graph_.exprs.below(node.body)) {
        const Expr& load = graph_.exprs[id];
        if (load.kind != Expr::Kind::kLoad) continue;
        for (const size_t h : {0, 1}) reads[h] = reads[h] || made[h].contains(load.tensor);
        if (load.tensor != tensor) continue;
        const int half = half_of(load, node);
        if (half < 0 || !maps_all(node)) return false;
        reads[static_cast<size_t>(half)] = true;
      }
      if (!maps_all(node)) continue;
      meet = meet || (reads[0] && reads[1]);
      for (const size_t h : {0, 1})
        if (reads[h]) made[h].insert(node.out);
    }
    return meet;
  }

  bool may_be_divided(const Node& node) const {
    if (!is_contraction(graph_, node) || !node.at.empty() || !node.low.empty() || node.taps || node.scan ||
        node.sizes.size() < 2 || node.sizes.back() % Size(2) != 0 || node.sizes.back() / Size(2) < kLeastHalf)
      return false;
    // One factor has the columns.
    const auto column = static_cast<int>(node.sizes.size()) - 1;
    const std::vector<ExprId>& factors = graph_.exprs[node.body].args;
    return graph_.exprs.uses(factors[0], column) != graph_.exprs.uses(factors[1], column);
  }

  // A map of all of the product, as of its bias, is divided with it.
  void find(size_t n) {
    const Node& product = graph_.nodes[n];
    if (product.special() || !may_be_divided(product) || whole_.contains(product.out)) return;
    std::vector<size_t> chain = {n};
    const std::vector<size_t>& readers = readers_[static_cast<size_t>(product.out)];
    if (readers.size() == 1) {
      const Node& map = graph_.nodes[readers[0]];
      if (maps_all(map) && map.sizes == product.sizes && !whole_.contains(map.out))
        chain.push_back(readers[0]);
    }
    for (; !chain.empty(); chain.pop_back())
      if (is_read_by_halves(graph_.nodes[chain.back()].out)) break;
    divided_.insert(chain.begin(), chain.end());
  }

  void rewrite() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      if (!divided_.contains(n)) {
        append(graph_, with_halves(std::move(before[n])));
        continue;
      }
      const DType type = graph_.tensors[static_cast<size_t>(before[n].out)].type;
      for (const size_t h : {0, 1}) {
        Node half = before[n];
        const size_t column = half.sizes.size() - 1;
        half.sizes[column] = half.sizes[column] / Size(2);
        std::vector<Index> by = dimensions(half.extents().size());
        if (h == 1) by[column] = by[column] + Index(half.sizes[column]);
        half.body = graph_.exprs.substitute(half.body, by, half.extents());
        half = with_halves(std::move(half));
        halves_[before[n].out][h] = append(graph_, std::move(half), type);
      }
    }
  }

  Node with_halves(Node node) {
    if (node.special()) return node;
    node.body = graph_.exprs.replace_loads(node.body, [&](const Expr& load) {
      const auto found = halves_.find(load.tensor);
      if (found == halves_.end()) return graph_.exprs.load(load.tensor, load.at, load.type, load.args);
      const int half = half_of(load, node);
      std::vector<Index> at = load.at;
      const Size count = graph_.tensors[static_cast<size_t>(load.tensor)].sizes.back() / Size(2);
      if (half == 1) at.back() = at.back() - Index(count);
      return graph_.exprs.load(found->second.at(static_cast<size_t>(half)), at, load.type);
    });
    return node;
  }

  Graph& graph_;
  std::vector<std::vector<size_t>> readers_;
  std::set<TensorId> whole_;  // what is handed out
  std::set<size_t> divided_;  // nodes
  std::map<TensorId, Halves> halves_;
};

}  // namespace

void divide_products(Graph& graph) { Divider(graph).run(); }

}  // namespace nereid::compiler
