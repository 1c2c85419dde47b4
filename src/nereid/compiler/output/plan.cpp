#include "nereid/compiler/output/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "nereid/trace/cost.h"
#include "nereid/trace/notation.h"

namespace nereid::compiler {
namespace {

using trace::quantity_text;

// "1 program", "256 programs".
template <typename Count>
std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string shape(const Extents& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

// Lines of at most `width` characters.
std::string wrapped(const std::string& text, const std::string& indent, size_t width = 108) {
  std::string lines, line, word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    word.clear();
  }
  return lines + line + "\n";
}

std::string why(const Graph& graph, const TileKernel& kernel, const LoweredKernel& lowered) {
  if (graph.nodes[static_cast<size_t>(kernel.members[0].node)].flash)
    return "softmax(q k) v in one pass over the keys; its scores are never stored";
  if (graph.nodes[static_cast<size_t>(kernel.members[0].node)].recurrence)
    return fmt::format(
        "{}: the hidden state times its weights, the gates and the next state; what the inputs "
        "give was computed for all steps at once",
        lowered.steps > 0 ? "one launch a step" : "all steps in one launch");
  const bool contraction = lowered.choice.m > 0;
  const bool reduces =
      std::ranges::any_of(kernel.members, [](const Member& m) { return m.reduction != Reduction::kNone; });
  const bool several =
      kernel.members.size() > 1 || !graph.nodes[static_cast<size_t>(kernel.members[0].node)].before.empty();
  if (std::ranges::any_of(kernel.members, [](const Member& m) { return !m.across.empty(); }))
    return "what follows is computed and reduced on the tile that is still in registers";
  if (contraction && std::ranges::count_if(
                         kernel.members, [](const Member& m) { return m.reduction != Reduction::kNone; }) > 1)
    return "its loop also adds up what its factors are made of";
  if (contraction)
    return several ? "what follows element by element is computed on the tile that is still in registers"
                   : "a product of tiles";
  if (reduces && kernel.members.size() > 1)
    return "all of it needs the same rows, which are read into registers once";
  if (reduces)
    return several ? "the elements are computed as they are reduced, and never stored"
                   : "a reduction of rows";
  if (kernel.members.size() > 1) return "maps of one shape: one launch, and what they share is loaded once";
  return several ? "a chain of maps: nothing between them is stored" : "a map";
}

std::string cut(const Graph& graph, const TileKernel& kernel, const LoweredKernel& lowered) {
  const KernelChoice& c = lowered.choice;
  const auto programs = counted(lowered.programs, "program");
  const auto with_warps = fmt::format("{} of {}", programs, counted(c.warps, "warp"));
  const auto precision = c.precision.empty() ? "" : ", products in " + c.precision;
  if (c.m > 0 && c.k == 0)
    return fmt::format("{} queries a program, {} keys at a time of {}, {}{}", c.m, c.n, kernel.columns[0],
                       with_warps, precision);
  if (graph.nodes[static_cast<size_t>(kernel.members[0].node)].recurrence)
    return fmt::format("{} samples by {} units a program, {}", c.m, c.n, with_warps);
  if (c.m > 0)
    return fmt::format("tiles of {} x {} in steps of {} over {}, {}{}", c.m, c.n, c.k, kernel.column_count(),
                       with_warps, precision);
  if (kernel.columns.empty()) return fmt::format("{} a program, {}", counted(c.rows, "element"), programs);
  const bool maps =
      std::ranges::all_of(kernel.members, [](const Member& m) { return m.reduction == Reduction::kNone; });
  if (maps)
    return fmt::format("tiles of {} x {} of {} x {}, {}", c.rows, c.columns, kernel.row_count(),
                       kernel.column_count(), programs);
  if (c.persistent)
    return fmt::format("{} of a row's {} a program, {}, which exchange what they reduce", c.columns,
                       kernel.column_count(), programs);
  const bool looped = c.columns < kernel.column_count();
  return fmt::format("{} of {} a program{}, {}", counted(c.rows, "row"), kernel.column_count(),
                     looped ? fmt::format(", {} at a time", c.columns) : "", programs);
}

}  // namespace

std::string plan_text(const trace::Trace& trace, const Graph& graph, const Fused& fused, const Module& module,
                      const Target& target) {
  const auto before = trace::totals_of(trace::costs_of(trace, trace.phases.back(), {}));
  double bytes = 0, flops = 0;
  for (const auto& kernel : module.kernels) {
    bytes += kernel.estimate.bytes_read + kernel.estimate.bytes_written;
    flops += kernel.estimate.flops;
  }
  std::string text = fmt::format("{} in Triton, written by `nereid lower` for {} ({}).\n\nPlan\n",
                                 trace.class_name, target.name, target.example);
  text += wrapped(
      fmt::format("PyTorch runs {} that move{} {} and compute{} {}. Here {} move{} {} and compute{} {}.",
                  counted(before.calls, "operator"), before.calls == 1 ? "s" : "",
                  quantity_text(before.all().bytes(), "B"), before.calls == 1 ? "s" : "",
                  quantity_text(before.all().flops, "FLOP"), counted(module.kernels.size(), "kernel"),
                  module.kernels.size() == 1 ? "s" : "", quantity_text(bytes, "B"),
                  module.kernels.size() == 1 ? "s" : "", quantity_text(flops, "FLOP")),
      "");
  std::map<std::string, int> launches;  // of a function, which several kernels may share
  for (const auto& kernel : module.kernels) ++launches[kernel.function];
  size_t next = 0, k = 0;
  for (const TileKernel& kernel : fused.kernels) {
    if (kernel.kept >= 0) continue;
    const LoweredKernel& lowered = module.kernels[next++];
    const int times = std::exchange(launches[lowered.function], 0);
    if (times == 0) continue;  // described by the first that shares it
    ++k;
    const Node& first = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
    const std::string over = kernel.columns.empty()
                                 ? shape(kernel.rows)
                                 : fmt::format("{} by {}", shape(kernel.rows), shape(kernel.columns));
    text += wrapped(
        fmt::format("{}. {}: {}{}, over {}: {}. {}; reads {}, writes {}, {}.{}", k, lowered.function,
                    lowered.does, first.place.file.empty() ? "" : fmt::format(" (line {})", first.place.line),
                    over, why(graph, kernel, lowered), cut(graph, kernel, lowered),
                    quantity_text(lowered.estimate.bytes_read, "B"),
                    quantity_text(lowered.estimate.bytes_written, "B"),
                    quantity_text(lowered.estimate.flops, "FLOP"),
                    times == 1 ? "" : fmt::format(" Launched {} times on other tensors.", times)),
        "   ");
  }
  if (module.kernels.empty() && module.kept.empty() && module.draws.empty())
    text +=
        wrapped("All that forward returns are views of what it is given: there is nothing to launch.", "   ");
  for (const auto& rewrite : graph.rewrites) text += wrapped("Rewritten: " + rewrite + ".", "   ");
  if (!module.draws.empty())
    text += wrapped(fmt::format("Drawn by PyTorch from the same stream, without operands: {}.",
                                fmt::join(module.draws, ", ")),
                    "   ");
  for (const auto& kept : module.kept)
    text += wrapped(fmt::format("Left to PyTorch: {}; there is no kernel for it here.", kept), "   ");
  return text;
}

}  // namespace nereid::compiler
