// Parts of kernels' texts that all writers share: their heads, names of their steps, grids.
#include <fmt/ranges.h>

#include <algorithm>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/helpers.h"

namespace nereid::compiler {

std::string blocks_text(const Size& count, int64_t block) {
  if (count == 1) return "";
  return block == 1 ? count.text(Size::Place::kTerm)
                    : fmt::format("triton.cdiv({}, {})", count.text(), block);
}

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const auto& each : factors)
    if (!each.empty() && each != "1") text += (text.empty() ? "" : " * ") + each;
  return text.empty() ? "1" : text;
}

std::vector<StepWord> step_words_of(const Graph& graph, const TileKernel& kernel) {
  std::vector<StepWord> work;
  const auto add = [&](const StepWord& word) {
    if (std::ranges::find(work, word) == work.end()) work.push_back(word);
  };
  for (const Member& member : kernel.members) {
    const Node& node = graph.nodes[static_cast<size_t>(member.node)];
    for (const auto& word : node.before) add(word);
    add(node.word());
  }
  std::ranges::stable_sort(work, {}, &StepWord::step);
  return work;
}

std::vector<std::string> words_of(const Graph& graph, const TileKernel& kernel) {
  std::vector<std::string> words;
  for (const auto& [step, word] : step_words_of(graph, kernel))
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  return words;
}

namespace {

bool of_a_reduction(const Graph& graph, ExprId id) {
  return std::ranges::any_of(graph.exprs.below(id), [&](ExprId under) {
    const Expr& load = graph.exprs[under];
    const Node* maker = load.kind == Expr::Kind::kLoad ? graph.maker(load.tensor) : nullptr;
    return maker != nullptr && maker->reduction != Reduction::kNone;
  });
}

// Whether what it computes must be what another kernel, or another line of its own, computes of the same, to
// the last bit: extrema, and the distance from what a reduction gave.
bool rounds_products(const Graph& graph, const TileKernel& kernel) {
  const auto product = [&](ExprId id) {
    return std::ranges::any_of(graph.exprs.below(id), [&](ExprId under) {
      const Expr& expr = graph.exprs[under];
      return expr.kind == Expr::Kind::kApply &&
             (expr.fn == Fn::kMul || expr.fn == Fn::kDiv || expr.fn == Fn::kDivExact);
    });
  };
  const auto distance = [&](ExprId id) {
    const Expr& expr = graph.exprs[id];
    return expr.kind == Expr::Kind::kApply && expr.fn == Fn::kSub &&
           ((product(expr.args[0]) && of_a_reduction(graph, expr.args[1])) ||
            (product(expr.args[1]) && of_a_reduction(graph, expr.args[0])));
  };
  return std::ranges::any_of(kernel.members, [&](const Member& member) {
    const auto& flash = graph.nodes[static_cast<size_t>(member.node)].flash;
    if (flash) return product(flash->score);
    const bool sums = member.reduction == Reduction::kNone || member.reduction == Reduction::kSum ||
                      member.reduction == Reduction::kProd;
    return (!sums && product(member.body)) || std::ranges::any_of(graph.exprs.below(member.body), distance);
  });
}

}  // namespace

void close_kernel(KernelText& kernel, const Graph& graph, const KernelNames& names, const TileKernel& of,
                  const std::vector<std::string>& lines) {
  std::vector<std::string> parameters;
  for (const auto& [name, tensor] : names.pointers) {
    kernel.pointers.push_back({name, tensor});
    parameters.push_back(name);
  }
  if (kernel.steps > 0) parameters.emplace_back("step");
  for (const auto& constant : kernel.constants) parameters.push_back(constant.name + ": tl.constexpr");
  kernel.comment = fmt::format("{}", fmt::join(words_of(graph, of), ", "));
  kernel.fused_multiply_add = !rounds_products(graph, of);
  const std::string head = fmt::format("def {}({}):", kernel.name, fmt::join(parameters, ", "));
  const char* jit = kernel.steps > 0 ? "@triton.jit(do_not_specialize=[\"step\"])" : "@triton.jit";
  kernel.text = fmt::format("{}\n{}\n    # {}\n", jit, head, kernel.comment);
  // Divisions of numbers that may be negative are narrowed to 8 bits and packed by two, where ptxas 12.8 to
  // 13.0 loses constants (docs/compiler.md, "Divisions of sums"); those of others are shifts and masks.
  for (const auto& line : lines) {
    kernel.text += "    " + line + "\n";
    const auto start = std::ranges::find(names.starts, line, &std::pair<std::string, std::string>::first);
    if (names.divides_sums && start != names.starts.end())
      kernel.text += fmt::format("    tl.assume({} >= 0)\n", start->second);
  }
  for (const auto& helper : function_helpers())
    if (kernel.text.find(helper + "(") != std::string::npos) kernel.helpers.push_back(helper);
}

void spread(std::vector<Index>& by, const Extents& sizes, const std::vector<int>& dims, int dimension,
            const Extents& extents) {
  Extents own;
  for (const int d : dims) own.push_back(sizes[static_cast<size_t>(d)]);
  const auto parts = unravel(Index::dimension(dimension), own, extents);
  for (size_t i = 0; i < dims.size(); ++i)
    by[static_cast<size_t>(dims[i])] = own[i] == 1 ? Index() : parts[i];
}

}  // namespace nereid::compiler
