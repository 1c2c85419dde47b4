#include "nereid/compiler/transforms/channels_last.h"

#include <algorithm>
#include <map>
#include <optional>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/contraction_operands.h"
#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {
namespace {

constexpr double kLeastRowProducts = 1 << 24;  // below, the passes that rearrange cost more than they gain

class Rearranger {
 public:
  explicit Rearranger(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      if (is_contraction(graph_, node) || may_be_by_taps(graph_, node)) forget_ones(node);
      if (const auto channel = channel_of(node)) rearrange(node, *channel);
      append(graph_, std::move(node));
    }
  }

 private:
  // A dimension with one element is always at the first.
  void forget_ones(Node& node) {
    const Extents extents = node.extents();
    std::vector<Index> by = dimensions(extents.size());
    for (size_t d = 0; d < extents.size(); ++d)
      if (extents[d] == 1) by[d] = Index();
    node.body = graph_.exprs.substitute(node.body, by, extents);
  }

  // Which of the reduced dimensions both factors have as it stands: the longest.
  std::optional<size_t> channel_of(const Node& node) const {
    if (!may_be_by_taps(graph_, node)) return std::nullopt;
    if (static_cast<double>(element_count(node.extents())) < kLeastRowProducts) return std::nullopt;
    const Expr& body = graph_.exprs[node.body];
    const auto left = load_of(body.args[0]), right = load_of(body.args[1]);
    if (!left || !right || graph_.exprs[*left].type != graph_.exprs[*right].type) return std::nullopt;
    std::optional<size_t> best;
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      if (node.reduced[r] < kLeastChannels || (best && node.reduced[r] <= node.reduced[*best])) continue;
      const Index as_it_stands = Index::dimension(static_cast<int>(node.sizes.size() + r));
      if (place_of(*left, as_it_stands) && place_of(*right, as_it_stands)) best = r;
    }
    return best;
  }

  std::optional<ExprId> load_of(ExprId factor) const {
    const auto found = factor_load(graph_, factor);
    return found ? found : half_factor_load(graph_, factor);
  }

  // The tensor's dimension that an index is of.
  std::optional<size_t> place_of(ExprId load, const Index& index) const {
    const auto& at = graph_.exprs[load].at;
    const auto found = std::ranges::find(at, index);
    return found == at.end() ? std::nullopt : std::optional(static_cast<size_t>(found - at.begin()));
  }

  // A tensor with dimension `last` moved to the end, and each element rounded.
  TensorId rounded(TensorId tensor, size_t last, const Node& reader) {
    if (const auto known = made_.find({tensor, last}); known != made_.end()) return known->second;
    const Tensor of = graph_.tensors[static_cast<size_t>(tensor)];
    Extents sizes;
    std::vector<Index> at(of.sizes.size());
    for (size_t d = 0; d < of.sizes.size(); ++d) {
      if (d == last) continue;
      at[d] = Index::dimension(static_cast<int>(sizes.size()));
      sizes.push_back(of.sizes[d]);
    }
    at[last] = Index::dimension(static_cast<int>(sizes.size()));
    sizes.push_back(of.sizes[last]);
    const Value x(graph_.exprs, graph_.exprs.load(tensor, at, of.type));
    const Value body = of.type == DType::kF32 ? x.apply(Fn::kTf32) : x.cast(DType::kF32);
    Node map{.sizes = sizes, .body = body.id(), .name = "channels_last", .place = reader.place};
    map.whole = true;
    const TensorId made = append(graph_, std::move(map), of.type);
    made_[{tensor, last}] = made;
    return made;
  }

  ExprId with_channels_last(ExprId factor, ExprId load, const Index& channel, const Node& node) {
    const Expr of = graph_.exprs[load];
    const size_t last = *place_of(load, channel);
    const TensorId tensor = rounded(of.tensor, last, node);
    std::vector<Index> at = of.at;
    at.erase(at.begin() + static_cast<ptrdiff_t>(last));
    at.push_back(channel);
    return factor_with(graph_, factor, graph_.exprs.load(tensor, at, of.type));
  }

  void rearrange(Node& node, size_t channel) {
    const Expr body = graph_.exprs[node.body];
    const Index index = Index::dimension(static_cast<int>(node.sizes.size() + channel));
    const ExprId left = with_channels_last(body.args[0], *load_of(body.args[0]), index, node);
    const ExprId right = with_channels_last(body.args[1], *load_of(body.args[1]), index, node);
    // The channels become the last of the reduced dimensions.
    std::vector<Index> by = dimensions(node.sizes.size());
    Extents reduced;
    int next = static_cast<int>(node.sizes.size());
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      if (r == channel) {
        by.push_back(Index::dimension(static_cast<int>(node.sizes.size() + node.reduced.size()) - 1));
        continue;
      }
      by.push_back(Index::dimension(next++));
      reduced.push_back(node.reduced[r]);
    }
    reduced.push_back(node.reduced[channel]);
    Extents extents = node.sizes;
    extents.insert(extents.end(), reduced.begin(), reduced.end());
    node.body = graph_.exprs.substitute(graph_.exprs.apply(Fn::kMul, {left, right}), by, extents);
    node.reduced = reduced;
    node.taps = true;
  }

  Graph& graph_;
  std::map<std::pair<TensorId, size_t>, TensorId> made_;
};

}  // namespace

void channels_last(Graph& graph) { Rearranger(graph).run(); }

}  // namespace nereid::compiler
