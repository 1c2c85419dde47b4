#include "nereid/compiler/transforms/fusion_preparation.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/flash.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/plain_fusion.h"
#include "nereid/compiler/transforms/products/channels_last.h"
#include "nereid/compiler/transforms/products/computed_factors.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"
#include "nereid/compiler/transforms/products/one_copy.h"
#include "nereid/compiler/transforms/products/split_sum.h"
#include "nereid/compiler/transforms/products/window_factors.h"
#include "nereid/compiler/transforms/slices.h"
#include "nereid/compiler/transforms/split_rows.h"
#include "nereid/compiler/transforms/split_scan.h"
#include "nereid/trace/access.h"

namespace nereid::compiler {
namespace {

constexpr size_t kLongBody = 64;     // expressions; a longer map with several readers is written out
constexpr size_t kWindowBody = 8;    // expressions that are computed again for every element of a window
constexpr size_t kMaxInlined = 600;  // expressions of a body
constexpr int kMapsOfNorm = 4;       // between a statistic and what it scales
constexpr int64_t kFewReduced = 4;   // of a row that a thread reduces by itself
// Adjacent rows that are less than a sector, elements of runs that are worth a stage, and of all of them.
constexpr int64_t kFewAdjacent = 8, kMinWideRun = 32, kWideRun = 128, kManyRuns = 1 << 20;
// Of a depthwise convolution, whose windows overlap: 7 x 7.
constexpr int64_t kWeightedWindow = 64;

// A sum of products: of a depthwise convolution.
bool is_weighted(const Graph& graph, const Node& node) {
  const Expr& body = graph.exprs[node.body];
  return node.reduction == Reduction::kSum && body.kind == Expr::Kind::kApply && body.fn == Fn::kMul;
}

// A reduction over a few elements as an expression of them.
void unroll(Graph& graph, Node& node) {
  Exprs& exprs = graph.exprs;
  const Extents sizes = node.sizes;
  const int64_t count = element_count(node.reduced);
  std::optional<Value> best, which;
  for (int64_t r = 0; r < count; ++r) {
    std::vector<Index> by = dimensions(sizes.size());
    int64_t left = r;
    std::vector<Index> at(node.reduced.size());
    for (size_t d = node.reduced.size(); d-- > 0;) {
      at[d] = Index(left % node.reduced[d]);
      left /= node.reduced[d];
    }
    by.insert(by.end(), at.begin(), at.end());
    const Value element(exprs, exprs.substitute(node.body, by, sizes));
    const Value place(exprs, exprs.integer(r));
    if (!best) {
      best = element;
      which = place;
      continue;
    }
    switch (node.reduction) {
      case Reduction::kProd:
        best = *best * element;
        break;
      case Reduction::kMax:
        best = maximum(*best, element);
        break;
      case Reduction::kMin:
        best = minimum(*best, element);
        break;
      case Reduction::kArgMax:
      case Reduction::kArgMin: {
        const Value beats = node.reduction == Reduction::kArgMax ? element > *best : element < *best;
        const Value better = beats | (is_nan(element) & negated(is_nan(*best)));
        best = better.where(element, *best);
        which = better.where(place, *which);
        break;
      }
      default:
        best = *best + element;
    }
  }
  const bool place = node.reduction == Reduction::kArgMax || node.reduction == Reduction::kArgMin;
  const DType type = compute_type(graph.tensors[static_cast<size_t>(node.out)].type);
  node.body = exprs.cast((place ? *which : *best).id(), type);
  node.reduced.clear();
  node.reduction = Reduction::kNone;
}

// Inlines maps into their readers.
class Inliner {
 public:
  Inliner(Graph& graph, const Target& target, const std::set<int>& cuts, Fusion fusion)
      : graph_(graph), target_(target), cuts_(cuts), live_(live_nodes(graph)), places_(graph.tensors.size()) {
    if (fusion != Fusion::kFree) plain_.emplace(graph, live_, fusion);
  }

  void run() {
    count();
    for (auto& node : graph_.nodes) {
      if (node.call != nullptr || node.recurrence) continue;
      if (node.flash)
        inline_into_factors(node);
      else
        node.body = inlined(node, node.body);
      if (plain_ && !node.flash) plain_->look_at(node);
    }
  }

