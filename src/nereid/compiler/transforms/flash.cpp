#include "nereid/compiler/transforms/flash.h"

#include <algorithm>
#include <cmath>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"

namespace nereid::compiler {
namespace {

// Of too few queries for one pass: a tile of them, programs of a processor that then keep its memory busy,
// keys that are worth a program, and how much larger than their scores keys and values are.
constexpr int64_t kQueryTile = 16, kProgramsOfProcessor = 4, kMinKeys = 512, kScoresShare = 4;
constexpr size_t kMaxExpanded = 120;  // expressions of a score; what is longer is better stored

class Finder {
 public:
  Finder(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (!is_contraction(graph_, node) || node.reduced.size() != 1 || !node.low.empty()) continue;
      const Expr body = exprs()[node.body];
      auto flash = found(node, body.args[0], body.args[1]);
      if (!flash) flash = found(node, body.args[1], body.args[0]);
      if (flash) replace(node, *flash);
    }
  }

 private:
  struct Found {
    Flash flash;
    TensorId product = -1;  // the scores as they are stored now
    int64_t terms = 1;      // of one
  };

  Exprs& exprs() { return graph_.exprs; }

  const Expr* apply_of(ExprId id, Fn fn) {
    const Expr& expr = exprs()[id];
    return expr.kind == Expr::Kind::kApply && expr.fn == fn ? &expr : nullptr;
  }
  bool is_number(ExprId id, double number) {
    const Expr& expr = exprs()[id];
    return expr.kind == Expr::Kind::kConstant && trace::is_floating(expr.type) && expr.number == number;
  }
  ExprId without_casts(ExprId id) {
    for (const Expr* cast = apply_of(id, Fn::kCast);
         cast != nullptr && trace::is_floating(exprs()[cast->args[0]].type); cast = apply_of(id, Fn::kCast))
      id = cast->args[0];
    return id;
  }

  // Maps taken in, until every load is of something else.
  std::optional<ExprId> expanded(ExprId of, const Extents& extents) {
    while (exprs().below(of).size() <= kMaxExpanded) {
      const ExprId next = exprs().replace_loads(of, [&](const Expr& load) -> ExprId {
        const Expr copy = load;
        const Node* maker = graph_.maker(copy.tensor);
        if (maker != nullptr && !maker->special() && maker->reduction == Reduction::kNone &&
            maker->at.empty())
          if (const auto body = graph_.inlined(copy, extents)) return exprs().cast(*body, copy.type);
        return exprs().load(copy.tensor, copy.at, copy.type, copy.args);
      });
      if (next == of) return of;
      of = next;
    }
    return std::nullopt;
  }

  // The reduction that a load is of, its body where the load reads it, reducing over n.
  std::optional<ExprId> reduced_there(ExprId id, Reduction reduction, const Node& node) {
    const Expr load = exprs()[id];
    if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return std::nullopt;
    const Node* maker = graph_.maker(load.tensor);
    if (maker == nullptr || maker->call != nullptr || maker->reduction != reduction || maker->scan ||
        !maker->at.empty() || maker->reduced != node.reduced)
      return std::nullopt;
    std::vector<Index> by = load.at;
    by.push_back(Index::dimension(static_cast<int>(node.sizes.size())));
    return expanded(exprs().substitute(maker->body, by, node.extents()), node.extents());
  }

  // exp(score - most) / sum, or 0 where the sum is.
  std::optional<Found> found(const Node& node, ExprId weights, ExprId value) {
    const auto all = expanded(weights, node.extents());
    if (!all) return std::nullopt;
    Found made;
    ExprId share = without_casts(*all);
    std::optional<ExprId> zero_where;
    if (const Expr* where = apply_of(share, Fn::kWhere); where != nullptr && is_number(where->args[1], 0)) {
      zero_where = where->args[0];
      share = where->args[2];
    }
    const Expr* divided = apply_of(share, Fn::kDiv);
    if (divided == nullptr) return std::nullopt;
    const ExprId weight = divided->args[0], sum = divided->args[1];
    if (zero_where) {
      const Expr* equal = apply_of(*zero_where, Fn::kEqual);
      if (equal == nullptr || equal->args[0] != sum || !is_number(equal->args[1], 0)) return std::nullopt;
      made.flash.masked_rows_are_zero = true;
    }
    const Expr* power = apply_of(weight, Fn::kExp);
    const Expr* distance = power == nullptr ? nullptr : apply_of(power->args[0], Fn::kSub);
    if (distance == nullptr) return std::nullopt;
    const ExprId score = distance->args[0];
    ExprId most = distance->args[1];
    if (const Expr* where = apply_of(most, Fn::kWhere)) {  // 0 where it is -inf
      const Expr* equal = apply_of(where->args[0], Fn::kEqual);
      if (equal == nullptr || equal->args[0] != where->args[2] || !is_number(equal->args[1], -HUGE_VAL) ||
          !is_number(where->args[1], 0))
        return std::nullopt;
      most = where->args[2];
    }
    if (reduced_there(sum, Reduction::kSum, node) != weight ||
        reduced_there(most, Reduction::kMax, node) != score)
      return std::nullopt;
    made.flash.value = value;
    if (!take_product(node, score, made) || !sort_dimensions(node, made.flash) || underuses_gpu(node, made))
      return std::nullopt;
    made.flash.ahead = ahead(node, made.flash);
    return made;
  }

