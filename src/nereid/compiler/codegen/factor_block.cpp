#include "nereid/compiler/codegen/factor_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

Index address_of(const Graph& graph, const Expr& load) {
  const Tensor& tensor = graph.tensors[static_cast<size_t>(load.tensor)];
  Index address(tensor.shift);
  for (size_t d = 0; d < load.at.size(); ++d) address = address + load.at[d] * tensor.strides[d];
  return address;
}

// The dimension (`k` or `own`) along which single elements of float32 are adjacent that are in no vectors;
// -1: they are not adjacent, or in vectors.
int singles_along(const Graph& graph, const Expr& load, int own, int k) {
  if (!load.args.empty() || load.type != DType::kF32) return -1;
  const Index address = address_of(graph, load);
  const int along = address.stride(k).value_or(0) == 1 ? k : address.stride(own).value_or(0) == 1 ? own : -1;
  if (along < 0) return -1;
  const Index others = address - Index::dimension(along);
  const bool odd = others.constant() % 2 != 0 ||
                   std::ranges::any_of(others.terms(), [](const auto& term) { return term.second % 2 != 0; });
  return odd ? along : -1;
}

}  // namespace

std::string FactorBlock::range(bool of_k) const {
  const char* own = left ? "BLOCK_M" : "BLOCK_N";
  if (!flat) {
    return fmt::format("tl.arange(0, {})[{}]", of_k ? "BLOCK_K" : own, left == of_k ? "None, :" : ":, None");
  }
  const std::string along = fmt::format("tl.arange(0, {} * BLOCK_K) {} {}", own, of_k == along_k ? "%" : "//",
                                        along_k ? "BLOCK_K" : own);
  return single && of_k == along_k ? fmt::format("tl.multiple_of({}, [1])", along) : along;
}

std::string FactorBlock::shaped(const std::string& value, bool whole) const {
  if (!flat && whole) return value;
  if (!flat)
    return fmt::format("tl.broadcast_to({}, {})", value, left ? "[BLOCK_M, BLOCK_K]" : "[BLOCK_K, BLOCK_N]");
  const std::string own = left ? "BLOCK_M" : "BLOCK_N";
  const std::string shape = along_k ? "[" + own + ", BLOCK_K]" : "[BLOCK_K, " + own + "]";
  const std::string rows = fmt::format("tl.reshape({}, {})", value, shape);
  return left == along_k ? rows : fmt::format("tl.trans({})", rows);
}

void reach_of(const Graph& graph, ExprId factor, const OwnBlock& own, int k, int64_t terms, Reach& reach) {
  const Expr& cast = graph.exprs[factor];
  if (cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast)
    return reach_of(graph, cast.args[0], own, k, terms, reach);
  if (cast.kind != Expr::Kind::kApply || cast.fn != Fn::kWhere) return;
  const Expr &condition = graph.exprs[cast.args[0]], &otherwise = graph.exprs[cast.args[2]];
  if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0 ||
      condition.kind != Expr::Kind::kWithin)
    return;
  const auto of_k = condition.index.stride(k), of_own = condition.index.stride(own.dimension);
  const size_t known = (of_k.value_or(0) != 0 ? 1 : 0) + (of_own.value_or(0) != 0 ? 1 : 0);
  if (!of_k || !of_own || std::abs(*of_k) != 1 || std::abs(*of_own) != 1 ||
      condition.index.terms().size() != known)
    return;
  const int64_t c = condition.index.constant();
  // k goes with -+own: the least of it is at one end of the tile, the most at the other.
  const int64_t with = *of_k == 1 ? -*of_own : *of_own;
  const int64_t low = *of_k == 1 ? condition.low - c : c - condition.high + 1,
                high = *of_k == 1 ? condition.high - c : c - condition.low + 1;
  const auto text = [&](int64_t constant) {
    return fmt::format("{}{} {} {}", with < 0 ? "-" : "", own.first, constant < 0 ? "-" : "+",
                       std::abs(constant));
  };
  const int64_t least = low + (with < 0 ? -(own.block - 1) : 0), most = high + (with > 0 ? own.block - 1 : 0);
  if (least + (with < 0 ? -own.count : own.count) > 0) reach.begin.push_back(text(least));
  if (most + (with < 0 ? -own.count : 0) < terms) reach.end.push_back(text(most));
}