 private:
  struct Places {
    size_t nodes = 0;        // that read it
    size_t most = 0;         // indices at which one node does
    bool elsewhere = false;  // one that is no map of the same size, element by element
  };

  static bool same_element(const Expr& load) {
    for (size_t d = 0; d < load.at.size(); ++d)
      if (!(load.at[d] == Index::dimension(static_cast<int>(d)))) return false;
    return load.args.empty();
  }

  void count() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!live_[n]) continue;
      if (node.call != nullptr) {
        for (const auto& [value, tensor] : node.inputs) ++places_[static_cast<size_t>(tensor)].nodes;
        continue;
      }
      std::map<TensorId, size_t> here;
      for (const ExprId id : graph_.exprs.below(node.body)) {
        const Expr& load = graph_.exprs[id];
        if (load.kind != Expr::Kind::kLoad) continue;
        ++here[load.tensor];
        const bool map = node.reduction == Reduction::kNone &&
                         node.sizes == graph_.tensors[static_cast<size_t>(load.tensor)].sizes;
        if (!map || !same_element(load)) places_[static_cast<size_t>(load.tensor)].elsewhere = true;
      }
      for (const auto& [tensor, count] : here) {
        Places& places = places_[static_cast<size_t>(tensor)];
        ++places.nodes;
        places.most = std::max(places.most, count);
      }
    }
  }

  // A map that follows a contraction element by element, and is read otherwise: it ends that kernel, so that
  // what is read is its result rather than the contraction's and all that comes after it.
  bool ends_contraction(TensorId tensor) const {
    const Node& node = *graph_.maker(tensor);
    if (!places_[static_cast<size_t>(tensor)].elsewhere) return false;
    for (const ExprId id : graph_.exprs.below(node.body)) {
      const Expr& load = graph_.exprs[id];
      if (load.kind != Expr::Kind::kLoad || !same_element(load)) continue;
      const Node* maker = graph_.maker(load.tensor);
      if (maker != nullptr && maker->call == nullptr &&
          graph_.tensors[static_cast<size_t>(load.tensor)].sizes == node.sizes &&
          is_contraction(graph_, *maker))
        // That kernel is over before a norm of its results is known.
        return places_[static_cast<size_t>(tensor)].nodes > 1 || !follows_reduction_of(node, load.tensor);
    }
    return false;
  }

  bool follows_reduction_of(const Node& node, TensorId tensor, int maps = kMapsOfNorm) const {
    return std::ranges::any_of(graph_.reads(node), [&](TensorId read) {
      const Node* maker = graph_.maker(read);
      if (read == tensor || maker == nullptr || maker->special()) return false;
      const auto reads = graph_.reads(*maker);
      if (maker->reduction != Reduction::kNone && std::ranges::find(reads, tensor) != reads.end())
        return true;
      return maps > 0 && follows_reduction_of(*maker, tensor, maps - 1);
    });
  }

  // Of a factor: computed again for every tile of the other factor, so it must be next to nothing.
  bool light(const Node& map) const {
    size_t loads = 0, work = 0;
    for (const ExprId id : graph_.exprs.below(map.body)) {
      const Expr& expr = graph_.exprs[id];
      loads += expr.kind == Expr::Kind::kLoad ? 1 : 0;
      work += expr.kind == Expr::Kind::kApply && expr.fn != Fn::kCast && expr.fn != Fn::kWhere &&
                      expr.fn != Fn::kAnd
                  ? 1
                  : 0;
    }
    return loads <= 2 && work <= 2;
  }

  // The reader, whose programs make all products of the factor, computes each of its elements once.
  bool computed_once(const Node& reader, TensorId tensor) const {
    if (!reader.direct || places_[static_cast<size_t>(tensor)].nodes != 1) return false;
    const Expr& body = graph_.exprs[reader.body];
    for (const size_t side : {0, 1}) {
      const auto below = graph_.exprs.below(body.args[side]);
      if (std::ranges::none_of(below, [&](ExprId id) {
            return graph_.exprs[id].kind == Expr::Kind::kLoad && graph_.exprs[id].tensor == tensor;
          }))
        continue;
      const Node& made = *graph_.maker(tensor);
      return products_of(graph_, reader, 1 - side) <= kMaxDirectProducts &&
             graph_.exprs.below(made.body).size() <= kMaxDirectBody;
    }
    return false;
  }

  bool stays(const Node& reader, TensorId tensor) {
    const Node* made = graph_.maker(tensor);
    if (made == nullptr || made->special() || made->reduction != Reduction::kNone || made->whole ||
        !made->at.empty() || part_of(*made, cuts_) != part_of(reader, cuts_))
      return true;
    if (plain_ && !plain_->takes(reader, *made)) return true;
    if (reader.window_factor && places_[static_cast<size_t>(tensor)].nodes == 1) return false;
    if (computed_once(reader, tensor)) return false;
    const Places& places = places_[static_cast<size_t>(tensor)];
    const size_t length = graph_.exprs.below(made->body).size();
    // What is written anyway is read, where that is less than to compute it again, or simpler.
    if ((plain_ || length > kWindowBody) && std::ranges::find(results_, tensor) != results_.end())
      return true;
    if (length > kLongBody && places.nodes > 1) return true;
    if (places.most > 1 && length > kWindowBody && length * places.most > kMaxInlined) return true;
    if (places.most > 4 && length > kWindowBody) return true;
    if ((reader.flash || is_contraction(graph_, reader)) && !light(*made) && !in_products(tensor))
      return true;
    return ends_contraction(tensor);
  }

  // All of its readers compute it, or none.
  bool in_products(TensorId tensor) {
    const auto known = in_products_.find(tensor);
    if (known != in_products_.end()) return known->second;
    return in_products_[tensor] = !plain_ && computed_in_products(graph_, tensor, live_, target_);
  }

  void inline_into_factors(Node& node) {
    for (ExprId* factor : {&node.flash->query, &node.flash->key, &node.flash->value})
      *factor = inlined(node, *factor);
    node.body = reads_of(graph_, *node.flash);
  }

  ExprId inlined(Node& node, ExprId of) {
    const Extents extents = node.extents();
    std::map<TensorId, bool> decided;
    return graph_.exprs.replace_loads(of, [&](const Expr& load) -> ExprId {
      const Expr copy = load;
      if (!decided.contains(copy.tensor)) decided[copy.tensor] = stays(node, copy.tensor);
      if (!decided.at(copy.tensor)) {
        const auto body = graph_.inlined(copy, extents);
        if (body) {
          const Node taken = *graph_.maker(copy.tensor);
          for (const auto& word : taken.before) remember(node, word);
          node.steps.insert(taken.steps.begin(), taken.steps.end());
          remember(node, taken.word());
          return rounded(*body, copy);
        }
      }
      return graph_.exprs.load(copy.tensor, copy.at, copy.type, copy.args);
    });
  }

  static void remember(Node& node, const StepWord& word) {
    if (word.text != "copy" && std::ranges::find(node.before, word) == node.before.end())
      node.before.push_back(word);
  }

  // As what is loaded would be: an integer that is stored in a narrower type wraps.
  ExprId rounded(ExprId body, const Expr& load) { return graph_.exprs.cast(body, load.type); }

  Graph& graph_;
  const Target& target_;
  const std::set<int>& cuts_;
  const std::vector<bool> live_;
  std::optional<PlainFusion> plain_;
  std::vector<Places> places_;            // of each tensor
  std::map<TensorId, bool> in_products_;  // of those asked for
  const std::vector<TensorId> results_ = graph_.results();
};

}  // namespace

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  const auto reach = [&](TensorId id) {
    if (const NodeId maker = graph.tensors[static_cast<size_t>(id)].node; maker >= 0)
      live[static_cast<size_t>(maker)] = true;
  };
  for (const TensorId id : graph.results()) reach(id);
  // A draw moves its stream on for those that come after it, in this call and in later ones.
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (const auto* call = graph.nodes[n].call; call != nullptr && trace::draws_random(*call)) live[n] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;)
    if (live[n])
      for (const TensorId id : graph.reads(graph.nodes[n])) reach(id);
  return live;
}

