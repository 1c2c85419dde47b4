#include "nereid/cli/pages/trace_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "nereid/trace/notation.h"

namespace nereid::cli {
namespace {

using trace::Call;
using trace::Flow;
using trace::Launch;

// In double quotes, as DOT wants it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string step_label(const trace::Trace& trace, const trace::Step& step) {
  if (const auto* call = std::get_if<Call>(&step)) {
    const std::string name = trace::safe_text(call->op);
    return name.starts_with("aten::") ? name.substr(6) : name;
  }
  const auto& one = std::get<Launch>(step).alternatives.front();
  return fmt::format("{} [{}]", trace::safe_text(trace.kernels[static_cast<size_t>(one.kernel)].name),
                     fmt::join(one.grid, ", "));
}

bool moves_data(const trace::StepAccess& access) { return !access.writes.empty(); }

}  // namespace

std::string trace_graph(const trace::Trace& trace, const trace::Phase& phase, const trace::DataFlow& flow) {
  std::string dot = fmt::format(
      "digraph {} {{\n  rankdir=TB; node [fontname=\"Helvetica\", fontsize=10]; edge "
      "[fontname=\"Helvetica\", fontsize=8];\n",
      quoted(trace::safe_text(trace.file + " " + trace.class_name)));
  for (size_t i = 0; i < phase.steps.size(); ++i) {
    if (!moves_data(flow.accesses[i])) continue;  // views and allocations
    const bool launch = std::holds_alternative<Launch>(phase.steps[i]);
    std::string style = launch ? "filled" : "solid";
    if (!flow.reaches_output[i]) style += ",dashed";
    dot += fmt::format("  s{} [shape=box, style=\"{}\", fillcolor=palegreen, label={}];\n", i, style,
                       quoted(step_label(trace, phase.steps[i])));
  }
  std::set<trace::StorageId> before;
  for (const Flow& one : flow.flows)
    if (one.from == Flow::kBefore && before.insert(one.storage).second) {
      const auto role = trace.storages[static_cast<size_t>(one.storage)].role;
      dot += fmt::format("  b{} [shape=ellipse, color={}, label={}];\n", one.storage,
                         role == trace::Role::kInput ? "blue" : "gray",
                         quoted(trace::storage_text(trace, one.storage)));
    }
  const auto outputs = trace::tensors_in(phase.output);
  std::set<trace::ValueId> reported;
  for (const trace::ValueId id : outputs)
    if (reported.insert(id).second)
      dot += fmt::format("  o{} [shape=ellipse, peripheries=2, label={}];\n", id,
                         quoted("output " + trace::shape_text(trace.values[static_cast<size_t>(id)])));
  const auto end = static_cast<int>(phase.steps.size());
  std::set<std::string> edges;
  for (const Flow& one : flow.flows) {
    const std::string from =
        one.from == Flow::kBefore ? fmt::format("b{}", one.storage) : fmt::format("s{}", one.from);
    const std::string to = one.to == end ? fmt::format("o{}", one.value) : fmt::format("s{}", one.to);
    const std::string edge =
        fmt::format("  {} -> {} [label={}];\n", from, to,
                    quoted(trace::shape_text(trace.values[static_cast<size_t>(one.value)])));
    if (edges.insert(edge).second) dot += edge;
  }
  return dot + "}\n";
}

}  // namespace nereid::cli
