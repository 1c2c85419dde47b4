#include "nereid/lower/fuse.h"

#include <algorithm>
#include <set>

namespace nereid::lower {
namespace {

constexpr size_t kLongBody = 64;     // expressions; a longer map with several readers is written out
constexpr int64_t kFewRows = 64;     // fewer programs than this leave most of a GPU idle
constexpr int64_t kLongRow = 16384;  // elements that are worth a second stage
constexpr int64_t kSplits = 256;

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph) {}

  Fused run() {
    inline_maps();
    split_long_reductions();
    find_live();
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (live_[n]) place(static_cast<NodeId>(n));
    decide_stores();
    return std::move(fused_);
  }

 private:
  Exprs& exprs() { return graph_.exprs; }
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }
  bool is_output(TensorId id) const { return std::ranges::find(graph_.outputs, id) != graph_.outputs.end(); }

  void inline_maps() {
    std::vector<int> readers(graph_.tensors.size(), 0);
    for (const auto& each : graph_.nodes)
      for (const TensorId id : graph_.reads(each)) ++readers[static_cast<size_t>(id)];
    for (auto& each : graph_.nodes) {
      const Extents extents = each.extents();
      each.body = exprs().replace_loads(each.body, [&](const Expr& load) -> ExprId {
        const Node* made = graph_.maker(load.tensor);
        const Expr copy = load;
        const auto keep = [&] { return exprs().load(copy.tensor, copy.at, copy.type); };
        if (made == nullptr || made->reduction != Reduction::kNone) return keep();
        const bool dear =
            exprs().below(made->body).size() > kLongBody && readers[static_cast<size_t>(copy.tensor)] > 1;
        return dear ? keep() : exprs().cast(exprs().substitute(made->body, copy.at, extents), copy.type);
      });
    }
  }

  // sum over c of body becomes sum over s of (sum over c' of body at s * chunk + c').
  void split_long_reductions() {
    const size_t count = graph_.nodes.size();
    std::vector<Node> nodes;
    std::vector<NodeId> moved(count);
    for (size_t n = 0; n < count; ++n) {
      Node& each = graph_.nodes[n];
      const bool splits = each.reduction == Reduction::kSum || each.reduction == Reduction::kMax ||
                          each.reduction == Reduction::kMin || each.reduction == Reduction::kProd;
      if (splits && element_count(each.sizes) < kFewRows && element_count(each.reduced) > kLongRow)
        nodes.push_back(first_stage(each, static_cast<NodeId>(nodes.size())));
      moved[n] = static_cast<NodeId>(nodes.size());
      nodes.push_back(each);
    }
    graph_.nodes = std::move(nodes);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      graph_.tensors[static_cast<size_t>(graph_.nodes[n].out)].node = static_cast<NodeId>(n);
  }

  Node first_stage(Node& second, NodeId id) {
    const int64_t count = element_count(second.reduced);
    const int64_t chunk = (count + kSplits - 1) / kSplits;
    Node first = second;
    first.name = second.name + "_parts";
    first.sizes.push_back(kSplits);
    first.reduced = {chunk};
    const Extents extents = first.extents();
    const size_t rows = second.sizes.size();
    const Index linear =
        Index::dimension(static_cast<int>(rows)) * chunk + Index::dimension(static_cast<int>(rows) + 1);
    std::vector<Index> at = dimensions(rows);
    for (auto& index : unravel(linear, second.reduced, extents)) at.push_back(std::move(index));
    const ExprId body = exprs().substitute(second.body, at, extents);
    const ExprId inside = exprs().within(linear, 0, count, extents);
    const ExprId nothing = exprs().constant(identity(second.reduction), exprs()[body].type);
    first.body = exprs().apply(Fn::kWhere, {inside, body, nothing});
    const DType type = exprs()[body].type;
    graph_.tensors.push_back({.type = type,
                              .sizes = first.sizes,
                              .strides = row_major(first.sizes),
                              .offset = 0,
                              .node = id,
                              .leaf = -1,
                              .name = first.name});
    first.out = static_cast<TensorId>(graph_.tensors.size()) - 1;
    second.reduced = {kSplits};
    second.body = exprs().load(first.out, dimensions(rows + 1), type);
    return first;
  }

  static std::vector<Index> dimensions(size_t count) {
    std::vector<Index> all;
    for (size_t d = 0; d < count; ++d) all.push_back(Index::dimension(static_cast<int>(d)));
    return all;
  }

  void find_live() {
    live_.assign(graph_.nodes.size(), false);
    for (const TensorId id : graph_.outputs)
      if (graph_.maker(id) != nullptr)
        live_[static_cast<size_t>(graph_.tensors[static_cast<size_t>(id)].node)] = true;
    for (size_t n = graph_.nodes.size(); n-- > 0;)
      if (live_[n])
        for (const TensorId id : graph_.reads(graph_.nodes[n]))
          if (graph_.maker(id) != nullptr)
            live_[static_cast<size_t>(graph_.tensors[static_cast<size_t>(id)].node)] = true;
  }

  void place(NodeId id) {
    made_in_.resize(graph_.nodes.size(), -1);
    int earliest = -1;  // the last kernel that makes something it reads
    for (const TensorId read : graph_.reads(node(id)))
      if (graph_.maker(read) != nullptr)
        earliest =
            std::max(earliest, made_in_[static_cast<size_t>(graph_.tensors[static_cast<size_t>(read)].node)]);
    for (int k = std::max(earliest, 0); k < static_cast<int>(fused_.kernels.size()); ++k)
      if (joins(fused_.kernels[static_cast<size_t>(k)], k, id)) {
        made_in_[static_cast<size_t>(id)] = k;
        return;
      }
    TileKernel kernel{.rows = node(id).sizes, .columns = node(id).reduced, .members = {}};
    const size_t rank = node(id).sizes.size();
    kernel.members.push_back({.node = id,
                              .reduction = node(id).reduction,
                              .body = node(id).body,
                              .whole = false,
                              .at = dimensions(rank)});
    made_in_[static_cast<size_t>(id)] = static_cast<int>(fused_.kernels.size());
    fused_.kernels.push_back(std::move(kernel));
  }

  bool joins(TileKernel& kernel, int k, NodeId id) {
    const Node& each = node(id);
    const auto map = mapping(kernel, k, id);
    if (!map) return false;
    // What the kernel makes is read back only row by row.
    for (const ExprId read : exprs().below(each.body)) {
      const Expr& expr = exprs()[read];
      if (expr.kind != Expr::Kind::kLoad || !made_by(expr.tensor, k)) continue;
      std::vector<Index> at;
      for (const Index& index : expr.at) at.push_back(substitute(index, *map, kernel.extents()));
      if (at != dimensions(kernel.rows.size()) || is_whole(kernel, expr.tensor)) return false;
    }
    Member member{.node = id, .reduction = each.reduction, .body = -1, .whole = false, .at = {}};
    member.body = exprs().substitute(each.body, *map, kernel.extents());
    member.whole = each.reduction == Reduction::kNone && each.sizes.size() > 0 &&
                   element_count(each.sizes) != element_count(kernel.rows);
    member.at.assign(map->begin(), map->begin() + static_cast<ptrdiff_t>(each.sizes.size()));
    kernel.members.push_back(std::move(member));
    return true;
  }

  bool made_by(TensorId tensor, int k) const {
    const NodeId maker = graph_.tensors[static_cast<size_t>(tensor)].node;
    return maker >= 0 && made_in_[static_cast<size_t>(maker)] == k;
  }
  bool is_whole(const TileKernel& kernel, TensorId tensor) const {
    const NodeId maker = graph_.tensors[static_cast<size_t>(tensor)].node;
    return std::ranges::any_of(kernel.members, [&](const Member& m) { return m.node == maker && m.whole; });
  }

  // Which of the kernel's dimensions each of the node's is.
  std::optional<std::vector<Index>> mapping(const TileKernel& kernel, int k, NodeId id) {
    const Node& each = node(id);
    const Extents all = each.extents();
    if (each.reduction != Reduction::kNone) {
      if (each.sizes != kernel.rows || each.reduced != kernel.columns) return std::nullopt;
      return dimensions(all.size());
    }
    // A map: where it reads one of the kernel's rows, its own dimensions are those rows; the rest are
    // columns.
    std::vector<int> rows_of;
    for (const ExprId read : exprs().below(each.body)) {
      const Expr& expr = exprs()[read];
      if (expr.kind != Expr::Kind::kLoad || !made_by(expr.tensor, k)) continue;
      std::vector<int> dims;
      for (const Index& index : expr.at) {
        if (index.terms().size() != 1 || index.constant() != 0 || index.terms()[0].second != 1 ||
            index.terms()[0].first.kind != Atom::Kind::kDimension)
          return std::nullopt;
        dims.push_back(index.terms()[0].first.dimension);
      }
      if (!rows_of.empty() && rows_of != dims) return std::nullopt;
      rows_of = dims;
    }
    if (rows_of.size() != kernel.rows.size() ||
        std::set<int>(rows_of.begin(), rows_of.end()).size() != rows_of.size())
      return std::nullopt;
    std::vector<Index> map(all.size());
    std::vector<bool> row(all.size(), false);
    for (size_t r = 0; r < rows_of.size(); ++r) {
      const auto d = static_cast<size_t>(rows_of[r]);
      if (all[d] != kernel.rows[r]) return std::nullopt;
      map[d] = Index::dimension(static_cast<int>(r));
      row[d] = true;
    }
    Extents rest;
    for (size_t d = 0; d < all.size(); ++d) {
      if (row[d]) continue;
      map[d] = Index::dimension(static_cast<int>(kernel.rows.size() + rest.size()));
      rest.push_back(all[d]);
    }
    if (!rest.empty() && rest != kernel.columns) return std::nullopt;
    if (rest.empty() && kernel.rows.empty() && !kernel.columns.empty() && rows_of.empty() && !all.empty())
      return std::nullopt;
    return map;
  }

  void decide_stores() {
    fused_.stored.assign(graph_.tensors.size(), false);
    for (const TensorId id : graph_.outputs) fused_.stored[static_cast<size_t>(id)] = true;
    for (size_t k = 0; k < fused_.kernels.size(); ++k)
      for (const Member& member : fused_.kernels[k].members)
        for (const TensorId read : graph_.reads(node(member.node)))
          if (graph_.maker(read) != nullptr && !made_by(read, static_cast<int>(k)))
            fused_.stored[static_cast<size_t>(read)] = true;
  }

 public:
  static double identity(Reduction reduction) {
    switch (reduction) {
      case Reduction::kProd:
      case Reduction::kAll:
        return 1;
      case Reduction::kMax:
      case Reduction::kArgMax:
        return -std::numeric_limits<double>::infinity();
      case Reduction::kMin:
      case Reduction::kArgMin:
        return std::numeric_limits<double>::infinity();
      default:
        return 0;
    }
  }

 private:
  Graph& graph_;
  Fused fused_;
  std::vector<bool> live_;
  std::vector<int> made_in_;  // of each node: its kernel
};

}  // namespace

Extents TileKernel::extents() const {
  Extents both = rows;
  both.insert(both.end(), columns.begin(), columns.end());
  return both;
}

double identity(Reduction reduction) { return Fuser::identity(reduction); }

Fused fuse(Graph& graph) { return Fuser(graph).run(); }

}  // namespace nereid::lower