namespace {

// Elements of the dimensions that one factor of a sum of products has alone, and the other.
std::optional<std::pair<int64_t, int64_t>> sides(const Graph& graph, const Node& node) {
  if (node.call != nullptr || node.reduction != Reduction::kSum || node.scan) return std::nullopt;
  const Expr& body = graph.exprs[node.body];
  if (body.kind != Expr::Kind::kApply || body.fn != Fn::kMul || body.type != DType::kF32) return std::nullopt;
  std::pair<int64_t, int64_t> only{1, 1};
  for (size_t d = 0; d < node.sizes.size(); ++d) {
    const bool left = graph.exprs.uses(body.args[0], static_cast<int>(d)),
               right = graph.exprs.uses(body.args[1], static_cast<int>(d));
    if (left && !right) only.first *= node.sizes[d];
    if (right && !left) only.second *= node.sizes[d];
  }
  return only;
}

}  // namespace

bool is_contraction(const Graph& graph, const Node& node) {
  const auto only = sides(graph, node);
  if (!only) return false;
  return std::min(only->first, only->second) > 1 || (node.taps && std::max(only->first, only->second) > 1);
}

bool may_be_by_taps(const Graph& graph, const Node& node) {
  if (node.special() || node.window || node.window_factor || node.taps || !node.low.empty()) return false;
  const auto only = sides(graph, node);
  if (only && !node.tf32) {
    // Several reduced dimensions: no product of matrices, which read rows as it is.
    const Expr& body = graph.exprs[node.body];
    const bool halves = half_factor_load(graph, body.args[0]) && half_factor_load(graph, body.args[1]);
    if (!halves || node.reduced.size() < 2) return false;
  }
  return only && std::max(only->first, only->second) > 1;
}

