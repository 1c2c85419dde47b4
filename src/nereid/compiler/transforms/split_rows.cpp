#include "nereid/compiler/transforms/split_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/moments.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kFewRows = 128;    // fewer programs than this leave most of a GPU idle
constexpr int64_t kLongRow = 16384;  // elements that are worth a second stage
constexpr int64_t kSplits = 256;
constexpr int64_t kFewParts = 64;
constexpr int64_t kHeldPart = 8192;        // elements of a part that one program holds in registers
constexpr int64_t kHeldColumn = 128;       // and of one that it holds of rows that are adjacent in memory
constexpr int64_t kReductionChunk = 1024;  // of one dimension that is cut: a block, of a customary size
// Where rows are adjacent in memory, a program takes so many of them at once.
constexpr int64_t kAdjacentRows = 32, kLongColumn = 1024, kMinChunk = 128;

bool is_row_reduction(const Graph& graph, const Node& node) {
  return !node.special() && !node.scan && node.reduction != Reduction::kNone && !is_contraction(graph, node);
}

// The largest thing that is read is along the rows in memory, and not along what is reduced.
bool are_rows_inner(const Graph& graph, const Node& node) {
  bool inner = false;
  const auto rank = static_cast<int>(node.sizes.size());
  for (const ExprId id : graph.exprs.below(node.body)) {
    const Expr& load = graph.exprs[id];
    // A gather's places are adjacent or not, whichever way it is cut.
    if (load.kind != Expr::Kind::kLoad || !load.args.empty() || rank == 0) continue;
    Index address;
    for (size_t d = 0; d < load.at.size(); ++d)
      address = address + load.at[d] * graph.tensors[static_cast<size_t>(load.tensor)].strides[d];
    bool reduced = false;
    for (size_t r = 0; r < node.reduced.size(); ++r)
      reduced = reduced || address.uses(rank + static_cast<int>(r));
    if (!reduced) continue;
    if (address.stride(rank + static_cast<int>(node.reduced.size()) - 1) == 1) return false;
    inner = inner || address.stride(rank - 1) == 1;
  }
  return inner;
}

