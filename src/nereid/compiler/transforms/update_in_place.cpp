#include "nereid/compiler/transforms/update_in_place.h"

#include <algorithm>
#include <optional>

#include "nereid/compiler/codegen/emit.h"

namespace nereid::compiler {
namespace {

class Updater {
 public:
  Updater(Graph& graph, const Fused& fused) : graph_(graph), fused_(fused) {}

  void run() {
    for (const Update& update : graph_.updates)
      if (possible(update)) tensor(update.from).into = update.leaf;
  }

 private:
  Tensor& tensor(TensorId id) { return graph_.tensors[static_cast<size_t>(id)]; }

  bool possible(const Update& update) {
    const Tensor &from = tensor(update.from), &leaf = tensor(update.leaf);
    const auto updates = [&](const Update& u) { return u.from == update.from || u.leaf == update.leaf; };
    if (std::ranges::count_if(graph_.updates, updates) != 1) return false;
    if (std::ranges::find(graph_.outputs, update.from) != graph_.outputs.end()) return false;
    if (from.type != leaf.type || from.sizes != leaf.sizes || from.strides != leaf.strides ||
        leaf.shift != 0 || from.node < 0)
      return false;
    // Another look at the same storage.
    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors.size()); ++id)
      if (id != update.leaf && tensor(id).leaf >= 0 && tensor(id).storage == leaf.storage) return false;
    bool made = false;
    for (const TileKernel& kernel : fused_.kernels) {
      if (kernel.kept >= 0) {
        if (made && reads(kernel.kept, update.leaf)) return false;
        made = made || kernel.kept == from.node;
        if (kernel.kept == from.node) return false;
        continue;
      }
      const bool here =
          std::ranges::any_of(kernel.members, [&](const Member& m) { return m.node == from.node; });
      if (here && !made_element_by_element(kernel, from.node, update.leaf)) return false;
      if (!here && made &&
          std::ranges::any_of(kernel.members, [&](const Member& m) { return reads(m.node, update.leaf); }))
        return false;
      made = made || here;
    }
    return made;
  }

  bool reads(NodeId node, TensorId id) const {
    const auto all = graph_.reads(graph_.nodes[static_cast<size_t>(node)]);
    return std::ranges::find(all, id) != all.end();
  }

  bool made_element_by_element(const TileKernel& kernel, NodeId node, TensorId leaf) {
    if (graph_.nodes[static_cast<size_t>(kernel.members.front().node)].special() ||
        as_contraction(graph_, kernel))
      return false;
    // Programs may share the rows of maps.
    const bool reduces =
        std::ranges::any_of(kernel.members, [](const Member& m) { return m.reduction != Reduction::kNone; });
    if (!kernel.columns.empty() && !reduces) return false;
    return std::ranges::all_of(kernel.members, [&](const Member& member) {
      if (member.node != node) return !reads(member.node, leaf);
      const auto below = graph_.exprs.below(member.body);
      return std::ranges::all_of(below, [&](ExprId id) {
        const Expr& load = graph_.exprs[id];
        return load.kind != Expr::Kind::kLoad || load.tensor != leaf ||
               (load.args.empty() && same_element(load, member, leaf));
      });
    });
  }

  bool same_element(const Expr& load, const Member& member, TensorId leaf) {
    const Extents& sizes = tensor(leaf).sizes;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] > 1 && !(load.at[d] == member.at[d])) return false;
    return true;
  }

  Graph& graph_;
  const Fused& fused_;
};

}  // namespace

void update_in_place(Graph& graph, const Fused& fused) { Updater(graph, fused).run(); }

}  // namespace nereid::compiler
