#include "nereid/compiler/transforms/linear_sums.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {
namespace {

bool plain_sum(const Node& node) {
  return !node.special() && node.reduction == Reduction::kSum && !node.scan && node.low.empty() &&
         !node.taps && !node.whole;
}
bool plain_map(const Node& node) {
  return !node.special() && node.reduction == Reduction::kNone && node.at.empty() && !node.whole;
}
void merge(Linear& into, Linear from) {
  std::ranges::move(from.terms, std::back_inserter(into.terms));
  std::ranges::move(from.rest, std::back_inserter(into.rest));
  into.walked.merge(from.walked);
}

}  // namespace

ExprId times(Exprs& exprs, ExprId factor, ExprId of, DType type) {
  return factor < 0 ? of : exprs.apply(Fn::kMul, {factor, exprs.cast(of, type)});
}

bool LinearSums::leads_to_sum(TensorId id) const {
  const Node* maker = own(id);
  if (maker == nullptr) return false;
  return plain_sum(*maker) || (plain_map(*maker) && leads_to_sum_under(maker->body));
}
bool LinearSums::leads_to_sum_under(ExprId of) const {
  return std::ranges::any_of(exprs().below(of), [&](ExprId id) {
    const Expr& expr = exprs()[id];
    return expr.kind == Expr::Kind::kLoad && expr.args.empty() && leads_to_sum(expr.tensor);
  });
}

ExprId LinearSums::negative(ExprId factor) {
  return factor < 0 ? exprs().constant(-1, type_) : exprs().apply(Fn::kNeg, {factor});
}

void LinearSums::collect(ExprId of, ExprId factor, const Extents& extents, Linear& found) {
  const Expr expr = exprs()[of];
  const auto opaque = [&] { found.rest.push_back(times(factor, exprs().cast(of, type_))); };
  if (!leads_to_sum_under(of)) return opaque();
  if (expr.kind == Expr::Kind::kLoad) {
    if (!expr.args.empty() || !leads_to_sum(expr.tensor)) return opaque();
    const Node maker = *own(expr.tensor);
    if (plain_sum(maker)) {
      found.terms.push_back({factor, expr.tensor, expr.at});
      return;
    }
    found.walked.insert(expr.tensor);
    steps_.insert(maker.steps.begin(), maker.steps.end());
    return collect(*graph_.inlined(expr, extents), factor, extents, found);
  }
  if (expr.kind != Expr::Kind::kApply) return opaque();
  const auto lead = [&](size_t i) { return leads_to_sum_under(expr.args[i]); };
  switch (expr.fn) {
    case Fn::kCast:
      if (!trace::is_floating(expr.type) || !trace::is_floating(exprs()[expr.args[0]].type)) return opaque();
      return collect(expr.args[0], factor, extents, found);
    case Fn::kNeg:
      return collect(expr.args[0], negative(factor), extents, found);
    case Fn::kAdd:
    case Fn::kSub:
      collect(expr.args[0], factor, extents, found);
      return collect(expr.args[1], expr.fn == Fn::kSub ? negative(factor) : factor, extents, found);
    case Fn::kMul:
      if (lead(0) && lead(1)) {
        // Sums on both sides: that of a product, the other as it stands.
        for (const size_t side : {0, 1}) {
          Linear tried;
          const auto steps = steps_;
          collect(expr.args[side], times(factor, exprs().cast(expr.args[1 - side], type_)), extents, tried);
          if (std::ranges::any_of(tried.terms,
                                  [&](const Term& t) { return is_contraction(graph_, *own(t.tensor)); }))
            return merge(found, std::move(tried));
          steps_ = steps;
        }
        return opaque();
      }
      return collect(expr.args[lead(0) ? 0 : 1],
                     times(factor, exprs().cast(expr.args[lead(0) ? 1 : 0], type_)), extents, found);
    case Fn::kDiv:
      if (lead(1)) return opaque();
      return collect(
          expr.args[0],
          exprs().apply(Fn::kDiv, {factor < 0 ? exprs().constant(1, type_) : factor, expr.args[1]}), extents,
          found);
    default:
      return opaque();
  }
}

Linear LinearSums::combination(ExprId body, DType type, const Extents& extents, std::set<int>& steps) {
  type_ = type, steps_ = std::move(steps);
  Linear found;
  collect(body, -1, extents, found);
  steps = std::move(steps_);
  return found;
}

bool LinearSums::apart(const Linear& found) const {
  std::set<TensorId> gone = found.walked;
  for (const Term& term : found.terms)
    if (!gone.insert(term.tensor).second) return false;
  const auto reads_gone = [&](ExprId of) {
    return std::ranges::any_of(exprs().below(of), [&](ExprId id) {
      return exprs()[id].kind == Expr::Kind::kLoad && gone.contains(exprs()[id].tensor);
    });
  };
  return std::ranges::none_of(found.rest, reads_gone) &&
         std::ranges::none_of(found.terms,
                              [&](const Term& t) { return t.factor >= 0 && reads_gone(t.factor); });
}

}  // namespace nereid::compiler