int part_of(const Node& node, const std::set<int>& cuts) {
  if (node.steps.empty()) return 0;
  return static_cast<int>(std::distance(cuts.begin(), cuts.upper_bound(*node.steps.rbegin())));
}

// Reductions over a few elements whose results are read by what has no more elements than they: a kernel of
// their own would only store them. (A norm or a softmax reads its rows again, and holds them.)
void unroll_short_rows(Graph& graph) {
  std::vector<bool> grows(graph.tensors.size(), false);
  for (const Node& node : graph.nodes | std::views::reverse) {
    const int64_t elements =
        node.special() ? std::numeric_limits<int64_t>::max() : element_count(node.extents()).value();
    const bool passed_on = node.reduction == Reduction::kNone && grows[static_cast<size_t>(node.out)];
    for (const TensorId id : graph.reads(node))
      if (passed_on || elements > element_count(graph.tensors[static_cast<size_t>(id)].sizes))
        grows[static_cast<size_t>(id)] = true;
  }
  const std::vector<TensorId> results = graph.results();
  for (Node& node : graph.nodes) {
    const bool simple = node.reduction == Reduction::kSum || node.reduction == Reduction::kProd ||
                        node.reduction == Reduction::kMax || node.reduction == Reduction::kMin;
    if (!node.special() && !node.scan && simple && node.at.empty() && !node.taps &&
        element_count(node.reduced) <= kFewReduced && !grows[static_cast<size_t>(node.out)] &&
        std::ranges::find(results, node.out) == results.end() && !is_contraction(graph, node))
      unroll(graph, node);
  }
}

// Along a node's last dimension and what it reduces, all that it reads goes through memory without a gap:
// rows of `run` elements, one after the other.
bool reads_runs(const Graph& graph, const Node& node) {
  const auto rank = static_cast<int>(node.sizes.size());
  const int64_t run = node.sizes.back();
  bool reads = false;
  for (const ExprId id : graph.exprs.below(node.body)) {
    const Expr& load = graph.exprs[id];
    if (load.kind == Expr::Kind::kIndex || load.kind == Expr::Kind::kWithin) return false;
    if (load.kind != Expr::Kind::kLoad || !graph.exprs.uses(id, rank)) continue;
    Index address;
    for (size_t d = 0; d < load.at.size(); ++d)
      address = address + load.at[d] * graph.tensors[static_cast<size_t>(load.tensor)].strides[d];
    if (!load.args.empty() || address.stride(rank).value_or(0) != run || address.stride(rank - 1) != 1)
      return false;
    reads = true;
  }
  return reads;
}

