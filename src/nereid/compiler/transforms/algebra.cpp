#include "nereid/compiler/transforms/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"
#include "nereid/compiler/transforms/sums_of_products.h"

namespace nereid::compiler {
namespace {

constexpr int kSweeps = 4;
constexpr double kLargestScale = 1 << 20;
constexpr size_t kMaxConditions = 12;  // expressions of a factor that is looked into

// A reduction over one element is that element.
bool forget_reductions_of_one(Graph& graph) {
  bool changed = false;
  for (Node& node : graph.nodes) {
    const bool value = node.reduction == Reduction::kSum || node.reduction == Reduction::kProd ||
                       node.reduction == Reduction::kMax || node.reduction == Reduction::kMin;
    if (node.special() || node.scan || !value || element_count(node.reduced) != 1) continue;
    std::vector<Index> by = dimensions(node.sizes.size());
    by.resize(node.extents().size());
    const DType type = compute_type(graph.tensors[static_cast<size_t>(node.out)].type);
    if (!node.low.empty() || is_contraction(graph, node)) continue;
    node.body = graph.exprs.cast(graph.exprs.substitute(node.body, by, node.sizes), type);
    node.reduction = Reduction::kNone;
    node.reduced.clear();
    node.window = node.tf32 = false;
    changed = true;
  }
  return changed;
}

// Where a sum's elements are not zero at one place alone.
struct Equation {
  size_t dimension = 0;  // of the node's reduced ones
  Index solution;        // over the node's other dimensions
};

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), readers_(reader_counts(graph)) {}

