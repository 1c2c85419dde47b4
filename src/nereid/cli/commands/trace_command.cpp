#include "nereid/cli/commands/trace_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/included_files.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/output.h"
#include "nereid/cli/pages/trace_graph.h"
#include "nereid/cli/pages/trace_page.h"
#include "nereid/cli/traced.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/trace/format/codec.h"
#include "nereid/trace/notation.h"
#include "nereid/tracer/tracer.h"
#include "nereid/verify/analysis/kernel_library.h"

namespace nereid::cli {
namespace {

constexpr const char* kTraceExamples = R"(Examples:
  nereid trace model.py                              what get_inputs, __init__ and forward do
  nereid trace mine.py --reference model.py          a candidate (ModelNew), with the reference's inputs
  nereid trace model.py -o model.trace               write the trace to a file
  nereid trace model.trace --json | jq .flops        a written trace as JSON
  nereid trace model.py --summary                    the steps of forward in the notation of plans
  nereid trace model.py --graph | dot -Tsvg -o m.svg the data flow of forward as a picture

A file runs in a sandbox, without data and without a GPU. The trace records its PyTorch operators and Triton
launches. Exit code 1: it could not be traced; the reason is printed.)";

struct TraceOptions {
  ModuleFlags module;  // of the reference, where there is one
  std::string file, reference, output;
  uint64_t draw = 0;
  double seconds = 30;
  bool graph = false, all = false, summary = false;
};

Result<Traced> trace_source(tracer::Tracer& tracer, const TraceOptions& options, const std::string& file,
                            const std::string& class_name, std::string source,
                            const trace::Trace* reference) {
  tracer::TraceRequest request;
  request.source = std::move(source);
  request.path = std::filesystem::path(file).filename().string();
  request.class_name = class_name;
  request.draw = options.draw;
  request.reference = reference;
  request.seconds = options.seconds;
  NEREID_TRY(tracer::TraceAnswer answer, tracer.trace(request, Deadline::after(options.seconds + 300)));
  return traced(std::move(answer), file);
}

Result<Traced> obtain(const TraceOptions& options) {
  NEREID_TRY(const std::string bytes, read_file(options.file, JsonLimits{}.max_bytes));
  if (std::filesystem::path(options.file).extension() != ".py" && trace::looks_like_trace(bytes)) {
    if (!options.reference.empty()) return input_error("{}: a kept trace needs no --reference", options.file);
    NEREID_TRY(trace::Trace trace, trace::parse(bytes, options.file));
    return Traced(std::move(trace));
  }
  NEREID_TRY(const Installation installation, Installation::locate());
  Progress progress("starting the tracer");
  NEREID_TRY(auto tracer, tracer::Tracer::start({.installation = installation, .workers = 1, .limits = {}}));
  ModuleFlags module = options.module;
  const std::string class_name = module.class_name;
  if (options.reference.empty()) {
    module.alias = false;
    NEREID_TRY(std::string source, read_module(options.file, module));
    return trace_source(*tracer, options, options.file, class_name.empty() ? "Model" : class_name,
                        std::move(source), nullptr);
  }
  module.class_name.clear();
  NEREID_TRY(const std::string task, read_module(options.reference, module));
  NEREID_TRY(Traced reference, trace_source(*tracer, options, options.reference, "Model", task, nullptr));
  if (std::holds_alternative<NoTrace>(reference)) return reference;
  NEREID_TRY(std::string source, read_candidate(options.file, module));
  return trace_source(*tracer, options, options.file, class_name.empty() ? "ModelNew" : class_name,
                      with_files_of(std::move(source), task), &std::get<trace::Trace>(reference));
}

// In the notation of plans; a written trace has no names of arguments.
Result<Answer> print_summary(const trace::Trace& trace, const TraceOptions& options) {
  std::string source;
  if (std::filesystem::path(options.file).extension() == ".py") {
    NEREID_TRY(source, read_file(options.file, JsonLimits{}.max_bytes));
  }
  NEREID_TRY_STATUS(write_stdout(compiler::prefill_summary(trace, source)));
  return Answer::kYes;
}

Result<Answer> run(const TraceOptions& options, bool json) {
  if (!options.output.empty()) NEREID_TRY_STATUS(can_be_written("-o", options.output));
  NEREID_TRY_STATUS(is_not("-o", options.output, options.file));
  NEREID_TRY(const Traced traced, obtain(options));
  if (const auto* none = std::get_if<NoTrace>(&traced)) {
    fmt::print(stderr, "nereid: {}\n", printable(none->text, Lines::kMany));
    if (json) NEREID_TRY_STATUS(write_stdout(json_line(none->json)));
    return Answer::kNo;
  }
  const auto& trace = std::get<trace::Trace>(traced);
  if (!options.output.empty()) {
    NEREID_TRY_STATUS(trace::save(trace, options.output));
    if (!json && !options.graph) return Answer::kYes;
  }
  if (options.summary) return print_summary(trace, options);
  const TraceFacts facts = trace_facts(trace);
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line(trace_json(trace, facts))));
  } else if (options.graph) {
    NEREID_TRY_STATUS(write_stdout(trace_graph(trace, trace.phases.back(), facts.flow)));
  } else {
    const PageOptions page{.terminal = Terminal::of_stdout(), .all = options.all};
    NEREID_TRY_STATUS(write_stdout(trace_page(trace, facts.costs, facts.idle(), page)));
  }
  return Answer::kYes;
}

