#include "nereid/compiler/transforms/sums_of_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/linear_sums.h"
#include "nereid/compiler/transforms/products/bounded_factors.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr double kWorthIt = 0.95;      // of the time before
constexpr double kWorthAnother = 0.7;  // of that of reading a product, which stays
constexpr double kCacheSpeed = 2.5;    // times that of device memory
constexpr double kUsualShare = 0.5;    // of a tensor core's peak
constexpr int64_t kSharedRows =
    1 << 16;  // that may all sum the same few numbers again rather than cost a launch

// sum over `reduced` of left x right, all over one space: dimensions of a result, what it sums over, what the
// product summed over.
struct Product {
  Extents extents;
  ExprId left = -1, right = -1;
  std::set<int> kept = {}, summed = {}, terms = {};
};

// Nothing that reads the product, too, would hold its rows for the sum: no reduction of the same rows, and
// no map that needs the sum, unless after other reductions of that.
bool is_read_apart(const Graph& graph, const Node& node, TensorId product,
                   const std::vector<const Node*>& later) {
  enum Follows : uint8_t { kNot, kByMaps, kByReductions };
  std::map<TensorId, Follows> follows{{node.out, kByMaps}};
  for (const Node* other : later) {
    const auto reads = graph.reads(*other);
    Follows how = kNot;
    for (const TensorId id : reads)
      if (const auto found = follows.find(id); found != follows.end()) how = std::max(how, found->second);
    if (std::ranges::find(reads, product) != reads.end()) {
      const bool same_rows = other->reduction != Reduction::kNone && other->sizes == node.sizes &&
                             other->reduced == node.reduced;
      if (same_rows || how == kByMaps) return false;
    }
    if (how == kNot) continue;
    const Follows made = other->special() || other->reduction != Reduction::kNone ? kByReductions : how;
    follows[other->out] = made;
    for (const TensorId out : other->outs) follows[out] = made;
  }
  return true;
}

// Where each dimension of a node's body is, when element `at` of its tensor is computed.
std::optional<std::vector<Index>> body_coordinates(const Node& node, const std::vector<Index>& at,
                                                   const Extents& extents) {
  if (node.at.empty()) return at;
  std::vector<Index> by(node.sizes.size());
  std::set<int> known;
  for (size_t i = 0; i < node.at.size(); ++i) {
    // Digits of a number whose base each time is what is below: the widest first.
    std::vector<std::pair<int64_t, int>> digits;
    if (node.at[i].constant() != 0) return std::nullopt;
    for (const auto& [atom, coefficient] : node.at[i].terms()) {
      if (atom.kind != Atom::Kind::kDimension || !known.insert(atom.dimension).second) return std::nullopt;
      if (node.sizes[static_cast<size_t>(atom.dimension)] > 1)
        digits.emplace_back(coefficient, atom.dimension);
    }
    std::ranges::sort(digits, std::greater{});
    Index left = at[i];
    for (size_t j = 0; j < digits.size(); ++j) {
      const auto [stride, dimension] = digits[j];
      const bool last = j + 1 == digits.size();
      if (last ? stride != 1
               : stride != digits[j + 1].first * node.sizes[static_cast<size_t>(digits[j + 1].second)])
        return std::nullopt;
      by[static_cast<size_t>(dimension)] = last ? left : quotient(left, stride, extents);
      if (!last) left = remainder(left, stride, extents);
    }
  }
  for (size_t d = 0; d < node.sizes.size(); ++d)
    if (node.sizes[d] > 1 && !known.contains(static_cast<int>(d))) return std::nullopt;
  return by;
}

std::set<int> both(const std::set<int>& a, const std::set<int>& b) {
  std::set<int> all = a;
  all.insert(b.begin(), b.end());
  return all;
}

