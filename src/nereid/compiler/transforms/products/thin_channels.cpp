#include "nereid/compiler/transforms/products/thin_channels.h"

#include <algorithm>
#include <optional>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/channels_last.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr double kMinElements = 1 << 24;  // of the product; below, the passes that rearrange cost more
constexpr double kMaxFilling = 2.6;
constexpr int64_t kMinBlock = 16;  // terms that a tensor core takes at once

// The two loads of a convolution, and where the channel and the place in the window's line stand in them.
struct Lines {
  ExprId x = -1, weight = -1;
  size_t channel = 0, along = 0;      // of the reduced dimensions
  size_t x_channel = 0, x_along = 0;  // of x's dimensions
  size_t weight_channel = 0, weight_along = 0;
  std::vector<Bounds> reach;  // of each of x's indices
};

class LineBuilder {
 public:
  explicit LineBuilder(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      if (auto lines = lines_of(node)) rearrange(node, *lines);
      append(graph_, std::move(node));
    }
  }

 private:
  Exprs& exprs() { return graph_.exprs; }

  std::optional<Lines> lines_of(Node& node) {
    if (!may_be_by_taps(graph_, node)) return std::nullopt;
    if (static_cast<double>(element_count(node.extents())) < kMinElements) return std::nullopt;
    const Extents extents = node.extents();
    std::vector<Index> by = dimensions(extents.size());
    for (size_t d = 0; d < extents.size(); ++d)
      if (extents[d] == 1) by[d] = Index();
    const Expr body = exprs()[exprs().substitute(node.body, by, extents)];
    for (const size_t side : {0, 1}) {
      const auto x = load_of(body.args[side]), weight = load_of(body.args[1 - side]);
      if (!x || !weight || exprs()[*x].type != exprs()[*weight].type) return std::nullopt;
      if (auto found = matched(node, *x, *weight);
          found && only_padded(body.args[side], *found, extents) && !padded_at_all(body.args[1 - side]))
        return found;
    }
    return std::nullopt;
  }

  std::optional<ExprId> load_of(ExprId factor) const {
    const auto found = factor_load(graph_, factor);
    return found ? found : half_factor_load(graph_, factor);
  }

  bool padded_at_all(ExprId factor) {
    return std::ranges::any_of(exprs().below(factor), [&](ExprId id) {
      return exprs()[id].kind == Expr::Kind::kApply && exprs()[id].fn == Fn::kWhere;
    });
  }

  static std::optional<size_t> plain(const Expr& load, int dimension) {
    const auto found = std::ranges::find(load.at, Index::dimension(dimension));
    return found == load.at.end() ? std::nullopt
                                  : std::optional(static_cast<size_t>(found - load.at.begin()));
  }

  std::optional<Lines> matched(const Node& node, ExprId x, ExprId weight) {
    const Expr &of_x = exprs()[x], &of_weight = exprs()[weight];
    const auto rank = static_cast<int>(node.sizes.size());
    Lines lines;
    lines.x = x, lines.weight = weight;
    bool channel = false, along = false;
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      const int dimension = rank + static_cast<int>(r);
      const auto in_weight = plain(of_weight, dimension);
      if (!in_weight || node.reduced[r] == 1) continue;
      if (const auto in_x = plain(of_x, dimension); in_x && node.reduced[r] < kMinChannels && !channel) {
        channel = true;
        lines.channel = r, lines.x_channel = *in_x, lines.weight_channel = *in_weight;
        continue;
      }
      // The last of such is the one whose elements are adjacent in memory.
      for (size_t d = 0; d < of_x.at.size(); ++d) {
        if (of_x.at[d].stride(dimension) != 1 || plain(of_x, dimension) || others(node, of_x.at[d], r))
          continue;
        along = true;
        lines.along = r, lines.x_along = d, lines.weight_along = *in_weight;
      }
    }
    if (!channel || !along) return std::nullopt;
    for (const Index& index : of_x.at) lines.reach.push_back(index.bounds(node.extents()));
    return worth(node, lines) ? std::optional(lines) : std::nullopt;
  }

  // Whether an index goes with another reduced dimension than r.
  static bool others(const Node& node, const Index& index, size_t r) {
    for (size_t other = 0; other < node.reduced.size(); ++other)
      if (other != r && index.uses(static_cast<int>(node.sizes.size() + other))) return true;
    return false;
  }

  static bool worth(const Node& node, const Lines& lines) {
    const int64_t row = node.reduced[lines.along] * power_of_two(node.reduced[lines.channel]);
    const int64_t filled = std::max(power_of_two(row), kMinBlock);
    return static_cast<double>(filled) <=
           kMaxFilling * static_cast<double>(node.reduced[lines.along] * node.reduced[lines.channel]);
  }

  // x is zero where it is read outside, and nowhere else.
  bool only_padded(ExprId factor, const Lines& lines, const Extents& extents) {
    const Expr& load = exprs()[lines.x];
    const Extents& sizes = graph_.tensors[static_cast<size_t>(load.tensor)].sizes;
    std::vector<bool> guarded(sizes.size(), false);
    ExprId where = -1;
    for (const ExprId id : exprs().below(factor))
      if (exprs()[id].kind == Expr::Kind::kApply && exprs()[id].fn == Fn::kWhere) where = id;
    if (where >= 0)
      for (const ExprId under : exprs().below(exprs()[where].args[0])) {
        const Expr& condition = exprs()[under];
        if (condition.kind == Expr::Kind::kApply && condition.fn == Fn::kAnd) continue;
        if (condition.kind != Expr::Kind::kWithin) return false;
        size_t d = 0;
        while (d < sizes.size() &&
               !(load.at[d] == condition.index && condition.low == 0 && condition.high == sizes[d]))
          ++d;
        if (d == sizes.size()) return false;
        guarded[d] = true;
      }
    for (size_t d = 0; d < sizes.size(); ++d) {
      const Bounds bounds = load.at[d].bounds(extents);
      if (!guarded[d] && (bounds.low < 0 || bounds.high >= sizes[d])) return false;
    }
    return true;
  }

  // A tensor as lines, [the other dimensions..., width x channels]: what is in `reach`, the channels filled
  // up.
  TensorId in_lines(TensorId tensor, size_t channel, size_t along, const std::vector<Bounds>& reach,
                    int64_t filled, const char* name, const Node& reader) {
    Extents sizes;
    std::vector<Index> at(reach.size());
    for (size_t d = 0; d < reach.size(); ++d) {
      if (d == channel || d == along) continue;
      at[d] = Index::dimension(static_cast<int>(sizes.size())) + Index(reach[d].low);
      sizes.push_back(reach[d].high - reach[d].low + 1);
    }
    const Index last = Index::dimension(static_cast<int>(sizes.size()));
    sizes.push_back((reach[along].high - reach[along].low + 1) * filled);
    at[channel] = remainder(last, filled, sizes);
    at[along] = quotient(last, filled, sizes) + Index(reach[along].low);
    return rounded(tensor, at, sizes, name, reader);
  }

  TensorId rounded(TensorId tensor, const std::vector<Index>& at, const Extents& sizes, const char* name,
                   const Node& reader) {
    const Extents of = graph_.tensors[static_cast<size_t>(tensor)].sizes;
    Value inside(exprs(), exprs().integer(1, DType::kBool));
    for (size_t d = 0; d < of.size(); ++d)
      inside = inside & Value(exprs(), exprs().within(at[d], 0, of[d], sizes));
    const DType type = graph_.tensors[static_cast<size_t>(tensor)].type;
    const Value stored(exprs(), exprs().load(tensor, at, type));
    const Value x = type == DType::kF32 ? stored.apply(Fn::kTf32) : stored.cast(DType::kF32);
    Node map{
        .sizes = sizes, .body = inside.where(x, x.constant(0)).id(), .name = name, .place = reader.place};
    map.whole = true;
    map.steps = reader.steps;
    return append(graph_, std::move(map), type);
  }

  void rearrange(Node& node, const Lines& lines) {
    const int64_t filled = power_of_two(node.reduced[lines.channel]);
    const Expr of_x = exprs()[lines.x], of_weight = exprs()[lines.weight];
    std::vector<Bounds> all;  // of the weights
    for (const int64_t size : graph_.tensors[static_cast<size_t>(of_weight.tensor)].sizes)
      all.push_back({0, size - 1});
    const TensorId x =
        in_lines(of_x.tensor, lines.x_channel, lines.x_along, lines.reach, filled, "lines", node);
    const TensorId weight = in_lines(of_weight.tensor, lines.weight_channel, lines.weight_along, all, filled,
                                     "weight_rows", node);
    const auto rank = static_cast<int>(node.sizes.size());
    // The window's other dimensions, then the row.
    std::vector<Index> by = dimensions(node.sizes.size());
    Extents reduced;
    for (size_t r = 0; r < node.reduced.size(); ++r) {
      const bool in_row = r == lines.channel || r == lines.along;
      by.push_back(in_row || node.reduced[r] == 1
                       ? Index()
                       : Index::dimension(rank + static_cast<int>(reduced.size())));
      if (!in_row) reduced.push_back(node.reduced[r]);
    }
    const Index row = Index::dimension(rank + static_cast<int>(reduced.size()));
    reduced.push_back(node.reduced[lines.along] * filled);
    Extents extents = node.sizes;
    extents.insert(extents.end(), reduced.begin(), reduced.end());
    std::vector<Index> at_x, at_weight;
    for (size_t d = 0; d < of_x.at.size(); ++d)
      if (d != lines.x_channel && d != lines.x_along)
        at_x.push_back(substitute(of_x.at[d], by, extents) - Index(lines.reach[d].low));
    at_x.push_back((substitute(of_x.at[lines.x_along], by, extents) - Index(lines.reach[lines.x_along].low)) *
                       filled +
                   row);
    for (size_t d = 0; d < of_weight.at.size(); ++d)
      if (d != lines.weight_channel && d != lines.weight_along)
        at_weight.push_back(substitute(of_weight.at[d], by, extents));
    at_weight.push_back(row);
    const auto factor = [&](TensorId tensor, std::vector<Index> at) {
      return exprs().cast(exprs().load(tensor, std::move(at), of_x.type), DType::kF32);
    };
    node.body = exprs().apply(Fn::kMul, {factor(x, at_x), factor(weight, at_weight)});
    node.reduced = reduced;
    node.taps = true;
  }

  Graph& graph_;
};

}  // namespace

void thin_channels(Graph& graph) { LineBuilder(graph).run(); }

}  // namespace nereid::compiler
