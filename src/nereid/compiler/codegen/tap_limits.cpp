#include "nereid/compiler/codegen/tap_limits.h"

#include <algorithm>

namespace nereid::compiler {
namespace {

constexpr int64_t kMaxBatches = 4096;  // of which each is counted

// All of which hold where a factor, where(..., x, 0), is not zero.
std::vector<ExprId> conditions_of(const Graph& graph, ExprId factor) {
  const Expr* padded = &graph.exprs[factor];
  if (padded->kind == Expr::Kind::kApply && padded->fn == Fn::kCast) padded = &graph.exprs[padded->args[0]];
  if (padded->kind != Expr::Kind::kApply || padded->fn != Fn::kWhere) return {};
  const Expr& otherwise = graph.exprs[padded->args[2]];
  if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0) return {};
  std::vector<ExprId> found, open{padded->args[0]};
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    const Expr& expr = graph.exprs[id];
    if (expr.kind == Expr::Kind::kApply && expr.fn == Fn::kAnd)
      open.insert(open.end(), expr.args.rbegin(), expr.args.rend());
    else
      found.push_back(id);
  }
  return found;
}

// Whether the programs of a batch know an index.
bool is_of_batches(const Index& index, const TileKernel& kernel, const Contraction& contraction) {
  for (size_t d = 0; d < kernel.rows.size() + kernel.columns.size(); ++d)
    if (index.uses(static_cast<int>(d)) &&
        std::ranges::find(contraction.batch, static_cast<int>(d)) == contraction.batch.end())
      return false;
  return true;
}

}  // namespace

TapLimits::TapLimits(Graph& graph, const TileKernel& kernel, const Contraction& contraction) : graph_(graph) {
  if (!graph.nodes[static_cast<size_t>(kernel.members.front().node)].taps) return;
  const auto rank = static_cast<int>(kernel.rows.size());
  std::vector<Limit> limits(kernel.columns.size() - 1);
  for (const ExprId factor : {contraction.left, contraction.right})
    for (const ExprId id : conditions_of(graph, factor)) {
      const Expr& condition = graph.exprs[id];
      if (condition.kind != Expr::Kind::kWithin || condition.low > 0) continue;
      for (size_t d = 0; d < limits.size(); ++d) {
        const Index tap = Index::dimension(rank + static_cast<int>(d));
        const int64_t step = condition.index.stride(rank + static_cast<int>(d)).value_or(0);
        const Index before = condition.index - tap * step;
        if (step <= 0 || before.is_constant() || !is_of_batches(before, kernel, contraction)) continue;
        limits[d] = {before, step, condition.high};
        if (condition.index.bounds(kernel.extents()).low >= condition.low) implied_.insert(id);
      }
    }
  if (std::ranges::none_of(limits, [](const Limit& limit) { return limit.step > 0; })) return;
  of = std::move(limits);
  share = share_of(kernel, contraction);
}

double TapLimits::share_of(const TileKernel& kernel, const Contraction& contraction) const {
  const int64_t batches = product_of(kernel.rows, contraction.batch);
  if (batches > kMaxBatches) return 1;
  double sum = 0;
  std::vector<int64_t> at(kernel.rows.size() + kernel.columns.size(), 0);
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t rest = batch;
    for (const int d : contraction.batch) {
      at[static_cast<size_t>(d)] = rest % kernel.rows[static_cast<size_t>(d)];
      rest /= kernel.rows[static_cast<size_t>(d)];
    }
    double taps = 1;
    for (size_t d = 0; d < of.size(); ++d) {
      if (of[d].step == 0) continue;
      const int64_t seen = (of[d].end - of[d].before.evaluate(at) + of[d].step - 1) / of[d].step;
      taps *= static_cast<double>(std::clamp<int64_t>(seen, 0, kernel.columns[d])) /
              static_cast<double>(kernel.columns[d]);
    }
    sum += taps;
  }
  return sum / static_cast<double>(batches);
}

ExprId TapLimits::without_implied(ExprId factor) const {
  const Expr padded = graph_.exprs[factor];
  if (padded.kind == Expr::Kind::kApply && padded.fn == Fn::kCast)
    return graph_.exprs.cast(without_implied(padded.args[0]), padded.type);
  const std::vector<ExprId> conditions = conditions_of(graph_, factor);
  if (std::ranges::none_of(conditions, [&](ExprId id) { return implied_.contains(id); })) return factor;
  ExprId left = graph_.exprs.integer(1, DType::kBool);
  for (const ExprId id : conditions)
    if (!implied_.contains(id)) left = graph_.exprs.apply(Fn::kAnd, {left, id});
  return graph_.exprs.apply(Fn::kWhere, {left, padded.args[1], padded.args[2]});
}

}  // namespace nereid::compiler