std::pair<std::string, std::string> bounds_of(ExprWriter& write, const Reach& reach,
                                              const std::string& terms) {
  std::string begin = "0", end = terms;
  write.line("# Beyond these a triangle has nothing but zeros.");
  if (!reach.begin.empty()) {
    for (const auto& each : reach.begin) begin = fmt::format("max({}, {})", begin, each);
    write.line(fmt::format("begin = {} // BLOCK_K * BLOCK_K", begin));
    begin = "begin";
  }
  if (!reach.end.empty()) {
    for (const auto& each : reach.end) end = fmt::format("min({}, {})", end, each);
    write.line(fmt::format("end = {}", end));
    end = "end";
  }
  return {begin, end};
}

std::string FactorSum::zeros() const {
  return fmt::format("{} = tl.zeros({}, tl.float32)", block,
                     left ? "[BLOCK_M, BLOCK_K]" : "[BLOCK_K, BLOCK_N]");
}

std::string FactorSum::total() const {
  return left ? fmt::format("tl.sum({}, axis=1)[:, None]", block)
              : fmt::format("tl.sum({}, axis=0)[None, :]", block);
}

FactorBlock factor_block(const Graph& graph, ExprId factor, bool left, int own, int k) {
  std::set<int> along;
  for (const ExprId id : graph.exprs.below(factor))
    if (graph.exprs[id].kind == Expr::Kind::kLoad && graph.exprs.uses(id, k) && graph.exprs.uses(id, own))
      along.insert(singles_along(graph, graph.exprs[id], own, k));
  if (along.size() != 1 || *along.begin() < 0) return {.left = left};
  return {.left = left, .flat = true, .along_k = *along.begin() == k};
}

Adjacent adjacent_along(const Graph& graph, ExprId factor, const std::vector<int>& own, int k) {
  Adjacent found = Adjacent::kNeither;
  for (const ExprId id : graph.exprs.below(factor)) {
    const Expr& load = graph.exprs[id];
    const bool of_both = graph.exprs.uses(id, k) &&
                         std::ranges::any_of(own, [&](int dim) { return graph.exprs.uses(id, dim); });
    if (load.kind != Expr::Kind::kLoad || !of_both) continue;
    if (!load.args.empty() || load.type != DType::kF32) return Adjacent::kNeither;
    const Index address = address_of(graph, load);
    const auto along = [&](int dim) { return address.stride(dim).value_or(0) == 1; };
    const auto mine = std::ranges::find_if(own, along);
    if (!along(k) && mine == own.end()) continue;
    const Index others = address - Index::dimension(along(k) ? k : *mine);
    if (std::ranges::any_of(others.terms(), [](const auto& term) { return term.second % 2 != 0; }))
      return Adjacent::kNeither;
    const Adjacent here = along(k) ? Adjacent::kSum : Adjacent::kOwn;
    if (found != Adjacent::kNeither && found != here) return Adjacent::kNeither;
    found = here;
  }
  return found;
}

std::optional<Size> loaded_extent(const Graph& graph, ExprId factor, int own) {
  std::optional<Size> reach;
  for (const ExprId id : graph.exprs.below(factor)) {
    const Expr& load = graph.exprs[id];
    if (!graph.exprs.uses(id, own)) continue;
    if (load.kind == Expr::Kind::kIndex || load.kind == Expr::Kind::kWithin) return std::nullopt;
    if (load.kind != Expr::Kind::kLoad) continue;
    if (!load.args.empty() || load.at.empty() || load.at.back() != Index::dimension(own)) return std::nullopt;
    const Size& size = graph.tensors[static_cast<size_t>(load.tensor)].sizes[load.at.size() - 1];
    reach = reach ? std::min(*reach, size) : size;
  }
  return reach;
}

