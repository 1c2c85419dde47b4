// Training pairs: tasks with verified answers, a plan in words and the code.
//
// A group of programs at a time: what is judged of them is traced in one child, then all that the compiler
// writes for it in another, then each is judged. What is not judged is traced without Python
// (synth/traced.h), where its operators allow it. Everything a line says follows from the seed, the program's
// number and the options, whatever the group and the number of threads.
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/dataset/variants.h"
#include "nereid/synth/sample/maker.h"
#include "nereid/verify/stages/pipeline.h"
#include "nereid/verify/stages/verifier_processes.h"

namespace nereid::dataset {

struct Options {
  int variants = 4;  // of each task at most: the compiler's own answer and others
  int wordings = 4;  // of each variant
  bool brief =
      false;  // one short plan instead; some tasks are written as subgraphs are (whole_task_subgraph.h)
  uint64_t seed = 0;
  verify::Policy policy = verify::Policy::kStrict;
  int trials = 3;
  uint64_t verify_every =
      1;  // of the programs, by their number; 0: none; what is made of the others has no verdict
};

// What one program gave.
struct Yield {
  std::vector<std::string> lines;           // each a JSON object: a pair, verified where it has a verdict
  std::map<std::string, int64_t> verdicts;  // of variants, by verdict kind
  bool traced_by_python = false;            // for there is no other way to trace it
  std::string not_lowered;                  // why there was no variant at all
  std::string degenerate;     // why the task is weak, as its replays showed; nothing is written of it then
  std::string first_refused;  // the verdict in prose of the first variant that was not verified, with its id
};

class PairMaker {
 public:
  // `bench` was opened for candidates of one author.
  PairMaker(verify::VerifierProcesses& processes, const Options& options);

  // One Yield for each program, with `about` (length, hash, ...) in each of its lines. An Error is a fault of
  // ours, or an interrupt. Thread-safe.
  Result<std::vector<Yield>> make(const std::vector<synth::Made>& programs,
                                  const std::vector<nlohmann::json>& about);

 private:
  struct Task;
  Result<tracer::TraceAnswer> trace(const tracer::TraceRequest& request, Deadline deadline);
  Status trace_references(std::vector<Task>& tasks);
  Status make_subgraph_task(Task& task);
  Result<std::vector<Variant>> variants(const Task& task, const trace::Trace& trace) const;
  Status compare_with_own_trace(const Task& task) const;
  Status trace_variants(std::vector<Task>& tasks);
  bool is_judged(const Task& task) const;
  Status write(Task& task);

  verify::VerifierProcesses& processes_;
  const Options options_;
  const verify::VerifierBackends backends_;
  std::mutex mutex_;
  std::map<std::string, tracer::TraceAnswer> traced_;  // made and not yet asked for by the judge
  verify::Judge judge_;
};

}  // namespace nereid::dataset
