// From a pair to a verdict: trace the reference, trace the candidate, read the rules off the traces, replay.
//
// A rung that fails ends the climb with its word. A fault that is not the candidate's (a lost worker, a full
// disk) is tried again once and then told as an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/replay/host/client.h"
#include "nereid/tracer/tracer.h"
#include "nereid/verify/trace_analysis.h"
#include "nereid/verify/pair.h"
#include "nereid/verify/settings.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// The machine code that a CUDA replay launches.
struct CompiledKernels {
  std::map<std::string, std::string> kernels{};  // by trace::Kernel::hash, for replay::SessionOptions
  std::map<std::string, std::string> refused{};  // likewise: why there is none
};

// The outside of the ladder. All of it is called from several threads.
struct VerifierBackends {
  std::function<Result<tracer::TraceAnswer>(const tracer::TraceRequest&, Deadline)> trace;
  std::function<Result<std::unique_ptr<replay::Session>>(
      const trace::Trace& reference, const trace::Trace& candidate, const replay::SessionOptions&, Deadline)>
      replay;
  // What the rules need to know of a trace; an Error where a kernel cannot be read.
  std::function<Result<TraceAnalysis>(const trace::Trace&)> analyze;
  // Every kernel of the trace, for the present GPU or that of Settings::compile_for.
  std::function<Result<CompiledKernels>(const trace::Trace&, Deadline)> compile{};
  // Whether Triton's own compiler takes a kernel's text, asked where we cannot read it: then the fault is
  // ours.
  std::function<Result<bool>(const trace::Kernel&)> triton_reads{};
  // Which walls stand around each kind of process that a candidate reaches: see Verdict::isolation.
  std::function<std::map<std::string, std::string>(replay::Device)> isolation{};
};

struct JudgeState;

class Judge {
 public:
  Judge(VerifierBackends backends, Settings settings);
  ~Judge();

  // Thread-safe. References are traced once for each source. A verdict that came of an interrupt is an Error
  // that says so.
  Verdict judge(const Pair& pair);

  const Settings& settings() const;

 private:
  void judge_into(const Pair& pair, Verdict& verdict);
  void run_stages(const Pair& pair, Verdict& verdict);

  std::unique_ptr<JudgeState> state_;
};

}  // namespace nereid::verify
