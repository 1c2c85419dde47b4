#include "nereid/compiler/transforms/products/bounded_factors.h"

#include <algorithm>

namespace nereid::compiler {

bool is_finite(const Graph& graph, ExprId factor) {
  return std::ranges::all_of(graph.exprs.below(factor), [&](ExprId id) {
    const Expr& load = graph.exprs[id];
    return load.kind != Expr::Kind::kLoad || graph.tensors[static_cast<size_t>(load.tensor)].learned;
  });
}

bool is_bounded(const Graph& graph, ExprId factor) {
  return factor < 0 || is_finite(graph, factor) ||
         std::ranges::all_of(
             graph.exprs.below(factor),
             [&](ExprId id) {
               const Expr& expr = graph.exprs[id];
               if (expr.kind == Expr::Kind::kLoad) return graph.maker(expr.tensor) == nullptr;
               if (expr.kind != Expr::Kind::kApply) return true;
               switch (expr.fn) {
                 case Fn::kAdd:
                 case Fn::kSub:
                 case Fn::kMul:
                 case Fn::kNeg:
                 case Fn::kAbs:
                 case Fn::kMax:
                 case Fn::kMin:
                 case Fn::kSigmoid:
                 case Fn::kTanh:
                 case Fn::kSin:
                 case Fn::kCos:
                 case Fn::kErf:
                 case Fn::kLess:
                 case Fn::kLessEqual:
                 case Fn::kEqual:
                 case Fn::kNotEqual:
                 case Fn::kWhere:
                 case Fn::kCast:
                   return true;
                 case Fn::kDiv:
                   return is_finite(graph, expr.args[1]);
                 default:
                   return false;
               }
             });
}

}  // namespace nereid::compiler
