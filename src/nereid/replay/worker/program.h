// A trace prepared for one machine: frames, kernels, and which steps matter. Immutable after `prepare`.
//
// What is judged is the last forward. What earlier phases do matters only where it reaches it:
// - module and init make the state; storages they made begin the judged forward as init left them;
// - storages that an earlier forward made without touching that call's inputs (weights packed once) are made
// again;
// - storages that an earlier forward made from its inputs are workspace: a candidate finds them poisoned;
// - but those that every forward has to leave as it found them hold what the earlier ones leave.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "nereid/replay/memory_plan.h"
#include "nereid/replay/report.h"
#include "nereid/replay/worker/machine.h"
#include "nereid/replay/worker/prepared_launch.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// A step that only makes views needs no work: values are made from storages.
struct Nothing {};
using PreparedStep = std::variant<Nothing, PreparedCall, PreparedLaunch>;

struct PreparedPhase {
  const trace::Phase* phase = nullptr;
  std::vector<PreparedStep> steps;
  std::vector<bool> needed;                            // one a step
  std::vector<std::vector<trace::StorageId>> release;  // after each step: storages that no later step reads
  // Before the first step and after each: storages whose contents come from outside then (state by name,
  // pinned integers). Element i + 1 belongs to step i.
  std::vector<std::vector<trace::StorageId>> inject;
};

struct ProgramOptions {
  // A reference that really keeps something of earlier inputs does so by definition; a candidate may not,
  // unless its reference does.
  bool may_keep_inputs = false;
  // A candidate's state that takes the reference's values: put in after the last step of module and init that
  // writes it, so that what init computes from it follows.
  std::vector<trace::ValueId> state_values = {};
  // State that is looked at after the judged forward, where that may write it. A reference's is all.
  std::vector<trace::ValueId> watched = {};
  // State that only the reference's forward could change: see Program::written_before.
  std::vector<trace::ValueId> kept = {};
  // A candidate's: see LeftAsFound.
  std::vector<LeftAsFound> left_as_found = {};
  // State and the judged call's inputs exist when the judged forward begins, needed or not; state may be
  // changed where a candidate's is put in.
  bool reference = false;
  bool every_call = false;  // so do the inputs of all calls, for a candidate whose earlier calls are run
  // What the judged forward begins with goes after its last use, too: it runs once and is begun anew.
  bool spend = false;
};

class Program {
 public:
  // Throws Failed, with `where`, for a step that cannot be prepared. The trace must outlive the program.
  static std::unique_ptr<const Program> prepare(const trace::Trace& trace, Machine& machine,
                                                const ProgramOptions& options);

  const trace::Trace& trace() const { return *trace_; }
  Launcher& launcher() const { return *launcher_; }
  const std::vector<PreparedPhase>& phases() const { return phases_; }
  size_t judged() const { return judged_; }  // the index of the last forward
  int judged_call() const;
  const std::vector<trace::ValueId>& outputs() const { return outputs_; }  // of the judged forward, in order
  // Input storages of the judged call that the judged forward may write by schema (a launch may write
  // anything).
  const std::vector<trace::StorageId>& judged_writes() const { return judged_writes_; }
  // Of what is watched, what the judged forward may write.
  const std::vector<trace::ValueId>& written_state() const { return written_state_; }
  // Of ProgramOptions::kept, what forwards before the judged one may write: indices.
  const std::vector<size_t>& written_before() const { return written_before_; }
  // Storages that exist when the judged forward begins and that it reads.
  const std::vector<trace::StorageId>& live_in() const { return live_in_; }
  // What a step of the judged forward may write, whichever alternative it runs.
  const std::vector<trace::StorageId>& written_by(int step) const {
    return written_by_.at(static_cast<size_t>(step));
  }
  const std::vector<trace::StorageId>& workspace() const {
    return workspace_;
  }  // poisoned before the judged forward
  const std::vector<trace::StorageId>& undone() const {
    return undone_;
  }  // init's, that earlier forwards may write
  const std::vector<LeftAsFound>& left_as_found() const { return left_as_found_; }
  const std::set<int>& calls_used() const { return calls_used_; }  // whose inputs are needed
  bool is_parameter(trace::ValueId value) const { return parameters_[value]; }
  bool keeps_inputs() const { return keeps_inputs_; }
  const Footprint& footprint() const { return footprint_; }

 private:
  friend class Planner;
  const trace::Trace* trace_ = nullptr;
  std::unique_ptr<Launcher> launcher_;
  std::vector<PreparedPhase> phases_;
  size_t judged_ = 0;
  std::vector<trace::ValueId> outputs_, written_state_;
  std::vector<size_t> written_before_;
  std::vector<LeftAsFound> left_as_found_;
  std::vector<trace::StorageId> judged_writes_, live_in_, workspace_, undone_;
  std::vector<std::vector<trace::StorageId>> written_by_;  // by step
  std::set<int> calls_used_;
  std::vector<bool> parameters_;  // by value
  bool keeps_inputs_ = false;
  Footprint footprint_;
};

}  // namespace nereid::replay