  bool run() {
    const std::vector<bool> live = live_nodes(graph_);
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      Node& node = before[n];
      const bool sum = !node.special() && node.reduction == Reduction::kSum && !node.scan &&
                       node.low.empty() && !node.taps && exprs()[node.body].type == DType::kF32;
      if (!live[n] || !sum || !(pick_diagonal(node) || take_out_scales(node)))
        append(graph_, std::move(node));
    }
    return changed_;
  }

 private:
  Exprs& exprs() { return graph_.exprs; }

  // A map without other readers, as an expression of what it reads.
  std::optional<ExprId> looked_through(ExprId id, const Extents& extents, std::set<int>& steps) {
    const Expr load = exprs()[id];
    if (load.kind != Expr::Kind::kLoad || readers_[static_cast<size_t>(load.tensor)] != 1 ||
        !load.args.empty())
      return std::nullopt;
    const Node* maker = graph_.maker(load.tensor);
    if (maker == nullptr || maker->special() || maker->reduction != Reduction::kNone || maker->whole ||
        !maker->at.empty())
      return std::nullopt;
    steps.insert(maker->steps.begin(), maker->steps.end());
    const DType type = load.type;
    const auto body = graph_.inlined(load, extents);
    return body && trace::is_floating(exprs()[*body].type) && trace::is_floating(type) ? body : std::nullopt;
  }

  ExprId without_casts(ExprId id) {
    for (Expr expr = exprs()[id];
         expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast && trace::is_floating(expr.type) &&
         trace::is_floating(exprs()[expr.args[0]].type);
         expr = exprs()[id])
      id = expr.args[0];
    return id;
  }

  // ---- Diagonals

  // The equation that must hold for `factor` not to be zero, and what it is then.
  std::optional<std::pair<Equation, ExprId>> equation_of(const Node& node, ExprId factor,
                                                         std::set<int>& steps) {
    factor = without_casts(factor);
    if (const auto body = looked_through(factor, node.extents(), steps)) factor = without_casts(*body);
    const Expr where = exprs()[factor];
    if (where.kind != Expr::Kind::kApply || where.fn != Fn::kWhere) return std::nullopt;
    const Expr otherwise = exprs()[where.args[2]], condition = exprs()[where.args[0]];
    if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0) return std::nullopt;
    if (condition.kind != Expr::Kind::kWithin || condition.high != condition.low + 1) return std::nullopt;
    const auto rank = static_cast<int>(node.sizes.size());
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      const auto stride = condition.index.stride(rank + static_cast<int>(r));
      if (!stride || (*stride != 1 && *stride != -1) || node.reduced[r] == 1) continue;
      const Index rest = condition.index - Index::dimension(rank + static_cast<int>(r)) * *stride;
      return std::pair{Equation{r, (Index(condition.low) - rest) * *stride}, where.args[1]};
    }
    return std::nullopt;
  }

  bool pick_diagonal(const Node& node) {
    std::set<int> steps = node.steps;
    const Expr body = exprs()[node.body];
    if (body.kind != Expr::Kind::kApply || body.fn != Fn::kMul) return false;
    for (const size_t which : {0, 1}) {
      const auto found = equation_of(node, body.args[which], steps);
      if (!found) continue;
      const auto& [equation, value] = *found;
      const ExprId product = exprs().apply(
          Fn::kMul, {exprs().cast(value, DType::kF32), exprs().cast(body.args[1 - which], DType::kF32)});
      pick(node, equation, product, steps);
      return true;
    }
    return false;
  }

  void pick(const Node& node, const Equation& equation, ExprId product, const std::set<int>& steps) {
    const size_t rank = node.sizes.size(), gone = rank + equation.dimension;
    Node made = node;
    made.reduced.erase(made.reduced.begin() + static_cast<ptrdiff_t>(equation.dimension));
    std::vector<Index> by;
    const Extents before = node.extents();
    for (size_t d = 0, next = 0; d < before.size(); ++d)
      by.push_back(d == gone ? Index() : Index::dimension(static_cast<int>(next++)));
    const Index solution = substitute(equation.solution, by, made.extents());
    by[gone] = solution;
    const ExprId there = exprs().within(solution, 0, node.reduced[equation.dimension], made.extents());
    const ExprId element = exprs().substitute(product, by, made.extents());
    made.body = exprs().apply(Fn::kWhere, {there, element, exprs().constant(0, DType::kF32)});
    made.steps = steps;
    if (made.reduced.empty()) {
      made.reduction = Reduction::kNone;
      made.body = exprs().cast(made.body, compute_type(graph_.tensors[static_cast<size_t>(node.out)].type));
    }
    made.tf32 = false;
    graph_.rewrites.push_back(
        fmt::format("{} with a diagonal (line {}): each element is one product, for all others are zero",
                    node.name, node.place.line));
    append(graph_, std::move(made));
    changed_ = true;
  }

  // ---- Scales

  // Only a number: of a scale that turns out infinite every term is infinite or NaN, but the sum may be zero.
  bool harmless(ExprId id) const {
    const Expr& expr = graph_.exprs[id];
    const double size = std::abs(expr.number);
    return expr.kind == Expr::Kind::kConstant && size >= 1 / kLargestScale && size <= kLargestScale;
  }

  // A factor as scale x load.
  struct Scaled {
    ExprId scale = -1, load = -1;
  };
  std::optional<Scaled> scaled(const Node& node, ExprId factor, std::set<int>& steps) {
    const Extents extents = node.extents();
    ExprId scale = -1;
    for (size_t turn = 0; turn < kMaxConditions; ++turn) {
      factor = without_casts(factor);
      const Expr expr = exprs()[factor];
      if (expr.kind == Expr::Kind::kLoad) {
        const auto body = looked_through(factor, extents, steps);
        if (!body) break;
        const Expr under = exprs()[without_casts(*body)];
        const bool product =
            under.kind == Expr::Kind::kApply && (under.fn == Fn::kMul || under.fn == Fn::kDiv);
        if (!product) break;
        factor = *body;
        continue;
      }
      if (expr.kind != Expr::Kind::kApply || (expr.fn != Fn::kMul && expr.fn != Fn::kDiv))
        return std::nullopt;
      const bool divides = expr.fn == Fn::kDiv;
      const size_t of = !divides && harmless(expr.args[0]) ? 1 : 0;
      if (!harmless(expr.args[1 - of])) return std::nullopt;
      const ExprId by = exprs().cast(expr.args[1 - of], DType::kF32);
      const ExprId one = scale < 0 ? exprs().constant(1, DType::kF32) : scale;
      scale = exprs().apply(divides ? Fn::kDiv : Fn::kMul, {one, by});
      factor = expr.args[of];
    }
    // What a kernel makes is scaled where it is made, for nothing.
    if (scale < 0 || exprs()[factor].kind != Expr::Kind::kLoad ||
        graph_.maker(exprs()[factor].tensor) != nullptr)
      return std::nullopt;
    return Scaled{scale, exprs().cast(factor, DType::kF32)};
  }

  bool take_out_scales(const Node& node) {
    if (!is_contraction(graph_, node)) return false;
    const Expr body = exprs()[node.body];
    std::set<int> steps = node.steps;
    std::vector<ExprId> factors = body.args;
    ExprId scale = -1;
    for (ExprId& factor : factors) {
      const auto found = scaled(node, factor, steps);
      if (!found) continue;
      factor = found->load;
      scale = scale < 0 ? found->scale : exprs().apply(Fn::kMul, {scale, found->scale});
    }
    if (scale < 0 || !node.at.empty()) return false;
    Node product = node;
    product.body = exprs().apply(Fn::kMul, {factors[0], factors[1]});
    product.steps = steps;
    product.out = -1;
    if (!is_contraction(graph_, product)) return false;
    const TensorId sum = append(graph_, std::move(product), DType::kF32);
    readers_.resize(graph_.tensors.size(), 1);
    Node map{.out = node.out, .sizes = node.sizes, .name = "scale", .place = node.place};
    const ExprId total = exprs().load(sum, dimensions(node.sizes.size()), DType::kF32);
    map.body = exprs().cast(exprs().apply(Fn::kMul, {total, scale}),
                            compute_type(graph_.tensors[static_cast<size_t>(node.out)].type));
    map.steps = steps;
    graph_.rewrites.push_back(
        fmt::format("{} (line {}): a factor's scale is applied to the sums", node.name, node.place.line));
    append(graph_, std::move(map));
    return changed_ = true;
  }

  Graph& graph_;
  std::vector<int> readers_;
  bool changed_ = false;
};

}  // namespace

void rewrite_algebra(Graph& graph, const Target& target) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool changed = forget_reductions_of_one(graph);
    changed = Rewriter(graph).run() || changed;
    changed = push_sums(graph, target) || changed;
    if (!changed) return;
  }
}

}  // namespace nereid::compiler