  // q . k in the score, which a load of what is nowhere stored takes the place of.
  bool take_product(const Node& node, ExprId score, Found& made) {
    std::optional<Expr> product;
    for (const ExprId id : exprs().below(score)) {
      const Expr& load = exprs()[id];
      if (load.kind != Expr::Kind::kLoad) continue;
      const Node* maker = graph_.maker(load.tensor);
      if (maker == nullptr || !is_contraction(graph_, *maker)) continue;
      if (product || !load.args.empty()) return false;
      product = load;
    }
    if (!product) return false;
    const Node of = *graph_.maker(product->tensor);
    if (of.reduced.size() != 1 || of.reduced[0] > kWidestHead || !of.at.empty() || !of.low.empty())
      return false;
    made.product = product->tensor;
    made.terms = of.reduced[0];
    made.flash.tf32 = of.tf32 && node.tf32;
    Extents extents = node.extents();
    extents.push_back(made.terms);
    std::vector<Index> by = product->at;
    by.push_back(Index::dimension(static_cast<int>(extents.size()) - 1));
    const Expr factors = exprs()[of.body];
    made.flash.query = exprs().substitute(factors.args[0], by, extents);
    made.flash.key = exprs().substitute(factors.args[1], by, extents);
    const auto n = static_cast<int>(node.sizes.size());
    if (exprs().uses(made.flash.query, n)) std::swap(made.flash.query, made.flash.key);
    const Tensor stored = graph_.tensors[static_cast<size_t>(made.product)];
    made.flash.product = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back(
        {.type = DType::kF32, .sizes = stored.sizes, .strides = stored.strides, .name = "product"});
    made.flash.score = exprs().replace_loads(score, [&](const Expr& load) {
      const Expr copy = load;
      if (copy.tensor != made.product) return exprs().load(copy.tensor, copy.at, copy.type, copy.args);
      return exprs().load(made.flash.product, copy.at, DType::kF32);
    });
    return !exprs().uses(made.flash.query, n) && exprs().uses(made.flash.key, n);
  }

  // Which of the result's dimensions are queries', which are values' and which all have.
  bool sort_dimensions(const Node& node, Flash& flash) {
    int64_t m = 1, f = 1;
    for (size_t d = 0; d < node.sizes.size(); ++d) {
      const auto dim = static_cast<int>(d);
      const bool of_query = exprs().uses(flash.query, dim), of_key = exprs().uses(flash.key, dim),
                 of_value = exprs().uses(flash.value, dim), of_score = exprs().uses(flash.score, dim);
      if (of_value && !of_query && !of_key && !of_score) {
        flash.f.push_back(dim);
        f *= node.sizes[d];
      } else if (of_query && !of_key && !of_value) {
        flash.m.push_back(dim);
        m *= node.sizes[d];
      } else {
        flash.batch.push_back(dim);
      }
    }
    return m > 1 && f > 1 && f <= kWidestHead;
  }

  // Whether a few programs would each go over many keys, for scores that are small.
  bool underuses_gpu(const Node& node, const Found& made) const {
    const int64_t m = product_of(node.sizes, made.flash.m), f = product_of(node.sizes, made.flash.f),
                  batches = product_of(node.sizes, made.flash.batch);
    return m <= kQueryTile && node.reduced[0] >= kMinKeys && kScoresShare * m <= made.terms + f &&
           batches < kProgramsOfProcessor * target_.multiprocessors;
  }

  // where(n - m < ahead, score, -inf)
  std::optional<int64_t> ahead(const Node& node, const Flash& flash) {
    const Expr* where = apply_of(flash.score, Fn::kWhere);
    if (where == nullptr || !is_number(where->args[2], -HUGE_VAL) || flash.m.size() != 1) return std::nullopt;
    const Expr& seen = exprs()[where->args[0]];
    if (seen.kind != Expr::Kind::kWithin) return std::nullopt;
    const Index distance =
        Index::dimension(static_cast<int>(node.sizes.size())) - Index::dimension(flash.m[0]);
    const Index left = seen.index - distance;
    return left.is_constant() ? std::optional(seen.high - left.constant()) : std::nullopt;
  }

  void replace(Node& node, const Found& found) {
    const Node before = node;
    node.flash = found.flash;
    const Node& product = *graph_.maker(found.product);
    node.steps.insert(product.steps.begin(), product.steps.end());
    node.name = "attention";
    node.reduction = Reduction::kNone;
    node.reduced.push_back(found.terms);
    node.body = reads_of(graph_, found.flash);
    // Where the scores have another reader, they are still computed.
    if (live_nodes(graph_)[static_cast<size_t>(graph_.tensors[static_cast<size_t>(found.product)].node)])
      node = before;
  }

  Graph& graph_;
  const Target& target_;
};

}  // namespace

void one_pass_attention(Graph& graph, const Target& target) { Finder(graph, target).run(); }

ExprId reads_of(Graph& graph, const Flash& flash) {
  ExprId all = flash.score;
  for (const ExprId each : {flash.query, flash.key, flash.value})
    all = graph.exprs.apply(Fn::kAdd, {all, each});
  return all;
}

}  // namespace nereid::compiler
