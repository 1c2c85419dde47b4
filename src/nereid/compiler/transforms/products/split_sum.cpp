#include "nereid/compiler/transforms/products/split_sum.h"

#include <algorithm>
#include <optional>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/value.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

// Of output elements that one program makes, in either direction. Large tiles, of which a processor has one,
// read each factor less often from the second-level cache: 256 x 256 results of 524,288 terms 2.1 GB instead
// of 4.3.
constexpr int64_t kLargeSplitTile = 128, kSplitTile = 64, kGatheredTile = 32;
// That are worth a program.
constexpr int64_t kLargeTermsOfAPart = 1024, kTermsOfAPart = 256, kGatheredTermsOfAPart = 64;
// Seconds a program takes for one term of its tile's sums: of float32 in three products of TF32, of halves,
// of what is gathered (measured on an H200: 17 to 35 ns).
constexpr double kTermSeconds = 6e-9, kHalfTermSeconds = 2e-9, kGatheredTermSeconds = 20e-9;

struct Split {
  size_t dimension = 0;  // of `reduced`
  int64_t parts = 1, chunk = 1;
};

class SumSplitter {
 public:
  SumSplitter(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      if (const auto how = split_of(node))
        split(std::move(node), *how);
      else
        append(graph_, std::move(node));
    }
  }

 private:
  std::optional<Split> split_of(const Node& node) const {
    if (!is_contraction(graph_, node)) return std::nullopt;
    Split how;
    for (size_t r = 0; r < node.reduced.size(); ++r)
      if (node.reduced[r] > node.reduced[how.dimension]) how.dimension = r;
    const int64_t length = node.reduced[how.dimension], terms = element_count(node.reduced);
    if (node.taps && how.dimension + 1 != node.reduced.size()) return std::nullopt;
    const bool gathered = !node.taps && terms > length;
    const int64_t least = gathered ? kGatheredTermsOfAPart : kTermsOfAPart;
    how.parts =
        std::min({parts_that_fill(node, gathered, terms), terms / least, gathered ? length : length / 16});
    if (how.parts < 2) return std::nullopt;
    how.chunk = (length + how.parts - 1) / how.parts;
    if (!gathered) how.chunk = (how.chunk + 63) / 64 * 64;  // blocks of k are then whole
    while (node.taps && how.chunk < length && length % how.chunk != 0) how.chunk += 64;
    how.parts = (length + how.chunk - 1) / how.chunk;
    if (how.parts < 2 || (node.taps && how.parts * how.chunk != length)) return std::nullopt;
    const double term = gathered ? kGatheredTermSeconds : halves(node) ? kHalfTermSeconds : kTermSeconds;
    const double one = static_cast<double>(terms) * term;
    const double moved = 8.0 * static_cast<double>(how.parts * element_count(node.sizes));
    const double two =
        one / static_cast<double>(how.parts) + target_.cost.launch_seconds + moved / target_.bytes_per_second;
    return two < 0.8 * one ? std::optional(how) : std::nullopt;
  }

  // Parts of which every processor has a program or two.
  int64_t parts_that_fill(const Node& node, bool gathered, int64_t terms) const {
    const int64_t processors = target_.multiprocessors;
    const Sides sides = sides_of(node);
    // What is gathered keeps a processor busy with a program.
    if (gathered) return processors / sides.tiles(kGatheredTile);
    const int64_t of_large = processors / sides.tiles(kLargeSplitTile);
    const bool large =
        std::min(sides.m, sides.n) >= kLargeSplitTile && terms >= of_large * kLargeTermsOfAPart;
    return large && !node.taps ? of_large : 2 * processors / sides.tiles(kSplitTile);
  }

  struct Sides {
    int64_t m = 1, n = 1, batch = 1;
    int64_t tiles(int64_t tile) const { return (m + tile - 1) / tile * ((n + tile - 1) / tile) * batch; }
  };
  Sides sides_of(const Node& node) const {
    const Expr& body = graph_.exprs[node.body];
    Sides sides;
    for (size_t d = 0; d < node.sizes.size(); ++d) {
      const bool left = graph_.exprs.uses(body.args[0], static_cast<int>(d)),
                 right = graph_.exprs.uses(body.args[1], static_cast<int>(d));
      (left == right ? sides.batch : left ? sides.m : sides.n) *= node.sizes[d];
    }
    return sides;
  }

  bool halves(const Node& node) const {
    const auto half = [&](ExprId factor) {
      const Expr& cast = graph_.exprs[factor];
      return cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast &&
             trace::element_bytes(graph_.exprs[cast.args[0]].type) == 2;
    };
    const Expr& body = graph_.exprs[node.body];
    return half(body.args[0]) && half(body.args[1]);
  }

  void split(Node node, const Split& how) {
    Exprs& exprs = graph_.exprs;
    const size_t rank = node.sizes.size(), which = rank + how.dimension;
    Node part = node;
    part.out = -1;
    part.at.clear();
    part.name = node.name + "_parts";
    part.sizes.insert(part.sizes.begin(), how.parts);
    part.reduced[how.dimension] = how.chunk;
    const Extents extents = part.extents();
    std::vector<Index> by = dimensions(rank + node.reduced.size(), 1);
    by[which] = by[which] + Index::dimension(0) * how.chunk;
    const Expr body = exprs[node.body];
    const int64_t length = node.reduced[how.dimension];
    const Value inside(exprs, exprs.within(by[which], 0, length, extents));
    // Both: what a factor is made of may be 0 / 0 where there is nothing to load.
    const auto of_part = [&](ExprId factor) { return where(inside, exprs.substitute(factor, by, extents)); };
    part.body = exprs.apply(Fn::kMul, {of_part(body.args[0]), of_part(body.args[1])});
    for (auto& [left, right] : part.low) left = of_part(left), right = of_part(right);
    const TensorId parts = append(graph_, std::move(part), DType::kF32);
    Node sum{.out = node.out,
             .sizes = node.sizes,
             .reduced = {how.parts},
             .reduction = Reduction::kSum,
             .name = node.name,
             .place = node.place};
    sum.steps = node.steps;
    sum.at = node.at;
    std::vector<Index> at = dimensions(rank);
    at.insert(at.begin(), Index::dimension(static_cast<int>(rank)));
    sum.body = exprs.load(parts, at, DType::kF32);
    append(graph_, std::move(sum));
  }

  // 0 elsewhere, in the type that the factor is stored in.
  ExprId where(Value inside, ExprId factor) {
    const Expr expr = graph_.exprs[factor];
    if (expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast)
      return graph_.exprs.cast(where(inside, expr.args[0]), expr.type);
    const Value value(graph_.exprs, factor);
    return inside.where(value, value.constant(0)).id();
  }

  Graph& graph_;
  const Target& target_;
};

}  // namespace

void split_long_sums(Graph& graph, const Target& target) { SumSplitter(graph, target).run(); }

}  // namespace nereid::compiler
