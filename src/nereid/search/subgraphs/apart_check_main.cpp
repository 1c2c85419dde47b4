// nereid-apart-check TRACE SOURCE: the traced forward of a task's source with all its steps in simpler ones
// (render/apart), as one JSON object: `text`, a file with ModelNew in which PyTorch does these steps;
// `questions`, what a search asks a model about; `operators`, of these steps. Exit code 1: there are none.
#include <fmt/format.h>

#include <cstdio>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/render/apart/steps_apart.h"
#include "nereid/search/subgraphs/partitioner.h"
#include "nereid/trace/format/codec.h"
#include "nereid/verify/analysis/kernel_library.h"

namespace nereid::search {
namespace {

Result<Json> check(const std::string& trace_path, const std::string& source_path) {
  verify::KernelLibrary library;
  Task task, apart;
  NEREID_TRY(task.source, read_file(source_path));
  NEREID_TRY(const std::string bytes, read_file(trace_path, JsonLimits{}.max_bytes));
  NEREID_TRY(task.trace, trace::parse(bytes, trace_path));
  NEREID_TRY(task.facts, verify::analyze_trace(task.trace, library));
  NEREID_TRY(const Partitioner whole, Partitioner::cut(task));
  auto trace =
      render::steps_apart(task.trace, static_cast<size_t>(task.facts.judged()), whole.steps_of(whole.all()));
  if (!trace) return input_error("no step has a simpler form");
  apart.source = task.source, apart.trace = *std::move(trace);
  NEREID_TRY(apart.facts, verify::analyze_trace(apart.trace, library));
  NEREID_TRY(const Partitioner partitioner, Partitioner::cut(apart));
  std::vector<Subgraph> nodes;
  for (size_t n = 0; n < partitioner.nodes(); ++n) nodes.push_back(partitioner.alone(n));
  std::vector<Piece> pieces;
  Json questions = Json::array(), operators = Json::array();
  for (size_t n = 0; n < partitioner.nodes(); ++n) {
    pieces.push_back({.subgraph = &nodes[n]});
    if (partitioner.computes(n)) questions.push_back(nodes[n].source);
    for (const size_t step : partitioner.steps_of(nodes[n].nodes))
      operators.push_back(
          std::get<trace::Call>(apart.trace.phases[static_cast<size_t>(apart.facts.judged())].steps[step])
              .op);
  }
  NEREID_TRY(const std::string text, partitioner.compose(pieces));
  return Json{{"text", text}, {"questions", questions}, {"operators", operators}};
}

}  // namespace
}  // namespace nereid::search

int main(int count, char** arguments) {
  if (count != 3) return std::fputs("usage: nereid-apart-check TRACE SOURCE\n", stderr), 2;
  const auto found = nereid::search::check(arguments[1], arguments[2]);
  if (!found.ok()) return fmt::print(stderr, "{}\n", found.error().message), 1;
  fmt::print("{}\n", found->dump());
  return 0;
}
