#include "nereid/compiler/codegen/products/few_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/compiler/codegen/factor_block.h"
#include "nereid/compiler/codegen/tiles/product_results.h"

namespace nereid::compiler {
namespace {

// A block of a factor as it is multiplied; beyond the last k one of the two is zero and the other finite.
std::string block_value(ExprWriter& write, const Graph& graph, ExprId body, bool masked) {
  const ExprId bare = bare_load(graph, body).value_or(body);
  std::string value = write.value(bare);
  const bool zero_beyond = graph.exprs[bare].kind == Expr::Kind::kLoad && graph.exprs.uses(bare, kK);
  return zero_beyond || !masked
             ? value
             : write.let("element", fmt::format("tl.where({}, {}, 0.0)", write.mask_of({kK}), value));
}

}  // namespace

bool has_few_rows(const Graph& graph, ExprId left, ExprId right, int64_t m, int64_t n, int64_t k) {
  const int64_t few = std::min(m, n);
  if (few < 2 || few > kMostFewRows || std::max(m, n) < kManyRows || k < kLongFewRows) return false;
  const bool of_right = n > m;
  const ExprId matrix = of_right ? right : left;
  if (graph.exprs[bare_load(graph, matrix).value_or(matrix)].kind != Expr::Kind::kLoad) return false;
  for (const ExprId factor : {left, right})
    if (graph.exprs[factor].type != DType::kF32) return false;
  const FactorBlock block = factor_block(graph, matrix, !of_right, of_right ? kN : kM, kK);
  return block.flat && block.along_k;
}

void write_few_rows(ExprWriter& write, Graph& graph, KernelNames& names,
                    const std::vector<BlockDimension>& dimensions, const FewRows& of) {
  const bool of_right = of.n > of.m;
  const int few = of_right ? kM : kN, many = of_right ? kN : kM;
  const int64_t count = std::min(of.m, of.n);
  const char* block = of_right ? "BLOCK_N" : "BLOCK_M";
  const ExprId matrix = of_right ? of.right : of.left, rows = of_right ? of.left : of.right;
  std::vector<std::string> sums;
  for (int64_t row = 0; row < count; ++row) {
    sums.push_back(names.fresh(fmt::format("sum_{}", row)));
    write.line(fmt::format("{} = tl.zeros([{}, BLOCK_K], tl.float32)", sums.back(), block));
  }
  const std::string own = names.fresh("row");
  write.line(fmt::format("{} = first_{} + tl.arange(0, {})[:, None]", own, of_right ? "n" : "m", block));
  std::vector<std::string> loads, products;
  for (int ahead = 0; ahead < kBlocksAhead; ++ahead) {
    std::vector<BlockDimension> here = dimensions;
    here[kK].name = names.fresh(fmt::format("k_{}", ahead));
    here[kK].exact = of.exact;
    here[static_cast<size_t>(many)].name = own;
    ExprWriter element(graph, names, here);
    element.begin_loop({kK});
    element.line(fmt::format(
        "{} = start + {}tl.arange(0, BLOCK_K)[None, :]", here[kK].name,
        ahead == 0 ? "" : fmt::format("{}BLOCK_K + ", ahead == 1 ? "" : fmt::format("{} * ", ahead))));
    const std::string x = block_value(element, graph, matrix, !of.exact);
    auto [before, body] = loop_halves(element);
    for (const auto& each : before) write.line(each);
    loads.insert(loads.end(), body.begin(), body.end());
    ExprWriter row_of(graph, names, here);
    row_of.begin_loop({kK});
    for (int64_t row = 0; row < count; ++row) {
      std::vector<Index> by;
      for (size_t d = 0; d < here.size(); ++d) by.push_back(Index::dimension(static_cast<int>(d)));
      by[static_cast<size_t>(few)] = Index(row);
      const ExprId one = graph.exprs.substitute(rows, by, row_of.extents());
      const std::string y = block_value(row_of, graph, one, !of.exact);
      row_of.line(fmt::format("{} += {} * {}", sums[static_cast<size_t>(row)], x, y));
    }
    std::tie(before, body) = loop_halves(row_of);
    for (const auto& each : before) write.line(each);
    products.insert(products.end(), body.begin(), body.end());
  }
  write.line(fmt::format("for start in range({}, {}, {} * BLOCK_K):", of.begin, of.end, kBlocksAhead));
  for (const auto* lines : {&loads, &products})
    for (const auto& each : *lines) write.line(each);
  for (int64_t row = 0; row < count; ++row)
    write.line(fmt::format("total = tl.where({} == {}, tl.sum({}, axis=1){}, total)", of_right ? "m" : "n",
                           row, sums[static_cast<size_t>(row)], of_right ? "[None, :]" : "[:, None]"));
}

}  // namespace nereid::compiler
