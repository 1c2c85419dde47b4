#include "nereid/compiler/transforms/fuse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/kernel_mapping.h"
#include "nereid/compiler/transforms/plain_fusion.h"
#include "nereid/compiler/transforms/products/factor_sums.h"
#include "nereid/compiler/transforms/products/twin_products.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kWorthATile = 16;  // adjacent elements that are worth a way through shared memory
constexpr int64_t kSector = 8;       // elements of what a GPU writes at least
constexpr int64_t kLongScatter = 2048, kLargeScatter = 1 << 20;
constexpr size_t kMaxMembers = 24;  // of one kernel: each needs a pointer and registers

std::vector<Index> identity_map(size_t count) {
  std::vector<Index> all;
  for (size_t d = 0; d < count; ++d) all.push_back(Index::dimension(static_cast<int>(d)));
  return all;
}

// Puts nodes into kernels, one after the other.
// A dimension with one element is always at the first.
Index without_unit_dims(const Index& index, const Extents& extents) {
  std::vector<Index> by = identity_map(extents.size());
  for (size_t d = 0; d < extents.size(); ++d)
    if (extents[d] == 1) by[d] = Index();
  return substitute(index, by, extents);
}

class Fuser {
 public:
  Fuser(Graph& graph, const Target& target, const std::set<int>& cuts, Fusion fusion, std::set<TensorId> sums)
      : graph_(graph),
        target_(target),
        cuts_(cuts),
        fusion_(fusion),
        factor_sums_(std::move(sums)),
        made_in_(graph.nodes.size(), -1) {}

  Fused run() {
    const std::vector<bool> live = live_nodes(graph_);
    const std::vector<bool> last = unread_maps();
    for (const bool now : {false, true})
      for (size_t n = 0; n < graph_.nodes.size(); ++n)
        if (live[n] && last[n] == now) place(static_cast<NodeId>(n));
    decide_stores();
    return std::move(fused_);
  }

 private:
  Exprs& exprs() { return graph_.exprs; }
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  // As the sum that others compute again for a norm: they join what reads the same.
  std::vector<bool> unread_maps() const {
    std::vector<bool> none(graph_.nodes.size(), fusion_ == Fusion::kFree);
    for (const Node& each : graph_.nodes)
      for (const TensorId read : graph_.reads(each))
        if (const NodeId maker = maker_of(read); maker >= 0) none[static_cast<size_t>(maker)] = false;
    for (size_t n = 0; n < none.size(); ++n) {
      const Node& each = graph_.nodes[n];
      none[n] = none[n] && !each.special() && each.reduction == Reduction::kNone && each.at.empty();
    }
    return none;
  }

  void place(NodeId id) {
    int earliest = -1;  // the last kernel that makes something it reads
    for (const TensorId read : graph_.reads(node(id)))
      if (const NodeId maker = maker_of(read); maker >= 0)
        earliest = std::max(earliest, made_in_[static_cast<size_t>(maker)]);
    if (!node(id).special())
      for (int k = std::max(earliest, 0); k < static_cast<int>(fused_.kernels.size()); ++k)
        if (joins(fused_.kernels[static_cast<size_t>(k)], id)) {
          made_in_[static_cast<size_t>(id)] = k;
          return;
        }
    made_in_[static_cast<size_t>(id)] = static_cast<int>(fused_.kernels.size());
    fused_.kernels.push_back(alone(id));
  }