std::optional<ExprId> bare_load(const Graph& graph, ExprId id) {
  const Expr& padded = graph.exprs[id];
  if (padded.kind != Expr::Kind::kApply || padded.fn != Fn::kWhere) return std::nullopt;
  const Expr &load = graph.exprs[padded.args[1]], &otherwise = graph.exprs[padded.args[2]];
  if (load.kind != Expr::Kind::kLoad || otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0)
    return std::nullopt;
  const Tensor& of = graph.tensors[static_cast<size_t>(load.tensor)];
  for (const ExprId under : graph.exprs.below(padded.args[0])) {
    const Expr& condition = graph.exprs[under];
    if (condition.kind == Expr::Kind::kApply && condition.fn == Fn::kAnd) continue;
    if (condition.kind != Expr::Kind::kWithin) return std::nullopt;
    bool implied = false;
    for (size_t d = 0; d < load.at.size(); ++d)
      implied =
          implied || (load.at[d] == condition.index && condition.low == 0 && condition.high == of.sizes[d]);
    if (!implied) return std::nullopt;
  }
  return padded.args[1];
}

DType factor_type(const Graph& graph, ExprId factor) {
  const Expr& cast = graph.exprs[factor];
  return cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast ? graph.exprs[cast.args[0]].type : cast.type;
}

namespace {

constexpr int64_t kFewRowsOfAProduct = 32;  // a product of which takes as long as the other factor is read

// The right factor of float32 goes to shared memory with its k adjacent: better the one that is so in memory.
void sort_factors(const Graph& graph, const TileKernel& kernel, Contraction& of) {
  const Node& node = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  const bool wide = graph.tensors[static_cast<size_t>(node.out)].type == DType::kF32;
  if (!wide || node.taps || !node.low.empty() || kernel.columns.empty()) return;
  size_t inner = kernel.columns.size() - 1;
  while (inner > 0 && kernel.columns[inner] == 1) --inner;
  const int k = static_cast<int>(kernel.rows.size() + inner);
  const Adjacent left = adjacent_along(graph, of.left, of.m, k),
                 right = adjacent_along(graph, of.right, of.n, k);
  const bool is_load = graph.exprs[bare_load(graph, of.right).value_or(of.right)].kind == Expr::Kind::kLoad;
  // One that is computed would be computed an element a thread: twice as slow for a depthwise convolution.
  if (right != Adjacent::kOwn || !is_load) return;
  const bool large =
      std::min<int64_t>(product_of(kernel.rows, of.m), product_of(kernel.rows, of.n)) > kFewRowsOfAProduct;
  if (left == Adjacent::kSum && large) {
    std::swap(of.left, of.right);
    std::swap(of.m, of.n);
  } else {
    of.right_along_n = true;
  }
}

// The left factor is computed where it is read. As a product's right one it is brought to shared memory once;
// as the left one Triton brings all that it loads there, for each of them.
bool is_left_computed(const Graph& graph, const Node& node, const Expr& body) {
  if (node.window_factor)
    return graph.exprs.below(body.args[0]).size() > graph.exprs.below(body.args[1]).size();
  return node.direct && products_of(graph, node, 0) > products_of(graph, node, 1);
}

}  // namespace

std::optional<Contraction> as_contraction(const Graph& graph, const TileKernel& kernel) {
  const Member& first = kernel.members.front();
  if (!is_contraction(graph, graph.nodes[static_cast<size_t>(first.node)])) return std::nullopt;
  const Expr& body = graph.exprs[first.body];
  Contraction found{.left = body.args[0], .right = body.args[1]};
  if (is_left_computed(graph, graph.nodes[static_cast<size_t>(first.node)], body))
    std::swap(found.left, found.right);
  for (size_t d = 0; d < kernel.rows.size(); ++d) {
    const auto dim = static_cast<int>(d);
    const bool left = graph.exprs.uses(found.left, dim), right = graph.exprs.uses(found.right, dim);
    (left == right ? (left ? found.batch : found.m) : left ? found.m : found.n).push_back(dim);
  }
  sort_factors(graph, kernel, found);
  return found;
}

std::pair<std::vector<std::string>, std::vector<std::string>> loop_halves(ExprWriter& write) {
  write.end_loop("#");
  std::vector<std::string> before, body;
  bool inside = false;
  for (auto& line : write.take_lines()) {
    if (line == "#") {
      inside = true;
      continue;
    }
    (inside ? body : before).push_back(std::move(line));
  }
  return {before, body};
}

}  // namespace nereid::compiler
