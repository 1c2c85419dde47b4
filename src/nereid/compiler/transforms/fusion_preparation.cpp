#include "nereid/compiler/transforms/fusion_preparation.h"

#include <algorithm>
#include <map>
#include <set>

#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/channels_last.h"
#include "nereid/compiler/transforms/contraction_operands.h"
#include "nereid/compiler/transforms/flash.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/plain_fusion.h"
#include "nereid/compiler/transforms/slices.h"
#include "nereid/compiler/transforms/split_scan.h"
#include "nereid/compiler/transforms/split_sum.h"
#include "nereid/compiler/transforms/window_factors.h"
#include "nereid/trace/access.h"

namespace nereid::compiler {
namespace {

constexpr size_t kLongBody = 64;      // expressions; a longer map with several readers is written out
constexpr size_t kWindowBody = 8;     // expressions that are computed again for every element of a window
constexpr size_t kMostInlined = 600;  // expressions of a body
constexpr int64_t kFewRows = 128;     // fewer programs than this leave most of a GPU idle
constexpr int64_t kLongRow = 16384;   // elements that are worth a second stage
constexpr int64_t kSplits = 256;
constexpr int64_t kFewParts = 64;
// Of a depthwise convolution, whose windows overlap: 7 x 7.
constexpr int64_t kWeightedWindow = 64;
constexpr int64_t kReductionChunk = 1024;  // of one dimension that is cut: a block, of a customary size
// Where rows are adjacent in memory, a program takes so many of them at once.
constexpr int64_t kAdjacentRows = 32, kLongColumn = 1024, kLeastChunk = 128;

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
  Inliner(Graph& graph, const std::set<int>& cuts, Fusion fusion)
      : graph_(graph), cuts_(cuts), places_(graph.tensors.size()) {
    if (fusion != Fusion::kFree) plain_.emplace(graph, live_nodes(graph), fusion);
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
    const std::vector<bool> live = live_nodes(graph_);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!live[n]) continue;
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
        return true;
    }
    return false;
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
      return products_of(graph_, reader, 1 - side) <= kMostDirectProducts &&
             graph_.exprs.below(made.body).size() <= kMostDirectBody;
    }
    return false;
  }

  bool stays(const Node& reader, TensorId tensor) const {
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
    if (places.most > 1 && length > kWindowBody && length * places.most > kMostInlined) return true;
    if (places.most > 4 && length > kWindowBody) return true;
    if ((reader.flash || is_contraction(graph_, reader)) && !light(*made)) return true;
    return ends_contraction(tensor);
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
  const std::set<int>& cuts_;
  std::optional<PlainFusion> plain_;
  std::vector<Places> places_;  // of each tensor
  const std::vector<TensorId> results_ = graph_.results();
};

