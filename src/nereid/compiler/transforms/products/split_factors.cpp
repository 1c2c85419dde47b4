#include "nereid/compiler/transforms/products/split_factors.h"

#include <algorithm>
#include <map>
#include <optional>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

// Below these the passes that split cost more than the product gains.
constexpr int64_t kMinSide = 256, kMinTerms = 256, kMinProducts = int64_t{1} << 31;
constexpr int64_t kMinRow = 64;  // elements; a shorter row would be mostly padding, one of one element eight
constexpr int64_t kAligned = 8;  // of float16: 16 bytes, which a thread loads at once
constexpr double kPasses = 3;  // over a factor: read for its largest element, read and written for its parts
constexpr double kProducts = 3;   // of tensor cores for one of float32, either way
constexpr double kReached = 0.7;  // of the tensor cores' rate

// Sizes of parts whose rows begin at multiples of 16 bytes: of others single elements are loaded, which takes
// many times the product's own time. Sizes that depend on a batch stay, for they are written as texts of it.
Extents with_aligned_rows(Extents sizes) {
  if (sizes.size() < 2 || sizes.back() < kMinRow || sizes.back().text().find(kBatchName) != std::string::npos)
    return sizes;
  if (sizes.back() % kAligned != 0) sizes.back() = (sizes.back() + kAligned - 1) / kAligned * kAligned;
  return sizes;
}

// What remains of a tensor in float16, and what brings the product back to scale.
struct Parts {
  TensorId high = -1, low = -1, back = -1;
};