// What the executor knows of a trace's kernels; of one that it cannot read, the safe side.
class Kernels {
 public:
  explicit Kernels(const trace::Trace& trace) : trace_(trace) {
    verify::KernelLibrary library;
    for (const trace::Kernel& kernel : trace.kernels) read_.push_back(library.read(kernel));
  }
  std::vector<trace::ParameterUse> uses(const trace::Kernel& kernel) const {
    return read_[static_cast<size_t>(&kernel - trace_.kernels.data())].uses;
  }
  trace::Cost cost(const trace::Alternative& alternative, const trace::KernelUses& uses) const {
    trace::Launch launch;
    launch.alternatives.push_back(alternative);
    const trace::Cost bound = trace::bounded_cost(trace_, launch, uses);
    const auto& read = read_[static_cast<size_t>(alternative.kernel)];
    if (read.kernel == nullptr) return bound;
    const ttir::Cost counted = verify::launch_cost(trace_, alternative, *read.kernel);
    if (counted.bytes_read + counted.bytes_written == 0)
      return {.flops = counted.flops,
              .bytes_read = bound.bytes_read,
              .bytes_written = bound.bytes_written,
              .exact = false};
    return {.flops = counted.flops,
            .bytes_read = counted.bytes_read,
            .bytes_written = counted.bytes_written,
            .exact = counted.exact};
  }

 private:
  const trace::Trace& trace_;
  std::vector<verify::ReadKernel> read_;
};

void add_cost(Json& json, const trace::Cost& cost) {
  json["flops"] = cost.flops;
  json["bytes"] = cost.bytes();
}

}  // namespace

std::vector<bool> TraceFacts::idle() const {
  std::vector<bool> idle;
  for (size_t i = 0; i < flow.accesses.size(); ++i)
    idle.push_back(!flow.accesses[i].writes.empty() && !flow.reaches_output[i]);
  return idle;
}

TraceFacts trace_facts(const trace::Trace& trace) {
  const Kernels kernels(trace);
  const trace::KernelUses uses = [&](const trace::Kernel& kernel) { return kernels.uses(kernel); };
  TraceFacts facts;
  for (const trace::Phase& phase : trace.phases)
    facts.costs.push_back(trace::costs_of(
        trace, phase,
        [&](const trace::Trace&, const trace::Alternative& one) { return kernels.cost(one, uses); }));
  facts.flow = trace::follow(trace, trace.phases.back(), uses);
  return facts;
}

Json trace_json(const trace::Trace& trace, const TraceFacts& facts) {
  Json document = trace::encode(trace);
  for (size_t p = 0; p < trace.phases.size(); ++p) {
    Json& phase = document["phases"][p];
    add_cost(phase, trace::totals_of(facts.costs[p]).all());
    for (size_t i = 0; i < facts.costs[p].size(); ++i) {
      Json& step = phase["steps"][i];
      const trace::StepCost& cost = facts.costs[p][i];
      add_cost(step, cost.cost);
      step["exact"] = cost.cost.exact;
      if (!cost.launch) step["class"] = trace::to_string(cost.op_class);
      if (p + 1 == trace.phases.size() && !facts.flow.accesses[i].writes.empty())
        step["reaches_output"] = static_cast<bool>(facts.flow.reaches_output[i]);
    }
  }
  add_cost(document, trace::totals_of(facts.costs.back()).all());
  return document;
}

void add_trace_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command =
      app.add_subcommand("trace", "Show what a module does: its PyTorch operators and Triton launches");
  command->footer(kTraceExamples);
  command->add_option("FILE", options->file, "A reference or candidate (.py), or a trace written with -o")
      ->required();
  command->add_option("-r,--reference", options->reference,
                      "Trace FILE as a candidate, with this reference's inputs");
  add_module_flags(*command, options->module);
  command->get_option("--class")->description("Class to trace (default: Model; of a candidate ModelNew)");
  command->add_option("--draw", options->draw, "Seed of integer inputs (default: 0)");
  command
      ->add_option("--time-limit", options->seconds,
                   "Time limit for tracing a file, in seconds (default: 30)")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", options->output,
                      "Write the trace to this file; print only --json or --graph");
  command->add_flag("--graph", options->graph,
                    "Print the data flow of the last forward call in Graphviz's language");
  command->add_flag(
      "--summary", options->summary,
      "Print the steps of the last forward call in the notation of plans (docs/language_model.md)");
  command->add_flag("--all", options->all, "Print every step of every phase");
  add_json_flag(*command, chosen, "Print one JSON object: phases, kernels, storages, flops, bytes, seconds");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