// Seconds of a node as a kernel of its own.
double node_seconds(Graph& graph, const Target& target, const Node& node) {
  double distinct = static_cast<double>(element_count(node.sizes)) * 4, all = distinct;
  const auto elements = static_cast<double>(element_count(node.extents()));
  std::set<TensorId> seen;
  bool half = true;
  for (const ExprId id : graph.exprs.below(node.body)) {
    const Expr& load = graph.exprs[id];
    if (load.kind != Expr::Kind::kLoad) continue;
    const auto width = static_cast<double>(trace::element_bytes(load.type));
    half = half && width == 2;
    all += elements * width;
    if (seen.insert(load.tensor).second)
      distinct += std::min(elements, static_cast<double>(element_count(
                                         graph.tensors[static_cast<size_t>(load.tensor)].sizes))) *
                  width;
  }
  const double memory = distinct / target.bytes_per_second;
  if (is_contraction(graph, node)) {
    const double rate = half ? target.bf16 : node.tf32 ? target.tf32 : target.tf32 / 3;
    // Factors in TF32 are rounded first (channels_last.h).
    const double launches = node.tf32 ? 3 : 1;
    return launches * target.cost.launch_seconds + std::max(memory, 2 * elements / (rate * kUsualShare));
  }
  return target.cost.launch_seconds + memory +
         std::max(all - distinct, 0.0) / (kCacheSpeed * target.bytes_per_second);
}

class SumPusher {
 public:
  SumPusher(Graph& graph, const Target& target)
      : graph_(graph), target_(target), readers_(reader_counts(graph)), sums_(graph, readers_) {}