// sum over c of body becomes sum over s of (sum over c' of body at s * chunk + c').
class RowSplitter {
 public:
  // `anywhere`: else between the dimensions of what is reduced.
  RowSplitter(Graph& graph, const Target& target, bool anywhere)
      : graph_(graph), target_(target), anywhere_(anywhere) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    std::map<TensorId, std::vector<TensorId>> readers;  // what those that read a tensor read, too
    for (const Node& node : before)
      for (const TensorId id : node.special() ? std::vector<TensorId>{} : graph_.reads(node)) {
        auto& all = readers[id];
        const auto also = graph_.reads(node);
        all.insert(all.end(), also.begin(), also.end());
      }
    for (Node& node : before) {
      if (is_shared(node, readers[node.out])) shared_.insert(node.out);
      if (shared_.contains(node.out))
        add(std::move(node));
      else if (!anywhere_ && is_long(node))
        split_before(cut(std::move(node)));
      else if (const int64_t parts = anywhere_ ? parts_of(node) : 1; parts > 1)
        split(node, parts);
      else
        add(std::move(node));
    }
  }

 private:
  bool is_row_reduction(const Node& node) const {
    return !node.special() && !node.scan && node.reduction != Reduction::kNone &&
           !is_contraction(graph_, node);
  }

  // Programs share its rows (tile.h), because who reads its result reads the rows, too: a softmax, a norm.
  bool is_shared(const Node& node, const std::vector<TensorId>& read_with) const {
    if (!is_row_reduction(node) || graph_.exprs[node.body].type != DType::kF32) return false;
    if (node.reduction != Reduction::kSum && node.reduction != Reduction::kMax &&
        node.reduction != Reduction::kMin)
      return false;
    if (!is_shared_row(element_count(node.sizes), element_count(node.reduced), target_) ||
        has_short_runs(graph_, node.body, node.sizes, node.reduced, target_))
      return false;
    const int64_t elements = element_count(node.extents());
    return !rows_are_inner(node) && std::ranges::any_of(graph_.reads(node), [&](TensorId id) {
      return shared_.contains(id) ||
             (element_count(graph_.tensors[static_cast<size_t>(id)].sizes) >= elements &&
              std::ranges::find(read_with, id) != read_with.end());
    });
  }

  bool is_long(const Node& node) const {
    const bool places = node.reduction == Reduction::kArgMax || node.reduction == Reduction::kArgMin;
    return is_row_reduction(node) && !places && element_count(node.sizes) < kFewRows &&
           element_count(node.reduced) > kLongRow;
  }

  // Of what is reduced, the first that a part reduces: few are enough where they are all that there are.
  static size_t split_dimension(const Node& node) {
    int64_t parts = 1;
    for (size_t d = 0; d + 1 < node.reduced.size(); ++d)
      if (parts *= node.reduced[d]; parts >= kFewParts) return d + 1;
    return node.reduced.size() - 1;
  }

  // Where the dimensions before the last one make too few parts, that one is cut into chunks.
  Node cut(Node node) {
    const int64_t last = node.reduced.back(), before = element_count(node.reduced) / last;
    if (before >= kFewParts || last <= kReductionChunk) return node;
    Exprs& exprs = graph_.exprs;
    const size_t which = node.sizes.size() + node.reduced.size() - 1;
    node.reduced.back() = (last + kReductionChunk - 1) / kReductionChunk;
    node.reduced.push_back(kReductionChunk);
    const Extents extents = node.extents();
    std::vector<Index> at = dimensions(which + 1);
    at[which] = at[which] * kReductionChunk + Index::dimension(static_cast<int>(which + 1));
    const Value body(exprs, exprs.substitute(node.body, at, extents));
    const Value inside(exprs, exprs.within(at[which], 0, last, extents));
    node.body = inside.where(body, body.constant(identity(node.reduction))).id();
    return node;
  }

  // A result for each element of the reduced dimensions before one, then a reduction of those.
  void split_before(Node node) {
    const size_t dimension = split_dimension(node);
    Exprs& exprs = graph_.exprs;
    const size_t rows = node.sizes.size();
    const auto middle = node.reduced.begin() + static_cast<std::ptrdiff_t>(dimension);
    const Extents first(node.reduced.begin(), middle);
    Node part = node;
    part.at.clear();
    part.name = node.name + "_parts";
    part.sizes.insert(part.sizes.begin(), first.begin(), first.end());
    part.reduced.assign(middle, node.reduced.end());
    std::vector<Index> at = dimensions(rows, static_cast<int>(dimension)), of_part = dimensions(rows);
    for (size_t r = 0; r < node.reduced.size(); ++r)
      at.push_back(Index::dimension(static_cast<int>(r < dimension ? r : rows + r)));
    for (size_t r = dimension; r-- > 0;)
      of_part.insert(of_part.begin(), Index::dimension(static_cast<int>(rows + r)));
    const DType type = Value(exprs, node.body).type();
    part.body = exprs.substitute(node.body, at, part.extents());
    const TensorId made = add_part(std::move(part), type);
    node.reduced = first;
    node.body = exprs.load(made, of_part, type);
    add(std::move(node));
  }

  // In how many parts; 1: in one go.
  int64_t parts_of(const Node& node) const {
    if (!is_row_reduction(node)) return 1;
    const int64_t rows = element_count(node.sizes), count = element_count(node.reduced);
    if (rows < kFewRows && count > kLongRow) return kSplits;
    const int64_t programs = (rows + kAdjacentRows - 1) / kAdjacentRows;
    if (count < kLongColumn || programs > target_.multiprocessors || !rows_are_inner(node)) return 1;
    return std::min(4 * target_.multiprocessors / programs, count / kLeastChunk);
  }

  // The largest thing that is read is along the rows in memory, and not along what is reduced.
  bool rows_are_inner(const Node& node) const {
    bool inner = false;
    const auto rank = static_cast<int>(node.sizes.size());
    for (const ExprId id : graph_.exprs.below(node.body)) {
      const Expr& load = graph_.exprs[id];
      // A gather's places are adjacent or not, whichever way it is cut.
      if (load.kind != Expr::Kind::kLoad || !load.args.empty() || rank == 0) continue;
      Index address;
      for (size_t d = 0; d < load.at.size(); ++d)
        address = address + load.at[d] * graph_.tensors[static_cast<size_t>(load.tensor)].strides[d];
      bool reduced = false;
      for (size_t r = 0; r < node.reduced.size(); ++r)
        reduced = reduced || address.uses(rank + static_cast<int>(r));
      if (!reduced) continue;
      if (address.stride(rank + static_cast<int>(node.reduced.size()) - 1) == 1) return false;
      inner = inner || address.stride(rank - 1) == 1;
    }
    return inner;
  }

  void add(Node node) {
    const auto id = static_cast<NodeId>(graph_.nodes.size());
    graph_.tensors[static_cast<size_t>(node.out)].node = id;
    for (const TensorId out : node.outs) graph_.tensors[static_cast<size_t>(out)].node = id;
    graph_.nodes.push_back(std::move(node));
  }

  TensorId add_part(Node node, DType type) {
    node.out = static_cast<TensorId>(graph_.tensors.size());
    const Extents sizes = node.sizes;
    graph_.tensors.push_back(
        {.type = type, .sizes = sizes, .strides = row_major(sizes), .node = -1, .name = node.name});
    const TensorId out = node.out;
    add(std::move(node));
    return out;
  }

  void split(Node node, int64_t parts) {
    Exprs& exprs = graph_.exprs;
    const bool places = node.reduction == Reduction::kArgMax || node.reduction == Reduction::kArgMin;
    const int64_t count = element_count(node.reduced), chunk = (count + parts - 1) / parts;
    const size_t rows = node.sizes.size();
    Node part = node;
    part.at.clear();
    part.name = node.name + "_parts";
    part.sizes.insert(part.sizes.begin(), parts);
    part.reduced = {chunk};
    const Extents extents = part.extents();
    const Index linear = Index::dimension(0) * chunk + Index::dimension(static_cast<int>(rows) + 1);
    std::vector<Index> at = dimensions(rows, 1);
    for (auto& index : unravel(linear, node.reduced, extents)) at.push_back(std::move(index));
    const Value body(exprs, exprs.substitute(node.body, at, extents));
    const Value inside(exprs, exprs.within(linear, 0, count, extents));
    part.body = inside.where(body, body.constant(identity(node.reduction))).id();
    const DType type = body.type();
    std::vector<Index> of_part = dimensions(rows);
    of_part.insert(of_part.begin(), Index::dimension(static_cast<int>(rows)));
    if (!places) {
      const TensorId made = add_part(part, type);
      node.reduced = {parts};
      node.body = exprs.load(made, of_part, type);
      add(std::move(node));
      return;
    }
    // The best of each part and where it stands in it; then which part has the best.
    Node value = part;
    value.reduction = node.reduction == Reduction::kArgMax ? Reduction::kMax : Reduction::kMin;
    const TensorId best = add_part(value, type);
    const TensorId place = add_part(part, DType::kI64);
    Node which{.sizes = node.sizes,
               .reduced = {parts},
               .reduction = node.reduction,
               .body = exprs.load(best, of_part, type),
               .name = node.name + "_part"};
    const TensorId winner = add_part(which, DType::kI64);
    const Value s(exprs, exprs.load(winner, dimensions(rows), DType::kI64));
    auto where = dimensions(rows);
    where.emplace(where.begin());
    std::vector<ExprId> further(rows + 1, exprs.integer(0));
    further[0] = s.id();
    const Value within(exprs, exprs.load(place, where, DType::kI64, further));
    node.body = (s * static_cast<double>(chunk) + within).id();
    node.reduction = Reduction::kNone;
    node.reduced.clear();
    add(std::move(node));
  }

  Graph& graph_;
  const Target& target_;
  bool anywhere_;
  std::set<TensorId> shared_ = {};  // results of rows that programs share
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

void prepare(Graph& graph, const Target& target, bool split_sums, const std::set<int>& cuts, Fusion fusion) {
  for (auto& node : graph.nodes)
    if (node.window && node.reduction != Reduction::kNone &&
        element_count(node.reduced) <= (is_weighted(graph, node) ? kWeightedWindow : kWindow) &&
        !is_contraction(graph, node))
      unroll(graph, node);
  if (fusion == Fusion::kFree) keep_concatenations(graph);
  Inliner(graph, cuts, fusion).run();
  if (fusion == Fusion::kFree) slice_concatenations(graph, target);
  if (split_sums) split_long_sums(graph, target);
  RowSplitter(graph, target, split_sums).run();
  if (fusion == Fusion::kFree) write_scans_where_read(graph, cuts);
  split_long_scans(graph, target);
}

}  // namespace nereid::compiler
