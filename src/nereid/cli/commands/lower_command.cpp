#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/module_flags.h"
#include "nereid/cli/output.h"
#include "nereid/cli/traced.h"
#include "nereid/cli/version.h"
#include "nereid/compiler/module.h"
#include "nereid/compiler/output/guard.h"
#include "nereid/render/line_breaks.h"
#include "nereid/trace/format/codec.h"
#include "nereid/trace/notation.h"
#include "nereid/tracer/tracer.h"

namespace nereid::cli {
namespace {

constexpr const char* kLowerExamples = R"(Examples:
  nereid lower model.py -o fast.py         class Model as ModelNew, in Triton
  nereid verify model.py fast.py           judge the result
  nereid lower tasks/*.py -o fast/         many files

A call that the kernels were not written for (another shape, dtype, stride, mode or argument, a gradient)
raises NotVerified; with --fallback it runs the original forward. Operators without a kernel stay PyTorch's;
the plan at the top of the file lists them. Exit code 1: a file could not be traced or lowered; the reason is
printed.)";

struct LowerOptions {
  std::vector<std::string> files;
  std::string output, target = "sm_90";
  bool fallback = false;
  ModuleFlags module;
};

using Written = std::variant<compiler::Module, std::string>;  // or why there is none

// Whether the reference's forward is another one in the other mode.
bool mode_matters(tracer::Tracer& tracer, tracer::TraceRequest request, trace::Trace trace) {
  request.source = compiler::in_other_mode(request.source, "Model");
  auto answer = tracer.trace(request, Deadline::after(330));
  auto* other = answer.ok() ? std::get_if<trace::Trace>(&*answer) : nullptr;
  if (other == nullptr) return true;
  trace.seconds = other->seconds = 0;
  return trace::serialize(trace) != trace::serialize(*other);
}

Result<Written> lower_file(tracer::Tracer& tracer, const std::string& file, const LowerOptions& options,
                           const compiler::Guard& guard) {
  tracer::TraceRequest request;
  NEREID_TRY(request.source, read_module(file, options.module));
  request.path = std::filesystem::path(file).filename().string();
  request.class_name = "Model";
  NEREID_TRY(tracer::TraceAnswer answer, tracer.trace(request, Deadline::after(330)));
  const Traced found = traced(std::move(answer), file);
  if (const auto* none = std::get_if<NoTrace>(&found)) return Written(none->text);
  const auto& trace = std::get<trace::Trace>(found);
  auto module = compiler::lower_module(trace, request.source, {.target = options.target});
  if (!module.ok()) return Written(module.error().message);
  const compiler::Assumptions assumptions{.reference = trace,
                                          .candidate = trace,
                                          .modes = mode_matters(tracer, request, trace),
                                          .fallback = options.fallback ? request.source : "",
                                          .direct = true};
  auto guarded = guard.around(module->text, assumptions);
  if (!guarded.ok()) return Written(guarded.error().message);
  std::istringstream lines(
      fmt::format("Written by `nereid lower` (nereid {}) for {}; not verified: `nereid verify` does.\n{}",
                  NEREID_VERSION, request.path, compiler::assumptions_text(assumptions)));
  std::string head;
  for (std::string line; std::getline(lines, line);) head += "# " + trace::safe_text(line) + "\n";
  module->text = render::with_line_breaks(head);
  module->text += "\n" + *guarded;
  return Written(*std::move(module));
}

Status write(const LowerOptions& options, const std::string& file, const std::string& text) {
  if (options.output.empty()) return write_stdout(text);
  std::filesystem::path path = options.output;
  if (options.files.size() > 1 || std::filesystem::is_directory(path)) {
    std::filesystem::create_directories(path);
    path /= std::filesystem::path(file).filename();
  }
  NEREID_TRY_STATUS(is_not("-o", path.string(), file));
  return write_file_atomically(path, text);
}

Result<Answer> run(const LowerOptions& options, bool json) {
  if (options.files.size() > 1 && options.output.empty())
    return input_error("{} files need a folder: -o FOLDER", options.files.size());
  if (options.files.size() == 1 && !options.output.empty() && !std::filesystem::is_directory(options.output))
    NEREID_TRY_STATUS(can_be_written("-o", options.output));
  NEREID_TRY(const Installation installation, Installation::locate());
  Progress progress("lowering");
  NEREID_TRY(auto tracer, tracer::Tracer::start({.installation = installation, .workers = 1, .limits = {}}));
  NEREID_TRY([[maybe_unused]] const compiler::Target target, compiler::target_named(options.target));
  NEREID_TRY(const compiler::Guard guard, compiler::Guard::read(installation.package));
  Answer answer = Answer::kYes;
  for (const auto& file : options.files) {
    Result<Written> made = lower_file(*tracer, file, options, guard);
    // Of several files one that cannot be read does not end the others'.
    if (!made.ok() && options.files.size() > 1 && made.error().blame == Blame::kInput)
      made = Written(made.error().message);
    NEREID_TRY(const Written written, std::move(made));
    Json line = {{"file", file}};
    if (const auto* why = std::get_if<std::string>(&written)) {
      fmt::print(stderr, "nereid: {}: {}\n", printable(file), printable(*why, Lines::kMany));
      line["not_lowered"] = *why;
      answer = Answer::kNo;
    } else {
      const auto& module = std::get<compiler::Module>(written);
      line["kernels"] = Json::array();
      for (const auto& kernel : module.kernels)
        line["kernels"].push_back({{"name", kernel.function},
                                   {"does", kernel.does},
                                   {"choice", compiler::to_string(kernel.choice)},
                                   {"bytes", kernel.estimate.bytes_read + kernel.estimate.bytes_written},
                                   {"flops", kernel.estimate.flops},
                                   {"seconds", kernel.estimate.seconds}});
      line["kept"] = module.kept;
      line["plan"] = module.plan;
      if (json && options.output.empty())
        line["code"] = module.text;
      else
        NEREID_TRY_STATUS(write(options, file, module.text));
    }
    if (json) NEREID_TRY_STATUS(write_stdout(line.dump() + "\n"));
  }
  return answer;
}

}  // namespace

void add_lower_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("lower", "Write a module as fused Triton kernels");
  command->footer(kLowerExamples);
  auto options = std::make_shared<LowerOptions>();
  command->add_option("FILE", options->files, "Python files with class Model")->required();
  command->add_option("-o,--output", options->output,
                      "File for ModelNew, or a folder for several inputs (default: stdout)");
  add_module_flags(*command, options->module);
  command->add_option("--target", options->target, "GPU of the cost model: sm_80, sm_90 (default), sm_100");
  command->add_flag("--fallback", options->fallback,
                    "Include the original forward, and run it for other shapes, on a CPU and with gradients");
  add_json_flag(
      *command, chosen,
      "Print one JSON object per file: file, kernels, kept, plan, code (without -o), or not_lowered");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