  bool run() {
    const std::vector<bool> live = live_nodes(graph_);
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      later_.clear();
      for (size_t other = n + 1; other < before.size(); ++other)
        if (live[other]) later_.push_back(&before[other]);
      if (!live[n] || !(rewrite(before[n]) || sum_another(before[n]))) append(graph_, std::move(before[n]));
    }
    return changed_;
  }

 private:
  Exprs& exprs() { return graph_.exprs; }
  const Tensor& tensor(TensorId id) const { return graph_.tensors[static_cast<size_t>(id)]; }

  bool rewrite(const Node& node) {
    if (node.special() || node.scan || !node.at.empty() || node.low.size() > 0 || node.taps || node.tf32)
      return false;
    if (node.reduction == Reduction::kMax || node.reduction == Reduction::kMin) return merge_extrema(node);
    if (node.reduction != Reduction::kSum) return false;
    type_ = exprs()[node.body].type;
    if (!trace::is_floating(type_)) return false;
    steps_ = node.steps;
    const Linear found = sums_.combination(node.body, type_, node.extents(), steps_);
    if (found.terms.empty() || !sums_.apart(found)) return false;
    if (found.terms.size() == 1 && found.rest.empty() &&
        !is_contraction(graph_, *sums_.own(found.terms[0].tensor)) && !is_contraction(graph_, node))
      return merge_sums(node, found.terms[0]);
    return push(node, found);
  }

  // The sum of a product that others read, too, as a product of its own.
  bool sum_another(const Node& node) {
    if (node.special()) return false;  // it has no body
    const Expr load = exprs()[node.body];
    if (node.scan || !node.at.empty() || !node.low.empty() || node.taps || node.tf32 ||
        node.reduction != Reduction::kSum || load.kind != Expr::Kind::kLoad || !load.args.empty() ||
        load.type != DType::kF32)
      return false;
    const Node* maker = graph_.maker(load.tensor);
    if (maker == nullptr || maker->special() || !is_contraction(graph_, *maker) ||
        readers_[static_cast<size_t>(load.tensor)] < 2 || !is_read_apart(graph_, node, load.tensor, later_))
      return false;
    sums_.keep(load.tensor);
    type_ = load.type;
    steps_ = node.steps;
    const bool pushed = push(node, {.terms = {{-1, load.tensor, load.at}}}, kWorthAnother);
    sums_.keep(-1);
    return pushed;
  }

  // The product that a term comes from, over the dimensions of `node`, then of what the product sums over.
  std::optional<Product> product_of(const Node& node, const Term& term, const Node& maker) {
    Product made{.extents = node.extents()};
    const size_t outer = made.extents.size();
    made.extents.insert(made.extents.end(), maker.reduced.begin(), maker.reduced.end());
    auto by = body_coordinates(maker, term.at, made.extents);
    if (!by) return std::nullopt;
    for (size_t r = 0; r < maker.reduced.size(); ++r)
      by->push_back(maker.reduced[r] == 1 ? Index() : Index::dimension(static_cast<int>(outer + r)));
    const Expr body = exprs()[maker.body];
    const bool two = is_contraction(graph_, maker);
    made.left = exprs().substitute(two ? body.args[0] : maker.body, *by, made.extents);
    made.right = two ? exprs().substitute(body.args[1], *by, made.extents) : -1;
    for (size_t d = 0; d < made.extents.size(); ++d)
      (d < node.sizes.size() ? made.kept : d < outer ? made.summed : made.terms).insert(static_cast<int>(d));
    return made;
  }

  std::set<int> used(ExprId of, const std::set<int>& among) {
    std::set<int> found;
    for (const int d : among)
      if (of >= 0 && exprs().uses(of, d)) found.insert(d);
    return found;
  }
  // A node whose dimensions are those of `sizes`, then of `reduced`, in the space of `body`.
  Node over(ExprId body, const std::set<int>& sizes, const std::set<int>& reduced, const Extents& extents,
            const std::string& name, const trace::Place& place) {
    Node made{
        .reduction = reduced.empty() ? Reduction::kNone : Reduction::kSum, .name = name, .place = place};
    std::vector<Index> by(extents.size());
    int next = 0;
    for (const int d : sizes) {
      by[static_cast<size_t>(d)] = Index::dimension(next++);
      made.sizes.push_back(extents[static_cast<size_t>(d)]);
    }
    for (const int d : reduced) {
      by[static_cast<size_t>(d)] = Index::dimension(next++);
      made.reduced.push_back(extents[static_cast<size_t>(d)]);
    }
    made.body = exprs().substitute(body, by, made.extents());
    made.steps = steps_;
    return made;
  }

  TensorId planned(Node node) {
    const auto id = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back({.type = type_,
                              .sizes = node.sizes,
                              .strides = row_major(node.sizes),
                              .node = -1,
                              .name = node.name});
    node.out = id;
    planned_.push_back(std::move(node));
    return id;
  }

  ExprId element(TensorId id, const std::set<int>& dims) {
    std::vector<Index> at;
    for (const int d : dims) at.push_back(Index::dimension(d));
    return exprs().load(id, std::move(at), type_);
  }

  // A factor summed over dimensions that it alone has.
  ExprId summed_factor(const Product& product, ExprId factor, const std::set<int>& alone, const Node& maker) {
    if (alone.empty()) return factor;
    std::set<int> rest = both(both(product.kept, product.summed), product.terms);
    for (const int d : alone) rest.erase(d);
    rest = used(factor, rest);
    std::string name = "factor";
    for (const ExprId id : exprs().below(factor))
      if (exprs()[id].kind == Expr::Kind::kLoad) name = tensor(exprs()[id].tensor).name;
    name = name.substr(name.rfind('.') + 1);
    Node node = over(factor, rest, alone, product.extents, name + "_sum", maker.place);
    return element(planned(std::move(node)), rest);
  }

  // What a term becomes; nothing where its dimensions do not let themselves be parted.
  std::optional<ExprId> term_of(const Node& node, const Term& term) {
    const Node maker = *sums_.own(term.tensor);
    auto product = product_of(node, term, maker);
    if (!product || product->right < 0) return std::nullopt;
    const auto in_left = used(product->left, product->summed),
               in_right = used(product->right, product->summed);
    std::set<int> left_alone, right_alone, shared;
    for (const int r : product->summed) {
      if (product->extents[static_cast<size_t>(r)] == 1) continue;
      const bool l = in_left.contains(r), right = in_right.contains(r);
      if (!l && !right) return std::nullopt;
      (l && right ? shared : l ? left_alone : right_alone).insert(r);
    }
    if (!is_bounded(graph_, term.factor)) return std::nullopt;
    ExprId outside = term.factor;
    const auto of_factor = used(term.factor, product->summed);
    if (!of_factor.empty()) {
      if (!is_finite(graph_, term.factor)) return std::nullopt;
      if (std::ranges::includes(both(left_alone, shared), of_factor))
        product->left = exprs().apply(Fn::kMul, {product->left, term.factor});
      else if (std::ranges::includes(both(right_alone, shared), of_factor))
        product->right = exprs().apply(Fn::kMul, {product->right, term.factor});
      else
        return std::nullopt;
      outside = -1;
    }
    for (const int k : product->terms)
      if (product->extents[static_cast<size_t>(k)] > 1 && !exprs().uses(product->left, k) &&
          !exprs().uses(product->right, k))
        return std::nullopt;
    const ExprId left = summed_factor(*product, product->left, left_alone, maker),
                 right = summed_factor(*product, product->right, right_alone, maker);
    const ExprId body = exprs().apply(Fn::kMul, {left, right});
    const auto sizes = used(body, product->kept), reduced = used(body, both(shared, product->terms));
    steps_.insert(maker.steps.begin(), maker.steps.end());
    Node smaller = over(body, sizes, reduced, product->extents, maker.name, maker.place);
    if (readers_[static_cast<size_t>(term.tensor)] == 1)
      seconds_before_ += node_seconds(graph_, target_, maker);
    return times(exprs(), outside, element(planned(std::move(smaller)), sizes), type_);
  }

  // The sum of what is no product.
  ExprId rest_of(const Node& node, ExprId rest) {
    std::set<int> kept, summed;
    for (size_t d = 0; d < node.extents().size(); ++d)
      if (exprs().uses(rest, static_cast<int>(d)))
        (d < node.sizes.size() ? kept : summed).insert(static_cast<int>(d));
    double count = 1;
    for (size_t r = 0; r < node.reduced.size(); ++r)
      if (!summed.contains(static_cast<int>(node.sizes.size() + r)))
        count *= static_cast<double>(node.reduced[r]);
    ExprId sum = rest;
    if (!summed.empty()) {
      Node made = over(rest, kept, summed, node.extents(), node.name, node.place);
      // One launch with the sums of a factor where they have the same length.
      const auto sharing = std::ranges::find_if(planned_, [&](const Node& other) {
        return kept.empty() && other.reduced == made.reduced && !is_contraction(graph_, other) &&
               element_count(other.sizes) <= kSharedRows;
      });
      if (sharing != planned_.end() && !sharing->sizes.empty()) {
        std::vector<Index> by;
        for (size_t r = 0; r < made.reduced.size(); ++r)
          by.push_back(Index::dimension(static_cast<int>(sharing->sizes.size() + r)));
        ++shared_;
        made.sizes = sharing->sizes;
        made.body = exprs().substitute(made.body, by, made.extents());
        const std::vector<Index> first(made.sizes.size());
        sum = exprs().load(planned(std::move(made)), first, type_);
      } else {
        sum = element(planned(std::move(made)), kept);
      }
    }
    return count == 1 ? sum : exprs().apply(Fn::kMul, {sum, exprs().constant(count, type_)});
  }

  bool push(const Node& node, const Linear& found, double worth_it = kWorthIt) {
    planned_.clear();
    shared_ = 0;
    seconds_before_ = node_seconds(graph_, target_, node);
    const size_t tensors = graph_.tensors.size();
    std::optional<ExprId> total;
    const auto add = [&](ExprId part) { total = total ? exprs().apply(Fn::kAdd, {*total, part}) : part; };
    bool possible = true;
    for (const Term& term : found.terms) {
      const auto part = is_contraction(graph_, *sums_.own(term.tensor)) ? term_of(node, term) : std::nullopt;
      possible = possible && part.has_value();
      if (!possible) break;
      add(*part);
    }
    if (possible)
      for (const ExprId rest : found.rest) add(rest_of(node, rest));
    double after = -target_.cost.launch_seconds * shared_;
    for (const Node& each : planned_) after += node_seconds(graph_, target_, each);
    if (!possible || after > worth_it * seconds_before_) {
      graph_.tensors.resize(tensors);
      readers_.resize(tensors, 0);
      return false;
    }
    const std::string first = sums_.own(found.terms[0].tensor)->name;
    graph_.rewrites.push_back(
        fmt::format("{} after {} (line {}): one of the product's factors is summed before it is multiplied",
                    node.name, first, node.place.line));
    finish(node, *total);
    return true;
  }

  void finish(const Node& node, ExprId body) {
    for (Node& each : planned_) {
      readers_.resize(std::max(readers_.size(), static_cast<size_t>(each.out) + 1), 1);
      append(graph_, std::move(each));
    }
    Node map = node;
    map.reduction = Reduction::kNone;
    map.reduced.clear();
    map.tf32 = map.window = false;
    map.body = exprs().cast(body, compute_type(tensor(node.out).type));
    map.steps = steps_;
    append(graph_, std::move(map));
    changed_ = true;
  }

  bool merge_sums(const Node& node, const Term& term) {
    const Node maker = *sums_.own(term.tensor);
    const auto product = product_of(node, term, maker);
    if (!product || maker.reduced.empty() || exprs()[maker.body].type != type_ ||
        !is_bounded(graph_, term.factor))
      return false;
    Node merged = node;
    merged.reduced = node.reduced;
    merged.reduced.insert(merged.reduced.end(), maker.reduced.begin(), maker.reduced.end());
    merged.body = times(exprs(), term.factor, product->left, type_);
    return merge(node, maker, std::move(merged));
  }

  bool merge_extrema(const Node& node) {
    ExprId body = node.body;
    const Expr cast = exprs()[body];
    if (cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast && trace::is_floating(cast.type) &&
        trace::is_floating(exprs()[cast.args[0]].type))
      body = cast.args[0];
    const Expr load = exprs()[body];
    if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return false;
    const Node* found = sums_.own(load.tensor);
    if (found == nullptr || found->special() || found->scan || found->reduction != node.reduction ||
        found->whole)
      return false;
    const Node maker = *found;
    steps_ = node.steps;
    const auto product = product_of(node, {-1, load.tensor, load.at}, maker);
    if (!product) return false;
    Node merged = node;
    merged.reduced.insert(merged.reduced.end(), maker.reduced.begin(), maker.reduced.end());
    merged.body = exprs().cast(product->left, exprs()[node.body].type);
    return merge(node, maker, std::move(merged));
  }

  bool merge(const Node& node, const Node& maker, Node merged) {
    // A small window is written out anyway (prepare.h).
    if (maker.window || element_count(merged.extents()) > element_count(maker.extents())) return false;
    steps_.insert(maker.steps.begin(), maker.steps.end());
    merged.steps = steps_;
    merged.window = false;
    if (std::ranges::find(merged.before, maker.word()) == merged.before.end() && maker.name != node.name)
      merged.before.push_back(maker.word());
    graph_.rewrites.push_back(fmt::format("{} after {} (line {}): one reduction over both", node.name,
                                          maker.name, node.place.line));
    append(graph_, std::move(merged));
    return changed_ = true;
  }

  Graph& graph_;
  const Target& target_;
  std::vector<int> readers_;
  LinearSums sums_;
  std::vector<const Node*> later_;  // nodes after the one that is rewritten
  std::vector<Node> planned_;       // what a rewrite would add
  int shared_ = 0;                  // of these, that share another's launch
  double seconds_before_ = 0;
  std::set<int> steps_;  // of what is being rewritten
  DType type_ = DType::kF32;
  bool changed_ = false;
};

}  // namespace

std::vector<int> reader_counts(const Graph& graph) {
  std::vector<int> counts(graph.tensors.size(), 0);
  const std::vector<bool> live = live_nodes(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (live[n])
      for (const TensorId id : graph.reads(graph.nodes[n])) ++counts[static_cast<size_t>(id)];
  for (const TensorId id : graph.results()) ++counts[static_cast<size_t>(id)];
  return counts;
}

bool push_sums(Graph& graph, const Target& target) { return SumPusher(graph, target).run(); }

}  // namespace nereid::compiler
