// What the verification pipeline calls: processes in production (verifier_processes.h), scripts in tests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/replay/host/client.h"
#include "nereid/tracer/tracer.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

// The machine code that a CUDA replay launches.
struct CompiledKernels {
  std::map<std::string, std::string> kernels{};  // by trace::Kernel::hash, for replay::SessionOptions
  std::map<std::string, std::string> refused{};  // likewise: why there is none
};

// What the pipeline's stages call. All functions are called from several threads.
struct VerifierBackends {
  std::function<Result<tracer::TraceAnswer>(const tracer::TraceRequest&, Deadline)> trace;
  std::function<Result<std::unique_ptr<replay::Session>>(
      const trace::Trace& reference, const trace::Trace& candidate, const replay::SessionOptions&, Deadline)>
      replay;
  // What the rules need to know of a trace; an Error where a kernel cannot be read.
  std::function<Result<TraceAnalysis>(const trace::Trace&)> analyze;
  // Every kernel of the trace, for the present GPU or that of Settings::compile_for.
  std::function<Result<CompiledKernels>(const trace::Trace&, Deadline)> compile{};
  // Whether Triton's own compiler takes a kernel's text, asked where our parser does not: the fault is then
  // ours.
  std::function<Result<bool>(const trace::Kernel&)> triton_reads{};
  // The isolation layers of each process that a candidate reaches: see Verdict::isolation.
  std::function<std::map<std::string, std::string>(replay::Device)> isolation{};
};

}  // namespace nereid::verify