// Leading dimensions of what is reduced that are the rows of other reductions, over the same columns, whose
// results it reads: as the loss over all rows of log-softmaxes. Those are one kernel with the part of it
// that is of a row; 0 where there are none, or too few rows.
size_t shared_leading_dims(const Graph& graph, const Node& node) {
  if (!is_row_reduction(graph, node) || element_count(node.sizes) >= kFewRows) return 0;
  for (const ExprId id : graph.exprs.below(node.body)) {
    const Expr& load = graph.exprs[id];
    const Node* maker = load.kind == Expr::Kind::kLoad ? graph.maker(load.tensor) : nullptr;
    if (maker == nullptr || !is_row_reduction(graph, *maker) || !maker->at.empty() || !load.args.empty())
      continue;
    const size_t rank = maker->sizes.size();
    if (rank <= node.sizes.size() || rank >= node.extents().size() || load.at != dimensions(rank)) continue;
    const Extents all = node.extents(), behind(all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
    if (behind == maker->reduced && element_count(maker->sizes) >= kFewRows) return rank - node.sizes.size();
  }
  return 0;
}

// A sum over r of exp(element(r) - shift), where the shift is made of the largest element.
struct Exponentials {
  TensorId largest = -1;
  ExprId element = -1, shift = -1;
};
std::optional<Exponentials> as_exponentials(const Graph& graph, const Node& node) {
  if (!is_row_reduction(graph, node) || node.reduction != Reduction::kSum) return std::nullopt;
  const Expr& body = graph.exprs[node.body];
  if (body.kind != Expr::Kind::kApply || body.fn != Fn::kExp) return std::nullopt;
  const Expr& distance = graph.exprs[body.args[0]];
  if (distance.kind != Expr::Kind::kApply || distance.fn != Fn::kSub) return std::nullopt;
  Exponentials found{.element = distance.args[0], .shift = distance.args[1]};
  for (const ExprId id : graph.exprs.below(found.shift)) {
    const Expr& load = graph.exprs[id];
    if (load.kind != Expr::Kind::kLoad) continue;
    const bool first = found.largest < 0 || found.largest == load.tensor;
    if (!first || load.at != dimensions(node.sizes.size()) || !load.args.empty()) return std::nullopt;
    found.largest = load.tensor;
  }
  return found.largest < 0 ? std::nullopt : std::optional(found);
}

// The part's dimensions, where the parts are what is reduced.
std::vector<Index> part_dimensions(size_t rows) {
  std::vector<Index> at = dimensions(rows);
  at.insert(at.begin(), Index::dimension(static_cast<int>(rows)));
  return at;
}

// Of what is reduced, the first that a part reduces: few are enough where they are all that there are.
size_t split_dimension(const Node& node) {
  int64_t parts = 1;
  for (size_t d = 0; d + 1 < node.reduced.size(); ++d)
    if (parts *= node.reduced[d]; parts >= kFewParts) return d + 1;
  return node.reduced.size() - 1;
}

// sum over c of body becomes sum over s of (sum over c' of body at s * chunk + c').
class RowSplitter {
 public:
  // `anywhere`: else between the dimensions of what is reduced.
  RowSplitter(Graph& graph, const Target& target, bool anywhere)
      : graph_(graph), target_(target), anywhere_(anywhere) {}

  void run() {
    const std::vector<bool> live = live_nodes(graph_);
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    std::map<TensorId, std::vector<TensorId>> readers;  // what those that read a tensor read, too
    for (const Node& node : before)
      for (const TensorId id : node.special() ? std::vector<TensorId>{} : graph_.reads(node)) {
        auto& all = readers[id];
        const auto also = graph_.reads(node);
        all.insert(all.end(), also.begin(), also.end());
      }
    for (const Node& node : before)
      if (const auto of = as_exponentials(graph_, node)) {
        const auto largest = std::ranges::find(before, of->largest, &Node::out);
        if (largest != before.end() && largest->reduction == Reduction::kMax &&
            largest->body == of->element && largest->sizes == node.sizes && largest->reduced == node.reduced)
          shifts_.insert(of->largest);
      }
    std::vector<const Node*> used;
    for (size_t n = 0; n < before.size(); ++n)
      if (live[n]) used.push_back(&before[n]);
    if (anywhere_) find_moments(used, readers);
    for (Node& node : before) {
      const auto moments = moments_.find(node.out);
      if (moments == moments_.end() && is_shared(node, readers[node.out])) shared_.insert(node.out);
      if (moments != moments_.end())
        split_moments(std::move(node), moments->second);
      else if (shared_.contains(node.out))
        add(std::move(node));
      else
        place(std::move(node));
    }
  }

 private:
  void place(Node node) {
    const size_t rows = shared_leading_dims(graph_, node);
    if (rows > 0)
      split_before(std::move(node), rows);
    else if (!anywhere_ && is_long(node))
      split_before(cut(std::move(node)), 0);
    else if (const int64_t parts = anywhere_ ? parts_of(node) : 1; parts <= 1)
      add(std::move(node));
    else if (const auto of = as_exponentials(graph_, node); of && held_.contains(of->largest))
      split_exponentials(std::move(node), *of);
    else if (parts == kSplits && shifts_.contains(node.out))
      split_largest(std::move(node));
    else
      split(node, parts);
  }

  // A part of `node`, whose body becomes `body` of the old one inside of the row and `outside` elsewhere:
  // [parts, rows...] by [chunk].
  TensorId part_by(const Node& node, int64_t chunk, const std::function<Value(Value)>& body, double outside) {
    Exprs& exprs = graph_.exprs;
    const int64_t count = element_count(node.reduced);
    Node part = node;
    part.at.clear();
    part.name = node.name + "_parts";
    part.sizes.insert(part.sizes.begin(), (count + chunk - 1) / chunk);
    part.reduced = {chunk};
    const Extents extents = part.extents();
    const Index linear =
        Index::dimension(0) * chunk + Index::dimension(static_cast<int>(node.sizes.size()) + 1);
    std::vector<Index> at = dimensions(node.sizes.size(), 1);
    for (auto& index : unravel(linear, node.reduced, extents)) at.push_back(std::move(index));
    const Value element = body(Value(exprs, exprs.substitute(node.body, at, extents)));
    const Value inside(exprs, exprs.within(linear, 0, count, extents));
    part.body = inside.where(element, element.constant(outside)).id();
    const bool places = node.reduction == Reduction::kArgMax || node.reduction == Reduction::kArgMin;
    return add_part(std::move(part), places ? DType::kI64 : element.type());
  }
  // The largest of each part, which a program holds in registers; then the largest of those.
  void split_largest(Node node) {
    const TensorId part = part_by(node, kHeldPart, [](Value x) { return x; }, identity(node.reduction));
    held_[node.out] = part;
    shifts_.erase(node.out);
    node.reduced = {graph_.tensors[static_cast<size_t>(part)].sizes[0]};
    node.body = graph_.exprs.load(part, part_dimensions(node.sizes.size()), graph_.exprs[node.body].type);
    place(std::move(node));
  }

  // The sum of exp(element - shift) over each part with the part's own largest as its shift, so that both
  // are of elements that are read once; then the sum of those, each times exp(its largest - shift). A shift
  // is finite where all of a part are -inf: its sum is 0.
  void split_exponentials(Node node, const Exponentials& of) {
    Exprs& exprs = graph_.exprs;
    const size_t rows = node.sizes.size();
    const TensorId largest = held_.at(of.largest);
    const Value most(exprs, exprs.load(largest, dimensions(rows + 1), exprs[of.element].type));
    const Value shift = most.apply(Fn::kIsInf).where(most.constant(0), most);
    const ExprId whole = node.body;
    node.body = of.element;
    const TensorId part = part_by(node, kHeldPart, [&](Value x) { return (x - shift).apply(Fn::kExp); }, 0);
    node.reduced = {graph_.tensors[static_cast<size_t>(part)].sizes[0]};
    const Value sum(exprs, exprs.load(part, part_dimensions(rows), exprs[whole].type)),
        own(exprs, exprs.load(largest, part_dimensions(rows), exprs[whole].type));
    node.body = (sum * (own - Value(exprs, of.shift)).apply(Fn::kExp)).id();
    place(std::move(node));
  }

  // Of a row's moments, those of its parts, each of which a program holds.
  struct Parts {
    Moments of;
    int64_t chunk = 1;
    TensorId means = -1, squares = -1;
  };

  // Variances of long rows that no kernel holds for what comes after.
  void find_moments(const std::vector<const Node*>& nodes,
                    const std::map<TensorId, std::vector<TensorId>>& readers) {
    for (const Moments& found : moments_in(graph_, nodes)) {
      const Node& node = **std::ranges::find(nodes, found.rough, &Node::out);
      const bool shared = is_shared(node, readers.at(node.out));
      const bool long_row = element_count(node.reduced) > kLongRow && parts_of(node) > 1;
      if (shared ? is_held(nodes, node, found) : !long_row) continue;
      const auto parts = std::make_shared<Parts>(Parts{.of = found, .chunk = chunk_of(node)});
      for (const TensorId each : {found.rough, found.rest, found.squares}) moments_[each] = parts;
    }
  }

  // A map of the whole rows reads these moments last of all that it needs, and few enough tensors that it is
  // of their kernel (ends_sharing in fuse.cpp).
  bool is_held(const std::vector<const Node*>& nodes, const Node& row, const Moments& moments) const {
    const int64_t elements = element_count(row.extents());
    return std::ranges::any_of(nodes, [&](const Node* node) {
      if (node->special() || node->reduction != Reduction::kNone || element_count(node->sizes) != elements)
        return false;
      TensorId last = -1;
      int64_t wide = 0;
      for (const TensorId id : graph_.reads(*node)) {
        if (element_count(graph_.tensors[static_cast<size_t>(id)].sizes) >= elements) ++wide;
        const auto maker = std::ranges::find(nodes, id, &Node::out);
        if (maker != nodes.end() && is_row_reduction(graph_, **maker)) last = std::max(last, id);
      }
      return wide <= kSharedTensors &&
             (last == moments.rough || last == moments.rest || last == moments.squares);
    });
  }

  // A length of parts that fits a program: one of equal parts of whole vectors, if there is one.
  int64_t chunk_of(const Node& node) const {
    const int64_t most = are_rows_inner(graph_, node) ? kHeldColumn : kHeldPart,
                  count = element_count(node.reduced);
    for (int64_t chunk = most; chunk > most * 3 / 4; chunk -= 4)
      if (count % chunk == 0) return chunk;
    return most;
  }

  // The mean of each part and the squares of the distances from it, of elements that are read once; then the
  // row's, from those (moments.h).
  void split_moments(Node node, const std::shared_ptr<Parts>& parts) {
    Exprs& exprs = graph_.exprs;
    const int64_t count = element_count(node.reduced), chunk = parts->chunk,
                  last = count - count / chunk * chunk;
    const size_t rows = node.sizes.size();
    // Of part `dimension`, with `scale`: its elements times that, or one over that.
    const auto elements = [&](int dimension, const Extents& extents,
                              const std::function<double(int64_t)>& scale) {
      const Value full(exprs, exprs.constant(scale(chunk)));
      if (last == 0) return full;
      const Value inside(exprs, exprs.within(Index::dimension(dimension), 0, count / chunk, extents));
      return inside.where(full, full.constant(scale(last)));
    };
    if (node.out == parts->of.rough) {
      Node part = node;
      part.body = parts->of.element;
      Extents extents = node.sizes;
      extents.insert(extents.begin(), (count + chunk - 1) / chunk);
      extents.push_back(chunk);
      const Value share = elements(0, extents, [](int64_t n) { return 1 / static_cast<double>(n); });
      parts->means = part_by(part, chunk, [&](Value x) { return x * share; }, 0);
      const Value mean(exprs, exprs.load(parts->means, dimensions(rows + 1), DType::kF32));
      const Value divisor(exprs, parts->of.divisor);
      part.name = "variance";
      parts->squares = part_by(part, chunk, [&](Value x) { return (x - mean) * divisor * (x - mean); }, 0);
    }
    node.reduced = {graph_.tensors[static_cast<size_t>(parts->means)].sizes[0]};
    const auto weighted = [&](ExprId by) {
      const double number = exprs[by].number;
      return elements(static_cast<int>(rows), node.extents(),
                      [&](int64_t n) { return static_cast<double>(n) * number; });
    };
    const Value means(exprs, exprs.load(parts->means, part_dimensions(rows), DType::kF32));
    const Value squares(exprs, exprs.load(parts->squares, part_dimensions(rows), DType::kF32));
    const Value distance = means - Value(exprs, exprs.load(parts->of.rough, dimensions(rows), DType::kF32));
    const Value share = weighted(parts->of.share);
    node.body = (node.out == parts->of.rough  ? means * share
                 : node.out == parts->of.rest ? distance * share
                                              : squares + distance * weighted(parts->of.divisor) * distance)
                    .id();
    place(std::move(node));
  }

  // Programs share its rows (tile.h), because who reads its result reads the rows, too: a softmax, a norm.
  bool is_shared(const Node& node, const std::vector<TensorId>& read_with) const {
    if (!is_row_reduction(graph_, node) || graph_.exprs[node.body].type != DType::kF32) return false;
    if (node.reduction != Reduction::kSum && node.reduction != Reduction::kMax &&
        node.reduction != Reduction::kMin)
      return false;
    if (!is_shared_row(element_count(node.sizes), element_count(node.reduced), target_) ||
        has_short_runs(graph_, node.body, node.sizes, node.reduced, target_))
      return false;
    const int64_t elements = element_count(node.extents());
    return !are_rows_inner(graph_, node) && std::ranges::any_of(graph_.reads(node), [&](TensorId id) {
      return shared_.contains(id) ||
             (element_count(graph_.tensors[static_cast<size_t>(id)].sizes) >= elements &&
              std::ranges::find(read_with, id) != read_with.end());
    });
  }

  bool is_long(const Node& node) const {
    const bool places = node.reduction == Reduction::kArgMax || node.reduction == Reduction::kArgMin;
    return is_row_reduction(graph_, node) && !places && element_count(node.sizes) < kFewRows &&
           element_count(node.reduced) > kLongRow;
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

  // A result for each element of the reduced dimensions before one (0: the first that makes parts enough),
  // then a reduction of those.
  void split_before(Node node, size_t dimension) {
    const bool again = dimension > 0;
    if (dimension == 0) dimension = split_dimension(node);
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
    if (again)
      place(std::move(node));
    else
      add(std::move(node));
  }

  // In how many parts; 1: in one go.
  int64_t parts_of(const Node& node) const {
    if (!is_row_reduction(graph_, node)) return 1;
    const int64_t rows = element_count(node.sizes), count = element_count(node.reduced);
    if (rows < kFewRows && count > kLongRow) return kSplits;
    const int64_t programs = (rows + kAdjacentRows - 1) / kAdjacentRows;
    if (count < kLongColumn || programs > target_.multiprocessors || !are_rows_inner(graph_, node)) return 1;
    return std::min(4 * target_.multiprocessors / programs, count / kMinChunk);
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
    const auto parts_by = [&](Reduction reduction) {
      Node of = node;
      of.reduction = reduction;
      return part_by(of, chunk, [](Value x) { return x; }, identity(reduction));
    };
    const DType type = exprs[node.body].type;
    if (!places) {
      const TensorId made = parts_by(node.reduction);
      node.reduced = {graph_.tensors[static_cast<size_t>(made)].sizes[0]};
      node.body = exprs.load(made, part_dimensions(rows), type);
      add(std::move(node));
      return;
    }
    // The best of each part and where it stands in it; then which part has the best.
    const TensorId best = parts_by(node.reduction == Reduction::kArgMax ? Reduction::kMax : Reduction::kMin);
    const TensorId place = parts_by(node.reduction);
    Node which{.sizes = node.sizes,
               .reduced = {graph_.tensors[static_cast<size_t>(best)].sizes[0]},
               .reduction = node.reduction,
               .body = exprs.load(best, part_dimensions(rows), type),
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
  std::map<TensorId, std::shared_ptr<Parts>> moments_ = {};  // by what they make: a mean, a rest, squares
  std::set<TensorId> shared_ = {};                           // results of rows that programs share
  std::set<TensorId> shifts_ = {};          // largest elements that sums of exponentials are shifted by
  std::map<TensorId, TensorId> held_ = {};  // of those that are split, the largest of each part
};

}  // namespace

void split_long_rows(Graph& graph, const Target& target, bool anywhere) {
  RowSplitter(graph, target, anywhere).run();
}

}  // namespace nereid::compiler