class FactorSplitter {
 public:
  FactorSplitter(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      const auto left = factor(node, 0), right = factor(node, 1);
      if (left && right && large(node) && worth(node, *left, *right))
        split(std::move(node), *left, *right);
      else
        add(std::move(node));
    }
  }

 private:
  std::optional<ExprId> factor(const Node& node, size_t which) const {
    if (!is_contraction(graph_, node) || node.tf32 || node.window_factor || !node.at.empty())
      return std::nullopt;
    return factor_load(graph_, graph_.exprs[node.body].args[which]);
  }

  bool large(const Node& node) const {
    const Expr& body = graph_.exprs[node.body];
    int64_t m = 1, n = 1;
    for (size_t d = 0; d < node.sizes.size(); ++d) {
      const bool left = graph_.exprs.uses(body.args[0], static_cast<int>(d));
      const bool right = graph_.exprs.uses(body.args[1], static_cast<int>(d));
      if (left && !right) m *= node.sizes[d];
      if (right && !left) n *= node.sizes[d];
    }
    const int64_t terms = element_count(node.reduced);
    return std::min(m, n) >= kMinSide && terms >= kMinTerms &&
           static_cast<double>(element_count(node.sizes)) * static_cast<double>(terms) >= kMinProducts;
  }

  // Whether float16's rate gains more than the passes over the factors take. A sum that is long against its
  // result waits for its factors alone.
  bool worth(const Node& node, ExprId left, ExprId right) const {
    double elements = 0;
    for (const ExprId load : {left, right}) {
      const TensorId tensor = graph_.exprs[load].tensor;
      if (!parts_.contains(tensor))
        elements += static_cast<double>(element_count(graph_.tensors[static_cast<size_t>(tensor)].sizes));
    }
    const double flops = 2 * static_cast<double>(element_count(node.extents()));
    const double gained = kProducts * flops / kReached * (1 / target_.tf32 - 1 / target_.bf16);
    return gained > kPasses * 4 * elements / target_.bytes_per_second;
  }

  TensorId add(Node node) { return append(graph_, std::move(node)); }
  TensorId add(Node node, DType type) {
    node.whole = true;
    return append(graph_, std::move(node), type);
  }

  Value load(TensorId tensor, size_t dims) {
    const DType type = graph_.tensors[static_cast<size_t>(tensor)].type;
    return {graph_.exprs, graph_.exprs.load(tensor, dimensions(dims), type)};
  }

  const Parts& parts_of(TensorId tensor, const Node& reader) {
    if (const auto known = parts_.find(tensor); known != parts_.end()) return known->second;
    const Tensor of = graph_.tensors[static_cast<size_t>(tensor)];
    const std::string name = of.name.empty() ? "factor" : of.name;
    const Extents sizes = with_aligned_rows(of.sizes);
    const auto map = [&](const std::string& what, const Extents& sizes, Value body) {
      return Node{.sizes = sizes, .body = body.id(), .name = what, .place = reader.place};
    };
    const Value x = load(tensor, of.sizes.size());
    Node largest{.sizes = {},
                 .reduced = of.sizes,
                 .reduction = Reduction::kMax,
                 .body = x.apply(Fn::kAbs).id(),
                 .name = "largest_" + name,
                 .place = reader.place};
    const Value most = load(add(std::move(largest), DType::kF32), 0);
    // Powers of two: nothing is rounded by them. An infinite or NaN tensor stays as it is.
    const Value usual =
        most.apply(Fn::kLess, most.constant(1e30)).where(maximum(most, 1e-30), most.constant(1));
    const Value exponent = usual.apply(Fn::kLog2).apply(Fn::kFloor);
    const TensorId scale = add(map("scale_" + name, {}, (-exponent).apply(Fn::kExp2)), DType::kF32);
    Parts parts;
    parts.back = add(map("unscale_" + name, {}, exponent.apply(Fn::kExp2)), DType::kF32);
    const Value known = padded(x, of.sizes, sizes);
    const Value scaled = known * Value(graph_.exprs, graph_.exprs.load(scale, {}, DType::kF32));
    const Value high = scaled.apply(Fn::kHalf);
    parts.high = add(map("high_" + name, sizes, high), DType::kF16);
    parts.low = add(map("low_" + name, sizes, (scaled - high) * kLowScale), DType::kF16);
    return parts_.emplace(tensor, parts).first->second;
  }

  // 0 beyond the end of a row.
  Value padded(Value x, const Extents& from, const Extents& to) {
    if (from.empty() || from.back() == to.back()) return x;
    const Index last = Index::dimension(static_cast<int>(to.size()) - 1);
    const Value inside(graph_.exprs, graph_.exprs.within(last, 0, from.back(), to));
    return inside.where(x, x.constant(0));
  }

  // Whether dimension k alone says where in one of its tensor's dimensions a load is, and nothing else of it.
  bool is_along(const Expr& load, int k) const {
    const Index only = Index::dimension(k);
    return std::ranges::count_if(load.at, [&](const Index& at) { return at == only; }) == 1 &&
           std::ranges::count_if(load.at, [&](const Index& at) { return at.uses(k); }) == 1;
  }

  // A sum along rows goes over their padding, too: masks then end with a vector. Both factors are 0 there, or
  // one is beyond its tensor.
  void extend_sum(Node& product, const Expr& left, const Expr& right) const {
    const int k = static_cast<int>(product.sizes.size());
    if (product.reduced.size() != 1 || !is_along(left, k) || !is_along(right, k)) return;
    for (const Expr* load : {&left, &right})
      if (load->at.back() == Index::dimension(k))
        product.reduced[0] =
            std::max(product.reduced[0], graph_.tensors[static_cast<size_t>(load->tensor)].sizes.back());
  }

  // The factor with its load replaced.
  ExprId with(ExprId factor, TensorId tensor) {
    return graph_.exprs.replace_loads(factor, [&](const Expr& load) {
      const std::vector<Index> at = load.at;
      return graph_.exprs.cast(graph_.exprs.load(tensor, at, DType::kF16), DType::kF32);
    });
  }

  void split(Node node, ExprId left_load, ExprId right_load) {
    const Expr body = graph_.exprs[node.body];
    const Parts left = parts_of(graph_.exprs[left_load].tensor, node),
                right = parts_of(graph_.exprs[right_load].tensor, node);
    Expr of_left = graph_.exprs[left_load], of_right = graph_.exprs[right_load];
    of_left.tensor = left.high, of_right.tensor = right.high;
    const ExprId a = with(body.args[0], left.high), b = with(body.args[1], right.high);
    const TensorId result = node.out;
    const DType type = graph_.tensors[static_cast<size_t>(result)].type;
    Node product = node;
    product.body = graph_.exprs.apply(Fn::kMul, {a, b});
    extend_sum(product, of_left, of_right);
    product.low = {{with(body.args[0], left.low), b}, {a, with(body.args[1], right.low)}};
    const Value sum = load(add(std::move(product), DType::kF32), node.sizes.size());
    const auto scalar = [&](TensorId id) {
      return Value(graph_.exprs, graph_.exprs.load(id, {}, DType::kF32));
    };
    Node back{.out = result,
              .sizes = node.sizes,
              .body = (sum * scalar(left.back) * scalar(right.back)).cast(compute_type(type)).id(),
              .name = "unscale",
              .place = node.place};
    add(std::move(back));
  }

  Graph& graph_;
  const Target& target_;
  std::map<TensorId, Parts> parts_;
};

}  // namespace

void split_factors(Graph& graph, const Choices& choices, const Target& target) {
  if (choices.split_products) FactorSplitter(graph, target).run();
}

}  // namespace nereid::compiler
