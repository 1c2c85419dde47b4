#include "nereid/dataset/weak_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/program/interrupt.h"

namespace nereid::dataset {
namespace {

constexpr int kTrials = 3, kMaxTrials = 12;  // the latter where the former might be chance

// Of an output: in how many trials it was one number, and in how many but the first what it was in the first.
struct Seen {
  int constant = 0, same = 0;
};
constexpr double kUsually = 0.75;

}  // namespace

Result<std::string> why_weak(const verify::VerifierBackends& backends, const trace::Trace& reference,
                             uint64_t seed) {
  const Deadline deadline = Deadline::after(600);
  NEREID_TRY(const auto session, backends.replay(reference, reference, {.threads = 1}, deadline));
  std::vector<Seen> seen;
  bool suspicious = false;
  int trials = 0;
  for (int trial = 0; trial < (suspicious ? kMaxTrials : kTrials); ++trial, ++trials) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    NEREID_TRY(
        const auto report,
        session->trial({.seed = seed + static_cast<uint64_t>(trial), .perturb = false, .sanitize = false}, {},
                       deadline));
    const auto& failed = report.reference_failed ? report.reference_failed : report.failed;
    if (failed) return input_error("the task fails: {} ({})", failed->message, describe(failed->where));
    if (!report.comparison) return our_error("a replay ended without a comparison");
    const auto& outputs = report.comparison->outputs;
    seen.resize(outputs.size());
    suspicious = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].elements > 0 && outputs[i].undefined == outputs[i].elements)
        return fmt::format("{} is not finite", outputs[i].path);
      seen[i].constant += outputs[i].constant ? 1 : 0;
      seen[i].same += outputs[i].insensitive ? 1 : 0;
      const auto usually = [&](int times, int of) { return times >= kUsually * of; };
      suspicious =
          suspicious || usually(seen[i].constant, trial + 1) || (trial > 0 && usually(seen[i].same, trial));
    }
  }
  for (const Seen& output : seen) {
    if (output.constant >= kUsually * trials)
      return std::string("the reference gives the same number everywhere");
    if (output.same >= kUsually * (trials - 1))
      return std::string("the reference's outputs do not change with its inputs");
  }
  return std::string();
}

Result<std::vector<Checked>> check_tasks(verify::VerifierProcesses& processes,
                                         const std::vector<std::string>& sources, uint64_t seed) {
  constexpr double kTraceSeconds = 60;
  std::vector<tracer::TraceRequest> requests;
  for (const auto& source : sources)
    requests.push_back({.source = source, .draw = seed & 0x7fffffff, .seconds = kTraceSeconds});
  NEREID_TRY(const auto answers, processes.tracer().trace_several(requests, Deadline::never()));
  const verify::VerifierBackends backends = processes.backends();
  std::vector<Checked> checked;
  for (const auto& answer : answers) {
    checked.emplace_back();
    const auto* trace = std::get_if<trace::Trace>(&answer);
    if (trace == nullptr) {
      checked.back().trouble = "it could not be traced";
      continue;
    }
    auto weak = why_weak(backends, *trace, seed);
    if (!weak.ok() && weak.error().blame != Blame::kInput) return weak.error();
    (weak.ok() ? checked.back().weak : checked.back().trouble) = weak.ok() ? *weak : weak.error().message;
  }
  return checked;
}

}  // namespace nereid::dataset
