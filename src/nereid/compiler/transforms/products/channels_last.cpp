#include "nereid/compiler/transforms/products/channels_last.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kMinGroupChannels = 4;     // of a group: 16 bytes that are adjacent
constexpr double kMinRowProducts = 1 << 24;  // below, the passes that rearrange cost more than they gain
constexpr double kRowRate = 0.7;             // of the tensor cores' rate
constexpr double kDirectRate = 0.35;         // the same, of factors that are rounded on their way

class Rearranger {
 public:
  Rearranger(Graph& graph, const Target& target)
      : graph_(graph), target_(target), readers_(graph.tensors.size()) {}

  void run() {
    count_readers();
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      if (const auto channel = channel_of(node)) {
        if (is_direct(node, *channel))
          read_directly(node, *channel);
        else
          rearrange(node, *channel);
      }
      append(graph_, std::move(node));
    }
  }

 private:
  // What reads a tensor.
  struct Readers {
    int windows = 0;   // products of several taps, which take rows
    int products = 0;  // of one tap
    int others = 0;
  };

  void count_readers() {
    const std::vector<bool> live = live_nodes(graph_);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      Node& node = graph_.nodes[n];
      if (is_contraction(graph_, node) || may_be_by_taps(graph_, node)) drop_unit_dims(node);
      if (!live[n]) continue;
      const auto channel = channel_of(node);
      for (const TensorId read : graph_.reads(node)) {
        Readers& readers = readers_[static_cast<size_t>(read)];
        ++(!channel ? readers.others : has_one_tap(node) ? readers.products : readers.windows);
      }
    }
    for (const TensorId result : graph_.results()) ++readers_[static_cast<size_t>(result)].others;
  }

  static bool has_one_tap(const Node& node) {
    return std::ranges::count_if(node.reduced, [](int64_t size) { return size > 1; }) == 1;
  }

  double bytes(TensorId id) const {
    const Tensor& of = graph_.tensors[static_cast<size_t>(id)];
    return static_cast<double>(element_count(of.sizes) * trace::element_bytes(of.type));
  }

  // Seconds that a factor's rows take more than to read it as it is; `products` of it.
  double cost_of_rows(TensorId id, int64_t products) const {
    const Readers& readers = readers_[static_cast<size_t>(id)];
    if (readers.windows > 0) return 0;
    const Node* maker = graph_.maker(id);
    if (maker == nullptr || maker->call != nullptr)
      return target_.cost.launch_seconds + 2 * bytes(id) / target_.bytes_per_second;
    if (readers.others > 0) return bytes(id) / target_.bytes_per_second;
    const bool map = !maker->special() && maker->reduction == Reduction::kNone && maker->at.empty();
    const bool computed =
        map && readers.products == 1 && products <= kMaxDirectProducts && !joins_product(id);
    return computed ? 2 * bytes(id) / target_.bytes_per_second : 0;
  }

  // Of maps that follow a product, a reduction or a window element by element: it stores what they make.
  bool joins_product(TensorId id) const {
    const Node* maker = graph_.maker(id);
    if (maker == nullptr) return false;
    if (maker->special() || maker->reduction != Reduction::kNone) return true;
    for (const ExprId under : graph_.exprs.below(maker->body)) {
      const Expr& load = graph_.exprs[under];
      if (load.kind == Expr::Kind::kLoad && load.at == dimensions(maker->sizes.size()) &&
          graph_.tensors[static_cast<size_t>(load.tensor)].sizes == maker->sizes &&
          joins_product(load.tensor))
        return true;
    }
    return false;
  }

  // Whether a product of one tap, `rows` seconds less, is faster with factors that it rounds itself.
  bool is_faster(const Node& node, double rows) const {
    const Expr& body = graph_.exprs[node.body];
    double memory = bytes(node.out);
    for (const size_t side : {0, 1}) memory += bytes(graph_.exprs[*load_of(body.args[side])].tensor);
    memory /= target_.bytes_per_second;
    const bool wide = graph_.exprs[*load_of(body.args[0])].type == DType::kF32;
    const double flops =
        2 * static_cast<double>(element_count(node.extents())) / (wide ? target_.tf32 : target_.bf16);
    return std::max(memory, flops / kDirectRate) < rows + std::max(memory, flops / kRowRate);
  }

  bool is_direct(const Node& node, size_t channel) const {
    if (!has_one_tap(node) || !node.tf32) return false;
    const Expr& body = graph_.exprs[node.body];
    const size_t larger = products_of(graph_, node, 0) > products_of(graph_, node, 1) ? 0 : 1;
    double rows = 0;
    for (const size_t side : {larger, 1 - larger}) {
      const ExprId load = *load_of(body.args[side]);
      const auto channels = place_of(load, static_cast<int>(node.sizes.size() + channel), node);
      if (channels->group != Index()) return false;
      const double own = cost_of_rows(graph_.exprs[load].tensor, products_of(graph_, node, 1 - side));
      if (side == larger && own == 0) return false;
      rows += own;
    }
    return is_faster(node, rows);
  }

  // The channels are all that is summed.
  void read_directly(Node& node, size_t channel) {
    const size_t rank = node.sizes.size();
    std::vector<Index> by = dimensions(rank);
    for (size_t r = 0; r < node.reduced.size(); ++r)
      by.push_back(r == channel ? Index::dimension(static_cast<int>(rank)) : Index());
    Extents extents = node.sizes;
    extents.push_back(node.reduced[channel]);
    node.body = graph_.exprs.substitute(node.body, by, extents);
    node.reduced = {node.reduced[channel]};
    node.direct = true;
  }

  // A dimension with one element is always at the first.
  void drop_unit_dims(Node& node) {
    const Extents extents = node.extents();
    std::vector<Index> by = dimensions(extents.size());
    for (size_t d = 0; d < extents.size(); ++d)
      if (extents[d] == 1) by[d] = Index();
    node.body = graph_.exprs.substitute(node.body, by, extents);
  }

  // Which of the reduced dimensions both factors have as it stands, or as one of equal groups: the longest.
  std::optional<size_t> channel_of(const Node& node) const {
    if (!may_be_by_taps(graph_, node)) return std::nullopt;
    if (static_cast<double>(element_count(node.extents())) < kMinRowProducts) return std::nullopt;
    const Expr& body = graph_.exprs[node.body];
    const auto left = load_of(body.args[0]), right = load_of(body.args[1]);
    if (!left || !right || graph_.exprs[*left].type != graph_.exprs[*right].type) return std::nullopt;
    std::optional<size_t> best;
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      if (best && node.reduced[r] <= node.reduced[*best]) continue;
      const auto dimension = static_cast<int>(node.sizes.size() + r);
      const auto in_left = place_of(*left, dimension, node), in_right = place_of(*right, dimension, node);
      if (!in_left || !in_right) continue;
      const bool groups = in_left->group != Index() || in_right->group != Index();
      if (node.reduced[r] >= (groups ? kMinGroupChannels : kMinChannels)) best = r;
    }
    return best;
  }

  std::optional<ExprId> load_of(ExprId factor) const {
    const auto found = factor_load(graph_, factor);
    return found ? found : half_factor_load(graph_, factor);
  }

  // Where a factor has the channels: of which of its tensor's dimensions, and of which group of them.
  struct Channels {
    size_t dimension = 0;
    Size length = 0;  // of a group
    Index group = {};
  };
  std::optional<Channels> place_of(ExprId load, int channel, const Node& node) const {
    const Expr& of = graph_.exprs[load];
    const Extents extents = node.extents(), &sizes = graph_.tensors[static_cast<size_t>(of.tensor)].sizes;
    for (size_t d = 0; d < of.at.size(); ++d)
      if (of.at[d] == Index::dimension(channel)) return Channels{d, sizes[d], Index()};
    const Size length = extents[static_cast<size_t>(channel)];
    for (size_t d = 0; d < of.at.size(); ++d) {
      if (of.at[d].stride(channel) != 1 || sizes[d] % length != 0) continue;
      const Index first = of.at[d] - Index::dimension(channel);
      if (first.uses(channel) || remainder(first, length, extents) != Index()) continue;
      return Channels{d, length, quotient(first, length, extents)};
    }
    return std::nullopt;
  }

  // A tensor with dimension `last`, or groups of so many of it, moved to the end, and each element rounded.
  TensorId rounded(TensorId tensor, const Channels& channels, const Node& reader) {
    const size_t last = channels.dimension;
    const std::tuple key{tensor, last, channels.length.value()};
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    const Tensor of = graph_.tensors[static_cast<size_t>(tensor)];
    Extents sizes;
    std::vector<Index> at(of.sizes.size());
    for (size_t d = 0; d < of.sizes.size(); ++d) {
      if (d == last && channels.length == of.sizes[d]) continue;
      at[d] = Index::dimension(static_cast<int>(sizes.size())) * (d == last ? channels.length : Size(1));
      sizes.push_back(d == last ? of.sizes[d] / channels.length : of.sizes[d]);
    }
    at[last] = at[last] + Index::dimension(static_cast<int>(sizes.size()));
    sizes.push_back(channels.length);
    const Value x(graph_.exprs, graph_.exprs.load(tensor, at, of.type));
    const Value body = of.type == DType::kF32 ? x.apply(Fn::kTf32) : x.cast(DType::kF32);
    Node map{.sizes = sizes, .body = body.id(), .name = "channels_last", .place = reader.place};
    map.whole = true;
    const TensorId made = append(graph_, std::move(map), of.type);
    made_[key] = made;
    return made;
  }

  ExprId with_channels_last(ExprId factor, ExprId load, int channel, const Node& node) {
    const Expr of = graph_.exprs[load];
    const Channels channels = *place_of(load, channel, node);
    if (rounds_weights_ && graph_.maker(of.tensor) == nullptr && channels.group == Index() &&
        graph_.tensors[static_cast<size_t>(of.tensor)].strides[channels.dimension] == 1)
      return of.type == DType::kF32 ? factor_with(graph_, factor, graph_.exprs.apply(Fn::kTf32, {load}))
                                    : factor;
    const Tensor& tensor_of = graph_.tensors[static_cast<size_t>(of.tensor)];
    const bool whole = channels.length == tensor_of.sizes[channels.dimension];
    // Halves need no rounding: those in memory whose channels are adjacent are rows as they are.
    const Node* maker = graph_.maker(of.tensor);
    if (of.type != DType::kF32 && whole && tensor_of.strides[channels.dimension] == 1 &&
        (maker == nullptr || maker->special()))
      return factor;
    const TensorId tensor = rounded(of.tensor, channels, node);
    std::vector<Index> at = of.at;
    if (whole)
      at.erase(at.begin() + static_cast<ptrdiff_t>(channels.dimension));
    else
      at[channels.dimension] = channels.group;
    at.push_back(Index::dimension(channel));
    return factor_with(graph_, factor, graph_.exprs.load(tensor, at, of.type));
  }

  void rearrange(Node& node, size_t channel) {
    const Expr body = graph_.exprs[node.body];
    const auto index = static_cast<int>(node.sizes.size() + channel);
    rounds_weights_ = has_one_tap(node) && node.tf32 && is_faster(node, target_.cost.launch_seconds);
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
  const Target& target_;
  std::vector<Readers> readers_;                                    // of each tensor
  bool rounds_weights_ = false;                                     // of one tap, which are rows as they are
  std::map<std::tuple<TensorId, size_t, int64_t>, TensorId> made_;  // by dimension and length of a group
};

}  // namespace

void channels_last(Graph& graph, const Target& target) { Rearranger(graph, target).run(); }

}  // namespace nereid::compiler
