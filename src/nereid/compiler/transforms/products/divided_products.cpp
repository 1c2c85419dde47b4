#include "nereid/compiler/transforms/products/divided_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLeastPart = 64;  // columns of a product that is worth a kernel
constexpr int64_t kMostParts = 8;

bool maps_all(const Node& node) {
  return !node.special() && node.reduction == Reduction::kNone && node.at.empty();
}

// Equal parts of a tensor along one of its dimensions.
struct EqualParts {
  size_t along = 0;
  Size length = 0;
  size_t count = 0;
  std::vector<size_t> order = {};  // of their products
};

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
  // A node that is divided: its parts, and which of its own dimensions they are along.
  struct Division {
    EqualParts parts;
    size_t dimension = 0;
  };

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

  const Extents& sizes_of(TensorId id) const { return graph_.tensors[static_cast<size_t>(id)].sizes; }

  // The part that the load is of, all of it.
  std::optional<size_t> part_of(const Expr& load, const Node& reader, const EqualParts& parts) const {
    const Extents extents = reader.extents();
    const Index& at = load.at[parts.along];
    for (size_t d = 0; d < extents.size() && load.args.empty(); ++d) {
      if (!at.uses(static_cast<int>(d)) || extents[d] != parts.length) continue;
      for (size_t p = 0; p < parts.count; ++p)
        if (at == Index::dimension(static_cast<int>(d)) + Index(parts.length * Size(static_cast<int64_t>(p))))
          return p;
    }
    return std::nullopt;
  }

  // The parts as which loads may read the tensor: of the length of one of its readers' dimensions.
  std::optional<EqualParts> parts_along(TensorId tensor, size_t along) const {
    const Size all = sizes_of(tensor)[along];
    for (const size_t n : readers_[static_cast<size_t>(tensor)]) {
      const Node& reader = graph_.nodes[n];
      if (!maps_all(reader)) return std::nullopt;
      for (const ExprId id : graph_.exprs.below(reader.body)) {
        const Expr& load = graph_.exprs[id];
        if (load.kind != Expr::Kind::kLoad || load.tensor != tensor) continue;
        for (size_t d = 0; d < reader.sizes.size(); ++d) {
          if (!load.at[along].uses(static_cast<int>(d))) continue;
          const Size length = reader.sizes[d];
          if (length < kLeastPart || length >= all || all % length != 0 || all / length > kMostParts)
            return std::nullopt;
          return EqualParts{along, length, static_cast<size_t>((all / length).value())};
        }
      }
    }
    return std::nullopt;
  }

  // If each load is of one part, and maps of several meet: the parts, those next to each other that meet
  // first; and the maps in which they do while others are left, which one kernel makes of two. Else nothing.
  struct Use {
    std::vector<size_t> order, meetings;
  };
  std::optional<Use> use_of(TensorId tensor, const EqualParts& parts) const {
    std::vector<std::set<TensorId>> made(parts.count);
    Use use;
    std::vector<bool> ordered(parts.count, false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.special()) {
        const std::vector<TensorId> read = tensors_of(node);
        if (std::ranges::find(read, tensor) != read.end()) return std::nullopt;
        continue;
      }
      std::vector<bool> reads(parts.count, false);
      for (const ExprId id : graph_.exprs.below(node.body)) {
        const Expr& load = graph_.exprs[id];
        if (load.kind != Expr::Kind::kLoad) continue;
        for (size_t p = 0; p < parts.count; ++p) reads[p] = reads[p] || made[p].contains(load.tensor);
        if (load.tensor != tensor) continue;
        const auto part = part_of(load, node, parts);
        if (!part || !maps_all(node)) return std::nullopt;
        reads[*part] = true;
      }
      if (!maps_all(node)) continue;
      std::vector<size_t> meet;
      for (size_t p = 0; p < parts.count; ++p) {
        if (reads[p]) made[p].insert(node.out);
        if (reads[p] && !ordered[p]) meet.push_back(p);
      }
      for (size_t first = 0; first + 1 < meet.size(); first += 2)
        for (const size_t p : {meet[first], meet[first + 1]}) {
          use.order.push_back(p);
          ordered[p] = true;
        }
      if (meet.size() > 1 && use.order.size() < parts.count) use.meetings.push_back(n);
    }
    if (use.order.empty()) return std::nullopt;
    for (size_t p = 0; p < parts.count; ++p)
      if (!ordered[p]) use.order.push_back(p);
    return use;
  }

  bool may_be_divided(const Node& node) const {
    return is_contraction(graph_, node) && node.low.empty() && !node.taps && !node.scan &&
           node.sizes.size() >= 2;
  }

  // Which of the node's dimensions its tensor's one is, as it stands.
  std::optional<size_t> dimension_of(const Node& node, size_t along) const {
    if (node.at.empty()) return along;
    const Extents extents = node.extents();
    std::vector<Index> by = dimensions(extents.size());
    for (size_t d = 0; d < extents.size(); ++d)
      if (extents[d] == 1) by[d] = Index();
    const Index at = substitute(node.at[along], by, extents);
    for (size_t d = 0; d < node.sizes.size(); ++d)
      if (at == Index::dimension(static_cast<int>(d)) && node.sizes[d] == sizes_of(node.out)[along]) return d;
    return std::nullopt;
  }

  // The factor that has the columns is divided with them; the other one is read for each two parts. Of more
  // than two, what is not stored must count: a product of few rows takes as long as its factors are read.
  bool saves_bytes(const Node& product, size_t column, const EqualParts& parts) const {
    const std::vector<ExprId>& factors = graph_.exprs[product.body].args;
    const bool first = graph_.exprs.uses(factors[0], static_cast<int>(column));
    if (first == graph_.exprs.uses(factors[1], static_cast<int>(column))) return false;
    if (parts.count == 2) return true;
    const int64_t divided = bytes_below(factors[first ? 0 : 1]), again = bytes_below(factors[first ? 1 : 0]);
    const auto kernels = static_cast<int64_t>(parts.count + 1) / 2;
    const int64_t made = bytes_of(product.out);
    return again * (kernels - 1) < made && divided < made;
  }

  int64_t bytes_below(ExprId factor) const {
    int64_t bytes = 0;
    for (const ExprId id : graph_.exprs.below(factor))
      if (graph_.exprs[id].kind == Expr::Kind::kLoad) bytes += bytes_of(graph_.exprs[id].tensor);
    return bytes;
  }

  int64_t bytes_of(TensorId id) const {
    const Tensor& tensor = graph_.tensors[static_cast<size_t>(id)];
    return element_count(tensor.sizes).value() * trace::element_bytes(tensor.type);
  }

  // Maps of all of the product, as of its bias, are divided with it.
  void find(size_t n) {
    const Node& product = graph_.nodes[n];
    if (product.special() || !may_be_divided(product) || divided_.contains(n)) return;
    std::vector<TensorId> chain = {product.out};
    while (is_read_once(chain.back())) {
      const Node& map = graph_.nodes[readers_[static_cast<size_t>(chain.back())][0]];
      if (!maps_all(map) || map.sizes != sizes_of(product.out)) break;
      chain.push_back(map.out);
    }
    for (; !chain.empty(); chain.pop_back())
      for (size_t along = 0; along < sizes_of(product.out).size(); ++along)
        if (divide(chain.back(), n, along)) return;
  }

  bool is_read_once(TensorId id) const {
    return readers_[static_cast<size_t>(id)].size() == 1 && !whole_.contains(id);
  }

  // The products and maps that make the tensor, element by element: to be divided with it. False where one
  // of the products cannot be.
  bool collect(TensorId tensor, TensorId last, const EqualParts& parts,
               std::map<size_t, Division>& found) const {
    const NodeId maker = graph_.tensors[static_cast<size_t>(tensor)].node;
    if (maker < 0) return true;
    const auto n = static_cast<size_t>(maker);
    const Node& node = graph_.nodes[n];
    if (node.special()) return true;
    const bool own = tensor == last || is_read_once(tensor);
    if (is_contraction(graph_, node)) {
      const auto column = dimension_of(node, parts.along);
      if (!own || !column || !may_be_divided(node) || !saves_bytes(node, *column, parts)) return false;
      found[n] = {parts, *column};
      return true;
    }
    if (!own || !maps_all(node) || node.sizes != sizes_of(last)) return true;
    const auto as_it_is = [&](const Expr& load) {
      return load.args.empty() && load.at == dimensions(node.sizes.size()) &&
             sizes_of(load.tensor) == node.sizes;
    };
    for (const bool elements : {true, false})
      for (const ExprId id : graph_.exprs.below(node.body)) {
        const Expr& load = graph_.exprs[id];
        if (load.kind != Expr::Kind::kLoad || as_it_is(load) != elements) continue;
        if (elements ? !collect(load.tensor, last, parts, found) : is_divided(load.tensor, found))
          return false;
      }
    found[n] = {parts, parts.along};
    return true;
  }

  // Whether what makes the tensor is divided.
  bool is_divided(TensorId tensor, const std::map<size_t, Division>& found) const {
    const NodeId maker = graph_.tensors[static_cast<size_t>(tensor)].node;
    return maker >= 0 &&
           (found.contains(static_cast<size_t>(maker)) || divided_.contains(static_cast<size_t>(maker)));
  }

  bool divide(TensorId last, size_t product, size_t along) {
    if (whole_.contains(last)) return false;
    auto parts = parts_along(last, along);
    if (!parts) return false;
    const auto use = use_of(last, *parts);
    if (!use) return false;
    parts->order = use->order;
    std::map<size_t, Division> found;
    if (!collect(last, last, *parts, found) || !found.contains(product)) return false;
    if (std::ranges::any_of(found, [&](const auto& each) { return divided_.contains(each.first); }))
      return false;
    meetings_.insert(use->meetings.begin(), use->meetings.end());
    divided_.insert(found.begin(), found.end());
    return true;
  }

  void rewrite() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      const auto found = divided_.find(n);
      if (found == divided_.end()) {
        before[n].whole = before[n].whole || meetings_.contains(n);
        append(graph_, with_parts(std::move(before[n])));
        continue;
      }
      const auto& [parts, dimension] = found->second;
      const TensorId whole = before[n].out;
      const DType type = graph_.tensors[static_cast<size_t>(whole)].type;
      made_[whole].resize(parts.count);
      for (const size_t p : parts.order) {
        Node part = before[n];
        part.sizes[dimension] = parts.length;
        std::vector<Index> by = dimensions(part.extents().size());
        by[dimension] = by[dimension] + Index(parts.length * Size(static_cast<int64_t>(p)));
        part.body = graph_.exprs.substitute(part.body, by, part.extents());
        if (!part.at.empty()) part.at[parts.along] = Index::dimension(static_cast<int>(dimension));
        part = with_parts(std::move(part), p);
        Extents sizes = sizes_of(whole);
        sizes[parts.along] = parts.length;
        made_[whole][p] = part.at.empty() ? append(graph_, std::move(part), type)
                                          : graph_.add_node(std::move(part), type, {}, sizes);
      }
      parts_[whole] = parts;
    }
  }

  // `own`: the node is such a part of a map, which reads the same part of what it follows.
  Node with_parts(Node node, std::optional<size_t> own = std::nullopt) {
    if (node.special()) return node;
    node.body = graph_.exprs.replace_loads(node.body, [&](const Expr& load) {
      const auto found = parts_.find(load.tensor);
      if (found == parts_.end()) return graph_.exprs.load(load.tensor, load.at, load.type, load.args);
      const EqualParts& parts = found->second;
      const size_t part = own ? *own : *part_of(load, node, parts);
      std::vector<Index> at = load.at;
      at[parts.along] = at[parts.along] - Index(parts.length * Size(static_cast<int64_t>(part)));
      return graph_.exprs.load(made_.at(load.tensor)[part], at, load.type);
    });
    return node;
  }

  Graph& graph_;
  std::vector<std::vector<size_t>> readers_;
  std::set<TensorId> whole_;            // what is handed out
  std::map<size_t, Division> divided_;  // nodes
  std::set<size_t> meetings_;
  std::map<TensorId, EqualParts> parts_;
  std::map<TensorId, std::vector<TensorId>> made_;  // the parts of a tensor
};

}  // namespace

void divide_products(Graph& graph) { Divider(graph).run(); }

}  // namespace nereid::compiler
