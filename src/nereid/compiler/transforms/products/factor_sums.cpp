#include "nereid/compiler/transforms/products/factor_sums.h"

#include <algorithm>
#include <map>
#include <set>

#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kMinTile = 16;    // of either side
constexpr int64_t kOtherTile = 64;  // for each of which an element is added up again
constexpr double kFlopsOfInstruction = 2;

std::vector<ExprId> loads_below(const Graph& graph, ExprId body) {
  std::vector<ExprId> loads;
  for (const ExprId id : graph.exprs.below(body))
    if (graph.exprs[id].kind == Expr::Kind::kLoad) loads.push_back(id);
  return loads;
}

bool asks_for_places(const Graph& graph, ExprId body) {
  return std::ranges::any_of(graph.exprs.below(body), [&](ExprId id) {
    const auto kind = graph.exprs[id].kind;
    return kind == Expr::Kind::kIndex || kind == Expr::Kind::kWithin;
  });
}

// Whether the indices are the digits of all places of these dimensions, each once.
bool covers(const std::vector<Index>& indices, const Extents& sizes, const Extents& extents) {
  Index linear;
  const auto strides = row_major(sizes);
  for (size_t d = 0; d < sizes.size(); ++d) linear = linear + indices[d] * strides[d];
  std::vector<std::pair<int64_t, int64_t>> digits;  // strides, extents
  if (linear.constant() != 0) return false;
  for (const auto& [atom, stride] : linear.terms()) {
    if (atom.kind != Atom::Kind::kDimension) return false;
    digits.emplace_back(stride, extents[static_cast<size_t>(atom.dimension)]);
  }
  std::ranges::sort(digits);
  int64_t next = 1;
  for (const auto& [stride, extent] : digits) {
    if (stride != next) return false;
    next *= extent;
  }
  return next == element_count(sizes);
}

class FactorSums {
 public:
  FactorSums(Graph& graph, const Target& target)
      : graph_(graph), target_(target), live_(live_nodes(graph)), readers_(graph.tensors.size()) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (live_[n])
        for (const TensorId read : graph.reads(graph.nodes[n]))
          readers_[static_cast<size_t>(read)].push_back(static_cast<NodeId>(n));
  }

  std::set<TensorId> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (live_[n])
        if (const auto host = host_of(static_cast<NodeId>(n))) hosts_[static_cast<NodeId>(n)] = *host;
    std::erase_if(hosts_, [&](const auto& sum) { return !is_read_by_products(sum.first, sum.second); });
    std::set<TensorId> made;
    for (const auto& [sum, host] : hosts_) made.insert(node(sum).out);
    if (hosts_.empty()) return made;
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    const auto add = [&](NodeId id) { append(graph_, std::move(before[static_cast<size_t>(id)])); };
    for (NodeId id = 0; id < static_cast<NodeId>(before.size()); ++id) {
      const auto own = hosts_.find(id);
      if (own == hosts_.end() || own->second < id) add(id);
      for (const auto& [sum, host] : hosts_)
        if (host == id && sum < id) add(sum);
    }
    return made;
  }

 private:
  const Node& node(NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }

  std::optional<NodeId> host_of(NodeId id) const {
    const Node& sum = node(id);
    if (sum.special() || sum.reduction != Reduction::kSum || sum.scan || !sum.at.empty() || sum.taps ||
        graph_.tensors[static_cast<size_t>(sum.out)].type != DType::kF32 || is_contraction(graph_, sum))
      return std::nullopt;
    for (NodeId host = 0; host < static_cast<NodeId>(graph_.nodes.size()); ++host)
      if (live_[static_cast<size_t>(host)] && host != id && can_be_moved(id, host) &&
          rows_of_factor(graph_, node(host), sum) && is_worth(node(host), sum))
        return host;
    return std::nullopt;
  }

  // Nothing between the two reads the sum.
  bool can_be_moved(NodeId sum, NodeId host) const {
    return std::ranges::none_of(readers_[static_cast<size_t>(node(sum).out)],
                                [&](NodeId reader) { return reader <= host; });
  }

  // Tensors that differ along the sum's rows and its reduced dimension: as many elements as both have.
  std::set<TensorId> large_reads(const Node& sum) const {
    std::set<TensorId> large;
    for (const TensorId read : graph_.reads(sum))
      if (element_count(graph_.tensors[static_cast<size_t>(read)].sizes) >= element_count(sum.extents()))
        large.insert(read);
    return large;
  }

  bool is_worth(const Node& product, const Node& sum) const {
    const Expr body = graph_.exprs[product.body];
    double bytes = 0, work = 1;
    for (const TensorId read : large_reads(sum))
      bytes += static_cast<double>(element_count(graph_.tensors[static_cast<size_t>(read)].sizes) *
                                   trace::element_bytes(graph_.tensors[static_cast<size_t>(read)].type));
    std::set<ExprId> known;  // of the product
    for (const ExprId factor : body.args)
      for (const ExprId id : graph_.exprs.below(factor)) known.insert(id);
    const auto in_product = *rows_of_factor(graph_, product, sum);
    for (const ExprId id :
         graph_.exprs.below(graph_.exprs.substitute(sum.body, in_product, product.extents())))
      work += graph_.exprs[id].kind == Expr::Kind::kApply && !known.contains(id) ? 1 : 0;
    int64_t tiles = 0;
    for (const size_t side : {0, 1})
      if (std::ranges::any_of(loads_below(graph_, body.args[side]),
                              [&](ExprId id) { return large_reads(sum).contains(graph_.exprs[id].tensor); }))
        tiles = std::max(tiles, (products_of(graph_, product, 1 - side) + kOtherTile - 1) / kOtherTile);
    const double added = work * static_cast<double>(tiles * element_count(sum.extents()));
    return bytes > 0 && added * kFlopsOfInstruction / target_.fp32 < bytes / target_.bytes_per_second;
  }

  bool is_read_by_products(NodeId id, NodeId host) const {
    const auto large = large_reads(node(id));
    for (const TensorId read : large)
      for (const NodeId reader : readers_[static_cast<size_t>(read)])
        if (reader != host && !hosts_.contains(reader) && !is_contraction(graph_, node(reader))) return false;
    return std::ranges::none_of(readers_[static_cast<size_t>(node(id).out)], [&](NodeId reader) {
      return std::ranges::any_of(graph_.reads(node(reader)),
                                 [&](TensorId read) { return large.contains(read); });
    });
  }

  Graph& graph_;
  const Target& target_;
  const std::vector<bool> live_;
  std::vector<std::vector<NodeId>> readers_;  // of each tensor
  std::map<NodeId, NodeId> hosts_;            // of sums: their products
};

}  // namespace

