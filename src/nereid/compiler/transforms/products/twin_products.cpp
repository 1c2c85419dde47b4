#include "nereid/compiler/transforms/products/twin_products.h"

#include <algorithm>
#include <set>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/factor_block.h"
#include "nereid/compiler/transforms/kernel_mapping.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLeastSide = 16;  // of a product that is worth a tile
constexpr double kSlowerProducts = 0.1;

bool alike(const Node& a, const Node& b) {
  const auto plain = [](const Node& node) { return !node.window_factor; };
  return plain(a) && plain(b) && a.direct == b.direct && a.taps == b.taps && a.tf32 == b.tf32 &&
         a.under_flag == b.under_flag && a.low.size() == b.low.size();
}

double bytes_of(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensors[static_cast<size_t>(id)];
  return static_cast<double>(element_count(tensor.sizes) * trace::element_bytes(tensor.type));
}

double bytes_below(const Graph& graph, ExprId factor) {
  std::set<TensorId> read;
  for (const ExprId id : graph.exprs.below(factor))
    if (graph.exprs[id].kind == Expr::Kind::kLoad) read.insert(graph.exprs[id].tensor);
  double bytes = 0;
  for (const TensorId id : read) bytes += bytes_of(graph, id);
  return bytes;
}

// The tensors that maps of as many elements make of these, element by element.
std::set<TensorId> maps_of(const Graph& graph, std::set<TensorId> made, int64_t elements) {
  for (const Node& node : graph.nodes) {
    if (node.special() || node.reduction != Reduction::kNone || element_count(node.sizes) != elements)
      continue;
    if (std::ranges::any_of(graph.reads(node), [&](TensorId id) { return made.contains(id); }))
      made.insert(node.out);
  }
  return made;
}

// What both would write and read besides if they were two kernels: the shared factor, and one's result where
// a map reads both.
double saved_bytes(const Graph& graph, const TileKernel& kernel, const Node& each, ExprId shared) {
  double saved = bytes_below(graph, shared);
  if (!each.low.empty()) saved += bytes_below(graph, each.low.front().first);
  const int64_t elements = element_count(each.sizes);
  std::set<TensorId> own;
  for (const Member& member : kernel.members) own.insert(graph.nodes[static_cast<size_t>(member.node)].out);
  const std::set<TensorId> first = maps_of(graph, own, elements),
                           second = maps_of(graph, {each.out}, elements);
  const bool meet = std::ranges::any_of(second, [&](TensorId id) { return first.contains(id); });
  return saved + (meet ? 2 * bytes_of(graph, each.out) : 0);
}

}  // namespace

ExprId other_factor(const Graph& graph, ExprId body, ExprId left) {
  const Expr& product = graph.exprs[body];
  return product.args[0] == left ? product.args[1] : product.args[0];
}

bool is_twin(const Graph& graph, const TileKernel& kernel, NodeId id, const Target& target) {
  const Node& first = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  const Node& each = graph.nodes[static_cast<size_t>(id)];
  const DType type = graph.tensors[static_cast<size_t>(each.out)].type;
  if (!is_contraction(graph, first) || !is_contraction(graph, each) || kernel.rows != each.sizes ||
      kernel.columns != each.reduced || !alike(first, each) ||
      graph.tensors[static_cast<size_t>(first.out)].type != type)
    return false;
  for (const Member& member : kernel.members) {
    if (&member != &kernel.members.front() && member.reduction != Reduction::kNone) return false;
    const TensorId made = graph.nodes[static_cast<size_t>(member.node)].out;
    if (std::ranges::any_of(graph.reads(each), [&](TensorId read) { return read == made; })) return false;
  }
  const auto of = as_contraction(graph, kernel);
  const std::vector<ExprId>& factors = graph.exprs[each.body].args;
  const auto shared = of ? std::ranges::find(factors, of->left) : factors.end();
  if (shared == factors.end() || (!each.low.empty() && shared != factors.begin())) return false;
  const ExprId other = other_factor(graph, each.body, of->left);
  if (other == of->left || factor_type(graph, other) != factor_type(graph, of->right)) return false;
  for (size_t d = 0; d < kernel.extents().size(); ++d)
    if (graph.exprs.uses(other, static_cast<int>(d)) != graph.exprs.uses(of->right, static_cast<int>(d)))
      return false;
  if (std::min<int64_t>(product_of(kernel.rows, of->m), product_of(kernel.rows, of->n)) < kLeastSide)
    return false;
  const bool half = !each.low.empty() || factor_type(graph, other) != DType::kF32;
  const double rate = half ? target.bf16 : target.tf32,
               times = !each.low.empty() || (!half && !each.tf32) ? 3 : 1,
               flops = 4 * static_cast<double>(element_count(kernel.extents()));
  return saved_bytes(graph, kernel, each, of->left) / target.bytes_per_second >
         kSlowerProducts * times * flops / (rate * target.cost.tensor_share);
}

}  // namespace nereid::compiler
