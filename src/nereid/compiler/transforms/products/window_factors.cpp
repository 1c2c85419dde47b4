#include "nereid/compiler/transforms/products/window_factors.h"

#include <algorithm>

#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int kMaxMaps = 8;  // between a window and its product

class WindowFactors {
 public:
  explicit WindowFactors(Graph& graph) : graph_(graph), readers_(graph.tensors.size(), 0) {
    for (const Node& node : graph.nodes)
      for (const TensorId read : graph.reads(node)) ++readers_[static_cast<size_t>(read)];
    for (const TensorId result : graph.results()) ++readers_[static_cast<size_t>(result)];
  }

  void run() {
    for (Node& node : graph_.nodes) node.window_factor = is_product_of_window(node);
  }

 private:
  bool is_product_of_window(const Node& node) const {
    if (node.special() || node.taps || !is_contraction(graph_, node)) return false;
    if (std::ranges::count_if(node.reduced, [](int64_t size) { return size > 1; }) != 1) return false;
    const Expr& body = graph_.exprs[node.body];
    for (const size_t side : {0, 1}) {
      const ExprId factor = body.args[side];
      auto load = factor_load(graph_, factor);
      if (!load) load = half_factor_load(graph_, factor);
      if (!load || !is_of_window(graph_.exprs[*load].tensor, kMaxMaps)) continue;
      if (products_of(graph_, node, 1 - side) <= kMaxWindowProducts) return true;
    }
    return false;
  }

  // Made of a window's sum by maps that nothing else reads.
  bool is_of_window(TensorId tensor, int maps) const {
    const Node* maker = graph_.maker(tensor);
    if (maker == nullptr || maker->special() || readers_[static_cast<size_t>(tensor)] != 1 || maps == 0)
      return false;
    if (maker->reduction == Reduction::kSum)
      return maker->window && !maker->scan && element_count(maker->reduced) > 1 &&
             element_count(maker->reduced) <= kWindow && !is_contraction(graph_, *maker);
    if (maker->reduction != Reduction::kNone || maker->whole || !maker->at.empty()) return false;
    const auto reads = graph_.reads(*maker);
    return std::ranges::any_of(reads, [&](TensorId read) { return is_of_window(read, maps - 1); });
  }

  Graph& graph_;
  std::vector<int> readers_;  // of each tensor
};

}  // namespace

void window_factors(Graph& graph) { WindowFactors(graph).run(); }

}  // namespace nereid::compiler
