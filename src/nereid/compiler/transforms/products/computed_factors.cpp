#include "nereid/compiler/transforms/products/computed_factors.h"

#include <algorithm>

#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/plain_fusion.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kTile = 64;         // of the other factor, for each of which an element is computed
constexpr size_t kMaxSources = 4;     // tensors of a map, each with a buffer of its own in shared memory
constexpr double kInstructions = 20;  // of an exponential, a logarithm or the like
constexpr double kFlops = 2;          // of an instruction, as data sheets count

double bytes_of(const Tensor& tensor) {
  return static_cast<double>(element_count(tensor.sizes) * trace::element_bytes(tensor.type));
}

bool is_simple(Fn fn) {
  switch (fn) {
    case Fn::kAdd:
    case Fn::kSub:
    case Fn::kMul:
    case Fn::kMax:
    case Fn::kMin:
    case Fn::kNeg:
    case Fn::kAbs:
    case Fn::kFloor:
    case Fn::kCeil:
    case Fn::kTrunc:
    case Fn::kRound:
    case Fn::kHalf:
    case Fn::kLess:
    case Fn::kLessEqual:
    case Fn::kEqual:
    case Fn::kNotEqual:
    case Fn::kAnd:
    case Fn::kOr:
    case Fn::kWhere:
    case Fn::kCast:
      return true;
    default:
      return false;
  }
}

// What a map takes for an element, and the tensors that it is made of; nothing where it is none of those.
struct Work {
  double instructions = 0;
  std::vector<TensorId> sources = {};
};
std::optional<Work> work_of(const Graph& graph, const Node& map) {
  Work work;
  for (const ExprId id : graph.exprs.below(map.body)) {
    const Expr& expr = graph.exprs[id];
    if (expr.kind == Expr::Kind::kIndex || expr.kind == Expr::Kind::kWithin) return std::nullopt;
    if (expr.kind == Expr::Kind::kApply) work.instructions += is_simple(expr.fn) ? 1 : kInstructions;
    if (expr.kind != Expr::Kind::kLoad) continue;
    const Node* maker = graph.maker(expr.tensor);
    const bool in_memory =
        maker == nullptr || maker->call != nullptr ||
        (!maker->special() && maker->reduction == Reduction::kNone && !maker->scan && maker->at.empty());
    if (!in_memory || !expr.args.empty() || !reads_by_index(graph, expr)) return std::nullopt;
    if (std::ranges::find(work.sources, expr.tensor) == work.sources.end())
      work.sources.push_back(expr.tensor);
  }
  return work.sources.size() <= kMaxSources ? std::optional(work) : std::nullopt;
}

size_t loads_of(const Graph& graph, ExprId body, TensorId tensor) {
  return static_cast<size_t>(std::ranges::count_if(graph.exprs.below(body), [&](ExprId id) {
    return graph.exprs[id].kind == Expr::Kind::kLoad && graph.exprs[id].tensor == tensor;
  }));
}

// How often a product computes each element of what it loads.
int64_t times_computed(const Graph& graph, const Node& product, TensorId tensor) {
  const Expr& body = graph.exprs[product.body];
  int64_t times = 0;
  for (const size_t side : {0, 1})
    if (loads_of(graph, body.args[side], tensor) > 0)
      times += (products_of(graph, product, 1 - side) + kTile - 1) / kTile;
  return times;
}

}  // namespace

bool computed_in_products(const Graph& graph, TensorId tensor, const std::vector<bool>& live,
                          const Target& target) {
  const Node& map = *graph.maker(tensor);
  const auto work = work_of(graph, map);
  const auto results = graph.results();
  if (!work || std::ranges::find(results, tensor) != results.end()) return false;
  double source_bytes = 0;
  for (const TensorId source : work->sources)
    source_bytes += bytes_of(graph.tensors[static_cast<size_t>(source)]);
  const double own_bytes = bytes_of(graph.tensors[static_cast<size_t>(tensor)]);
  double bytes = own_bytes + source_bytes;
  int64_t times = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& reader = graph.nodes[n];
    const auto reads = graph.reads(reader);
    if (!live[n] || std::ranges::find(reads, tensor) == reads.end()) continue;
    if (reader.special() || !reader.low.empty() || reader.taps || loads_of(graph, reader.body, tensor) != 1)
      return false;
    bytes += own_bytes - source_bytes;
    if (is_contraction(graph, reader)) times += times_computed(graph, reader, tensor);
  }
  const double computed = work->instructions * static_cast<double>(times) *
                          static_cast<double>(element_count(map.sizes)) * kFlops / target.fp32;
  return times > 0 && computed < bytes / target.bytes_per_second;
}

}  // namespace nereid::compiler