  TileKernel alone(NodeId id) {
    const Node& each = node(id);
    if (each.call != nullptr || !each.parts.empty())
      return {.rows = {}, .columns = {}, .members = {}, .kept = id};
    TileKernel kernel{.rows = each.sizes, .columns = each.reduced, .members = {}};
    std::vector<Index> map = identity_map(each.extents().size());
    if (!each.special() && each.reduction == Reduction::kNone && each.reduced.empty() && each.at.empty()) {
      // In the order in which the result lies in memory. A dimension along which something else lies is the
      // columns of a tile, so that both sides go through memory in their order.
      const auto across = read_across(each);
      kernel.rows.clear();
      for (const int d : as_it_lies(each)) {
        if (d == across) continue;
        map[static_cast<size_t>(d)] = Index::dimension(static_cast<int>(kernel.rows.size()));
        kernel.rows.push_back(each.sizes[static_cast<size_t>(d)]);
      }
      if (across) {
        map[static_cast<size_t>(*across)] = Index::dimension(static_cast<int>(kernel.rows.size()));
        kernel.columns = {each.sizes[static_cast<size_t>(*across)]};
      } else if (const auto first =
                     planes_from(graph_, exprs().substitute(each.body, map, kernel.rows), kernel.rows);
                 first < kernel.rows.size()) {
        const auto columns = kernel.rows.begin() + static_cast<ptrdiff_t>(first);
        kernel.columns.assign(columns, kernel.rows.end());
        kernel.rows.erase(columns, kernel.rows.end());
        kernel.planes = true;
      }
    }
    kernel.members.push_back(member(kernel, id, map));
    return kernel;
  }