// Neighbours along what is reduced that the first of two stages keeps apart; 1 where one stage is as good.
int64_t neighbours_of(const Graph& graph, const Node& node) {
  const bool simple = node.reduction == Reduction::kSum || node.reduction == Reduction::kProd ||
                      node.reduction == Reduction::kMax || node.reduction == Reduction::kMin;
  if (node.special() || node.scan || !simple || !node.at.empty() || node.taps || node.sizes.empty() ||
      node.reduced.size() != 1 || is_contraction(graph, node))
    return 1;
  const int64_t run = node.sizes.back(), count = node.reduced[0];
  if (run < 2 || run >= kFewAdjacent || element_count(node.extents()) < kManyRuns || !reads_runs(graph, node))
    return 1;
  int64_t neighbours = 1;
  while (2 * neighbours * run <= kWideRun && count % (2 * neighbours) == 0) neighbours *= 2;
  return neighbours * run >= kMinWideRun && count >= kMinWideRun * neighbours ? neighbours : 1;
}

// A warp that reduces rows of [n, 2560, 3] along the 2560 reads 12 bytes from each of eleven places, and a
// processor looks up one place a cycle. So the first stage has results for some neighbours along what is
// reduced, [n, 32, 3]: a warp reads 128 bytes of one place. The second one reduces those. Not where what
// reads the result reads the rows again, and a kernel may hold them.
void widen_short_runs(Graph& graph) {
  std::vector<Node> before = std::move(graph.nodes);
  graph.nodes.clear();
  const auto is_read_again = [&](const Node& node) {
    const auto rows = graph.reads(node);
    return std::ranges::any_of(before, [&](const Node& reader) {
      const auto reads = reader.special() ? std::vector<TensorId>{} : graph.reads(reader);
      return std::ranges::find(reads, node.out) != reads.end() && std::ranges::any_of(rows, [&](TensorId id) {
               return std::ranges::find(reads, id) != reads.end();
             });
    });
  };
  std::vector<int64_t> neighbours;
  for (const Node& node : before)
    neighbours.push_back(
        node.reduction == Reduction::kNone || is_read_again(node) ? 1 : neighbours_of(graph, node));
  for (size_t n = 0; n < before.size(); ++n) {
    Node& node = before[n];
    if (neighbours[n] > 1) {
      const auto rank = static_cast<int>(node.sizes.size());
      Node part = node;
      part.name = node.name + "_parts";
      part.sizes.insert(part.sizes.end() - 1, neighbours[n]);
      part.reduced = {node.reduced[0] / Size(neighbours[n])};
      std::vector<Index> by = dimensions(node.sizes.size()), at = by;
      by.back() = Index::dimension(rank);
      by.push_back(Index::dimension(rank + 1) * neighbours[n] + Index::dimension(rank - 1));
      part.body = graph.exprs.substitute(node.body, by, part.extents());
      at.insert(at.end() - 1, Index::dimension(rank));
      const DType type = graph.exprs[node.body].type;
      node.body = graph.exprs.load(append(graph, std::move(part), type), at, type);
      node.reduced = {neighbours[n]};
    }
    append(graph, std::move(node));
  }
}

void prepare(Graph& graph, const Target& target, bool split_sums, const std::set<int>& cuts, Fusion fusion) {
  if (fusion == Fusion::kFree) unroll_short_rows(graph);
  for (auto& node : graph.nodes)
    if (node.window && node.reduction != Reduction::kNone &&
        element_count(node.reduced) <= (is_weighted(graph, node) ? kWeightedWindow : kWindow) &&
        !is_contraction(graph, node))
      unroll(graph, node);
  if (fusion == Fusion::kFree) keep_concatenations(graph);
  Inliner(graph, target, cuts, fusion).run();
  if (fusion == Fusion::kFree) {
    slice_concatenations(graph, target);
    if (cuts.empty()) read_copies_in_rows(graph);
  }
  if (split_sums) split_long_sums(graph, target);
  if (split_sums && fusion == Fusion::kFree) widen_short_runs(graph);
  split_long_rows(graph, target, split_sums);
  if (fusion == Fusion::kFree) write_scans_where_read(graph, cuts);
  split_long_scans(graph, target);
}

}  // namespace nereid::compiler
