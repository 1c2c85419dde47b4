#include "nereid/compiler/transforms/moments.h"

#include <algorithm>
#include <utility>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

bool is_row_sum(const Graph& graph, const Node& node) {
  return !node.special() && !node.scan && node.reduction == Reduction::kSum && node.low.empty() &&
         node.at.empty() && !node.taps && graph.exprs[node.body].type == DType::kF32;
}

// x * c or c * x: x and c, which is a constant.
std::optional<std::pair<ExprId, ExprId>> scaled(const Exprs& exprs, ExprId id) {
  const Expr& product = exprs[id];
  if (product.kind != Expr::Kind::kApply || product.fn != Fn::kMul) return std::nullopt;
  for (const size_t c : {1, 0})
    if (exprs[product.args[c]].kind == Expr::Kind::kConstant)
      return std::pair{product.args[1 - c], product.args[c]};
  return std::nullopt;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Node& rough) : exprs_(graph.exprs), rough_(rough) {
    if (const auto mean = scaled(exprs_, rough.body))
      found_ = {.rough = rough.out, .element = mean->first, .share = mean->second};
  }

  void look_at(const Node& node) {
    if (found_.element < 0 || node.sizes != rough_.sizes || node.reduced != rough_.reduced) return;
    if (const auto rest = scaled(exprs_, node.body);
        rest && is_distance(rest->first) && rest->second == found_.share)
      found_.rest = node.out;
    const Expr& product = exprs_[node.body];
    if (product.kind != Expr::Kind::kApply || product.fn != Fn::kMul) return;
    for (const size_t d : {0, 1}) {
      const auto other = scaled(exprs_, product.args[1 - d]);
      if (!is_distance(product.args[d]) || !other || other->first != product.args[d]) continue;
      found_.squares = node.out;
      found_.divisor = other->second;
    }
  }

  std::optional<Moments> found() const {
    return found_.rest >= 0 && found_.squares >= 0 ? std::optional(found_) : std::nullopt;
  }

 private:
  bool is_distance(ExprId id) const {
    const Expr& distance = exprs_[id];
    if (distance.kind != Expr::Kind::kApply || distance.fn != Fn::kSub || distance.args[0] != found_.element)
      return false;
    const Expr& load = exprs_[distance.args[1]];
    return load.kind == Expr::Kind::kLoad && load.tensor == rough_.out && load.args.empty() &&
           load.at == dimensions(rough_.sizes.size());
  }

  const Exprs& exprs_;
  const Node& rough_;
  Moments found_;
};

}  // namespace

std::vector<Moments> moments_in(const Graph& graph, const std::vector<const Node*>& nodes) {
  std::vector<Moments> all;
  for (size_t first = 0; first < nodes.size(); ++first) {
    if (!is_row_sum(graph, *nodes[first])) continue;
    Matcher matcher(graph, *nodes[first]);
    for (size_t n = first + 1; n < nodes.size(); ++n)
      if (is_row_sum(graph, *nodes[n])) matcher.look_at(*nodes[n]);
    if (const auto found = matcher.found()) all.push_back(*found);
  }
  return all;
}

}  // namespace nereid::compiler