  // The dimensions of a map, that of the widest stride first.
  std::vector<int> as_it_lies(const Node& each) const {
    const auto& strides = graph_.tensors[static_cast<size_t>(each.out)].strides;
    std::vector<int> order(each.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](int d) { return strides[static_cast<size_t>(d)]; });
    return order;
  }

  // The dimension of a map along which something that it loads lies in memory, where its result lies along
  // another: a transpose.
  std::optional<int> read_across(const Node& each) {
    if (each.reduction != Reduction::kNone || !each.reduced.empty() || !each.at.empty()) return std::nullopt;
    const Tensor& out = graph_.tensors[static_cast<size_t>(each.out)];
    const auto rank = static_cast<int>(each.sizes.size());
    int along = -1;
    for (int d = 0; d < rank; ++d)
      if (out.strides[static_cast<size_t>(d)] == 1 && each.sizes[static_cast<size_t>(d)] >= kWorthATile)
        along = d;
    if (along < 0) return std::nullopt;
    for (const ExprId id : exprs().below(each.body)) {
      const Expr& load = exprs()[id];
      if (load.kind != Expr::Kind::kLoad || !load.args.empty()) continue;
      Index address;
      for (size_t d = 0; d < load.at.size(); ++d)
        address = address + load.at[d] * graph_.tensors[static_cast<size_t>(load.tensor)].strides[d];
      const auto own = address.stride(along);
      if (!own || *own <= 1) continue;
      for (int d = 0; d < rank; ++d)
        if (d != along && address.stride(d) == 1 && each.sizes[static_cast<size_t>(d)] >= kWorthATile)
          return d;
    }
    return std::nullopt;
  }

  // The node as a member of a kernel, its own dimension d being map[d].
  Member member(const TileKernel& kernel, NodeId id, const std::vector<Index>& map) {
    const Node& each = node(id);
    Member made{.node = id, .reduction = each.reduction, .body = -1, .at = {}};
    made.scan = each.scan;
    made.body = exprs().substitute(each.body, map, kernel.extents());
    const std::vector<Index> at =
        each.at.empty() ? identity_map(each.sizes.size() + (each.scan ? 1 : 0)) : each.at;
    for (const Index& index : at)
      made.at.push_back(without_unit_dims(substitute(index, map, kernel.extents()), kernel.extents()));
    const auto uses_columns = [&](const Index& index) {
      for (size_t c = 0; c < kernel.columns.size(); ++c)
        if (index.uses(static_cast<int>(kernel.rows.size() + c))) return true;
      return false;
    };
    made.whole = each.scan || (each.reduction == Reduction::kNone && std::ranges::any_of(map, uses_columns));
    return made;
  }

  bool joins(TileKernel& kernel, NodeId id) {
    if (kernel.kept >= 0 || kernel.members.size() >= kMaxMembers) return false;
    // Of a reduction a program has a whole row, so it would do a window for many elements a thread.
    if (kernel.planes && node(id).reduction != Reduction::kNone) return false;
    const Node& first = node(kernel.members.front().node);
    if (first.special() || part_of(first, cuts_) != part_of(node(id), cuts_)) return false;
    if (fusion_ != Fusion::kFree && (!joins_plainly(kernel, node(id)) || splits_call(kernel, id)))
      return false;
    const auto map = mapping(kernel, id);
    if (!map) return false;
    // What the kernel makes is read back only where it was made.
    for (const ExprId read : exprs().below(node(id).body)) {
      const Expr& expr = exprs()[read];
      if (expr.kind != Expr::Kind::kLoad) continue;
      const Member* maker = made_by(kernel, expr.tensor);
      if (maker == nullptr) continue;
      std::vector<Index> at;
      for (const Index& index : expr.at)
        at.push_back(without_unit_dims(substitute(index, *map, kernel.extents()), kernel.extents()));
      if (at != maker->at || !expr.args.empty()) return false;
    }
    Member made = member(kernel, id, *map);
    made.twin = is_contraction(graph_, node(id));
    if (!made.twin) made.across = across(kernel, id, *map);
    if (!in_one_pass(kernel, made) || scatters(kernel, made) || ends_sharing(kernel, made) ||
        updates_shared_row(kernel, made) || crosses(kernel, made))
      return false;
    kernel.members.push_back(std::move(made));
    return true;
  }

  // Stored along long rows whose neighbours are apart in memory, an element to a sector, while other rows'
  // are next to it: a kernel of its own transposes in tiles.
  bool scatters(const TileKernel& kernel, const Member& made) {
    const Node& each = node(made.node);
    if (each.reduction != Reduction::kNone || !made.whole || kernel.column_count() < kLongScatter ||
        element_count(each.sizes) < kLargeScatter ||
        std::ranges::none_of(kernel.members, [](const Member& m) { return m.reduction != Reduction::kNone; }))
      return false;
    Index address;
    const auto& strides = graph_.tensors[static_cast<size_t>(each.out)].strides;
    for (size_t d = 0; d < made.at.size(); ++d) address = address + made.at[d] * strides[d];
    const Extents extents = kernel.extents();
    for (size_t d = extents.size(); d-- > kernel.rows.size();)
      if (extents[d] > 1) return std::abs(address.stride(static_cast<int>(d)).value_or(1)) >= kSector;
    return false;
  }

  // A reduction whose rows are adjacent in memory, with others whose columns are: one of them would load an
  // element of each sector. So is the softmax of a matrix and that of its transpose.
  bool crosses(const TileKernel& kernel, const Member& made) {
    if (made.reduction == Reduction::kNone || kernel.row_count() * kernel.column_count() < kLargeScatter ||
        is_contraction(graph_, node(kernel.members.front().node)))
      return false;
    TileKernel alone = kernel;
    alone.members = {made};
    const int own = rows_are_inner(graph_, alone), others = rows_are_inner(graph_, kernel);
    return (own > 0 && others < 0) || (own < 0 && others > 0);
  }

  // A few long rows are shared among programs only where a part of all that a kernel reads of them fits its
  // registers (tile.h). A map that reads more tensors is a kernel of its own: as a part of this
  // one it would leave all of a row to one program.
  bool ends_sharing(const TileKernel& kernel, const Member& made) {
    if (made.reduction != Reduction::kNone || !made.whole || kernel.row_count() >= kRowsOfPrograms ||
        !is_shared_row(kernel.row_count(), kernel.column_count(), target_) ||
        wide_loads(graph_, kernel) > kSharedTensors)
      return false;
    TileKernel with = kernel;
    with.members.push_back(made);
    return wide_loads(graph_, with) > kSharedTensors;
  }

  // State of a row, as a batch norm's running mean: one program must change it (update_in_place.h), and those
  // that share the row would all read it.
  bool updates_shared_row(const TileKernel& kernel, const Member& made) {
    return !made.whole && is_shared_row(kernel.row_count(), kernel.column_count(), target_) &&
           std::ranges::any_of(graph_.updates,
                               [&](const Update& u) { return u.from == node(made.node).out; });
  }

  // It is of a call that the kernel does already, or of one more, and plain.
  bool joins_plainly(const TileKernel& kernel, const Node& each) {
    std::set<int> steps = each.steps;
    for (const Member& member : kernel.members) {
      const Node& other = node(member.node);
      if (of_one_call(other, each)) return true;
      steps.insert(other.steps.begin(), other.steps.end());
    }
    return steps.size() <= kMaxPlainSteps && is_plain(graph_, each, fusion_);
  }

  // A reduction of what the kernel makes, whose call reads that again with its result: the rest of the call
  // would have to be another kernel's (in_one_pass).
  bool splits_call(const TileKernel& kernel, NodeId id) {
    const auto reads_whole = [&](const Node& each) {
      return std::ranges::any_of(graph_.reads(each), [&](TensorId read) {
        const Member* maker = made_by(kernel, read);
        return maker != nullptr && maker->whole;
      });
    };
    if (node(id).reduction == Reduction::kNone || !reads_whole(node(id))) return false;
    return std::any_of(graph_.nodes.begin() + id + 1, graph_.nodes.end(),
                       [&](const Node& other) { return of_one_call(node(id), other) && reads_whole(other); });
  }

  // A program may go over its columns in turns, so what has an element for each column is gone when a
  // reduction of it is there: who reads both would need it again.
  bool in_one_pass(const TileKernel& kernel, const Member& made) {
    std::set<NodeId> rows, rows_of_whole;
    bool reads_whole = false;
    for (const TensorId read : graph_.reads(node(made.node))) {
      const Member* maker = made_by(kernel, read);
      if (maker == nullptr) continue;
      if (!maker->whole) rows.insert(maker->node);
      if (!maker->whole) continue;
      reads_whole = true;
      for (const TensorId behind : graph_.reads(node(maker->node)))
        if (const Member* row = made_by(kernel, behind); row != nullptr && !row->whole)
          rows_of_whole.insert(row->node);
    }
    return !reads_whole ||
           (std::ranges::includes(rows_of_whole, rows) && (made.whole || made.reduction != Reduction::kNone));
  }

  NodeId maker_of(TensorId tensor) const { return graph_.tensors[static_cast<size_t>(tensor)].node; }
  const Member* made_by(const TileKernel& kernel, TensorId tensor) const {
    return nereid::compiler::made_by(graph_, kernel, tensor);
  }

  // Which of the kernel's dimensions each of the node's is.
  std::optional<std::vector<Index>> mapping(const TileKernel& kernel, NodeId id) {
    const Node& each = node(id);
    const bool after_contraction = is_contraction(graph_, node(kernel.members.front().node));
    const bool has_twin = std::ranges::any_of(kernel.members, &Member::twin);
    if (has_twin && each.reduction != Reduction::kNone) return std::nullopt;
    if (fusion_ == Fusion::kFree && cuts_.empty() && is_twin(graph_, kernel, id, target_))
      return identity_map(each.extents().size());
    if (after_contraction && factor_sums_.contains(each.out))
      return rows_of_factor(graph_, node(kernel.members.front().node), each);
    if (after_contraction && each.reduction != Reduction::kNone)
      return fusion_ == Fusion::kFree ? in_tile(graph_, kernel, each, target_) : std::nullopt;
    if (each.reduction != Reduction::kNone) {
      const bool same = each.sizes == kernel.rows && each.reduced == kernel.columns;
      if (!same || is_contraction(graph_, each)) return std::nullopt;
      return identity_map(each.extents().size());
    }
    bool follows = false;
    const auto known = known_dimensions(graph_, kernel, each, each.sizes, follows);
    if (!known) return std::nullopt;
    if (!follows) return horizontal(kernel, each, after_contraction);
    return completed_mapping(kernel, each, *known, after_contraction, reduced_before(graph_, kernel, each));
  }

  std::vector<int> across(const TileKernel& kernel, NodeId id, const std::vector<Index>& map) {
    const Node& each = node(id);
    if (!is_contraction(graph_, node(kernel.members.front().node)) || factor_sums_.contains(each.out))
      return {};
    if (each.reduction == Reduction::kNone) return reduced_before(graph_, kernel, each);
    std::vector<int> rows;
    for (size_t d = each.sizes.size(); d < map.size(); ++d)
      for (size_t r = 0; r < kernel.rows.size(); ++r)
        if (map[d] == Index::dimension(static_cast<int>(r))) rows.push_back(static_cast<int>(r));
    return rows;
  }

  // Horizontal fusion: a map that reads nothing of a kernel's, with what has the same shape: one launch for
  // both, and what both load is loaded once. Where fusion is simple a kernel does what belongs together.
  std::optional<std::vector<Index>> horizontal(const TileKernel& kernel, const Node& each,
                                               bool after_contraction) {
    if (after_contraction) return std::nullopt;
    if (each.sizes != kernel.extents()) return std::nullopt;
    if (counts(each) != counts(node(kernel.members.front().node))) return std::nullopt;
    if ((fusion_ != Fusion::kFree || !kernel.columns.empty()) && !shares_load(kernel, each))
      return std::nullopt;
    return identity_map(each.sizes.size());
  }

  // State that follows from itself alone, as a number of batches does. In a launch with what is made of
  // inputs it would look as if it were made of them, and be taken for something kept from an earlier call.
  bool counts(const Node& each) {
    const auto reads = graph_.reads(each);
    return std::ranges::any_of(graph_.updates, [&](const Update& u) {
      return u.from == each.out && std::ranges::all_of(reads, [&](TensorId id) { return id == u.leaf; });
    });
  }

  bool shares_load(const TileKernel& kernel, const Node& each) {
    const auto wanted = graph_.reads(each);
    return std::ranges::any_of(kernel.members, [&](const Member& m) {
      return std::ranges::any_of(graph_.reads(node(m.node)),
                                 [&](TensorId id) { return std::ranges::find(wanted, id) != wanted.end(); });
    });
  }

  void decide_stores() {
    fused_.stored.assign(graph_.tensors.size(), false);
    for (const TensorId id : graph_.results()) fused_.stored[static_cast<size_t>(id)] = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (made_in_[n] >= 0)
        for (const TensorId read : graph_.reads(graph_.nodes[n]))
          if (const NodeId maker = maker_of(read);
              maker >= 0 && made_in_[static_cast<size_t>(maker)] != made_in_[n])
            fused_.stored[static_cast<size_t>(read)] = true;
  }

  Graph& graph_;
  const Target& target_;
  const std::set<int>& cuts_;
  const Fusion fusion_;
  const std::set<TensorId> factor_sums_;  // sums that the products before them add up (factor_sums.h)
  Fused fused_;
  std::vector<int> made_in_;  // of each node: its kernel
};

}  // namespace

Extents TileKernel::extents() const {
  Extents both = rows;
  both.insert(both.end(), columns.begin(), columns.end());
  return both;
}

double identity(Reduction reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::kProd:
      return 1;
    case Reduction::kMax:
    case Reduction::kArgMax:
    case Reduction::kLogSumExp:
      return -kInfinity;
    case Reduction::kMin:
    case Reduction::kArgMin:
      return kInfinity;
    default:
      return 0;
  }
}

Fused fuse(Graph& graph, const Target& target, bool split_sums, const std::set<int>& cuts, Fusion fusion) {
  prepare(graph, target, split_sums, cuts, fusion);
  std::set<TensorId> sums;
  if (fusion == Fusion::kFree && cuts.empty()) sums = sums_of_factors(graph, target);
  return Fuser(graph, target, cuts, fusion, std::move(sums)).run();
}

}  // namespace nereid::compiler