std::optional<std::vector<Index>> rows_of_factor(Graph& graph, const Node& product, const Node& sum) {
  if (product.special() || !is_contraction(graph, product) || product.taps || product.window_factor ||
      product.direct || !product.low.empty() || !product.at.empty() || product.reduced.size() != 1 ||
      sum.reduced.size() != 1 || sum.reduced[0] != product.reduced[0] ||
      asks_for_places(graph, product.body) || asks_for_places(graph, sum.body) ||
      std::min(products_of(graph, product, 0), products_of(graph, product, 1)) < kMinTile)
    return std::nullopt;
  const Expr body = graph.exprs[product.body];
  const Extents extents = product.extents(), own = sum.extents();
  for (const size_t side : {0, 1}) {
    const auto factor = loads_below(graph, body.args[side]);
    std::vector<std::optional<Index>> found(own.size());
    bool fits = true;
    for (const ExprId id : loads_below(graph, sum.body)) {
      const Expr& load = graph.exprs[id];
      const auto same = std::ranges::find_if(
          factor, [&](ExprId other) { return graph.exprs[other].tensor == load.tensor; });
      fits = fits && load.args.empty();
      if (same == factor.end()) continue;
      const Expr& known = graph.exprs[*same];
      for (size_t d = 0; d < load.at.size() && known.args.empty(); ++d)
        for (size_t own_dim = 0; own_dim < own.size(); ++own_dim)
          if (load.at[d] == Index::dimension(static_cast<int>(own_dim)) && !found[own_dim])
            found[own_dim] = known.at[d];
    }
    std::vector<Index> map;
    for (size_t d = 0; d < own.size(); ++d) {
      fits = fits && (found[d] || own[d] == 1);
      map.push_back(found[d].value_or(Index()));
    }
    const Index k = Index::dimension(static_cast<int>(product.sizes.size()));
    if (!fits || map.back() != k) continue;
    map.pop_back();
    Extents rows;  // of the product, that the factor has
    std::vector<bool> is_row(extents.size(), false);
    for (size_t d = 0; d < product.sizes.size(); ++d) {
      is_row[d] = graph.exprs.uses(body.args[side], static_cast<int>(d));
      rows.push_back(is_row[d] ? product.sizes[d] : Size(1));
    }
    const bool is_own = std::ranges::all_of(map, [&](const Index& index) {
      for (size_t d = 0; d < extents.size(); ++d)
        if (!is_row[d] && index.uses(static_cast<int>(d))) return false;
      return true;
    });
    if (!is_own || element_count(rows) != element_count(sum.sizes) || !covers(map, sum.sizes, extents))
      continue;
    map.push_back(k);
    // What is not loaded as by the factor does not differ along its own dimensions.
    const std::set<ExprId> known(factor.begin(), factor.end());
    const bool loaded = std::ranges::all_of(
        loads_below(graph, graph.exprs.substitute(sum.body, map, extents)), [&](ExprId id) {
          if (known.contains(id)) return true;
          for (size_t d = 0; d < product.sizes.size(); ++d)
            if (is_row[d] && !graph.exprs.uses(body.args[1 - side], static_cast<int>(d)) &&
                graph.exprs.uses(id, static_cast<int>(d)))
              return false;
          return true;
        });
    if (loaded) return map;
  }
  return std::nullopt;
}

std::set<TensorId> sums_of_factors(Graph& graph, const Target& target) {
  return FactorSums(graph, target).run();
}

}  // namespace nereid::compiler
