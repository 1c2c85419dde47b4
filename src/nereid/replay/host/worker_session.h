// A session over two workers: opened (session_opening.cpp), then asked for trials and times (session.cpp).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nereid/replay/host/session.h"
#include "nereid/replay/memory_plan.h"
#include "nereid/replay/message.h"
#include "nereid/replay/state_pairing.h"
#include "nereid/replay/structure.h"

namespace nereid::replay {

class WorkerSession : public Session {
 public:
  WorkerSession(const trace::Trace& reference, const trace::Trace& candidate, const SessionOptions& options)
      : reference_(pinned_as(reference, candidate)),
        candidate_(ordered_as(reference, candidate)),
        options_(options) {}
  Status open(const WorkerMaker& make, MemoryAdmission& memory, Deadline deadline);
  const SessionFacts& facts() const override { return facts_; }
  Result<TrialReport> trial(const Trial& trial, const Tolerance& tolerance, Deadline deadline) override;
  Result<MutationReport> leave_out(const std::vector<int>& launches, Deadline deadline) override;
  Result<TrialReport> try_alternatives(const ConfiguredRun& run, const Tolerance& tolerance,
                                       Deadline deadline) override;
  Result<UnmovedReport> unmoved(Deadline deadline) override;
  Result<TimeReport> time(const TimeRequest& request, const Tolerance& tolerance, Deadline deadline) override;

 private:
  // Held for one step at a time, so that who wants to time does not wait long.
  GpuGate::Pass share_gpu();
  // Answers of the host's are looked for where host code reads integers.
  bool tracks_unmoved() const;
  // A trial as far as the candidate's outputs; `ran`: they can be compared.
  Result<TrialReport> replay(const Trial& trial, bool& ran, Deadline deadline);
  Result<TrialReport> again(const Json& alternatives, const Tolerance& tolerance, Deadline deadline,
                            const ConfiguredRun& how = {});
  // CUDA: of each launch the first alternative that the GPU can run, where that is not the first of all.
  Json default_alternatives() const;
  // CUDA: those of a launch's alternatives that the GPU can run.
  std::vector<int> runnable(int step, std::vector<int> alternatives) const;
  Status send_kernels(const trace::Trace& trace, Worker& worker, Deadline deadline) const;
  // What takes less than about a millisecond a step gains nothing from threads, and other verdicts want the
  // cores.
  bool is_small() const;
  void plan();
  Json states_of(bool reference) const;
  // The moment at which most is held; of no bytes where the reference fails.
  Result<Moment> plan_memory_of(const Json& c, const std::set<int>& calls, Deadline deadline);
  Status take_memory(const Moment& most, MemoryAdmission& memory, Deadline deadline);
  // The candidate's counterparts of the state that the reference's forward writes.
  Json watched(const Json& r);
  // The candidate's counterparts of the state that the reference's forward leaves alone.
  Json kept(const Json& r);
  std::string name_of_state(trace::ValueId value) const;
  Status connect(const Json& r, const Json& c, const std::set<int>& calls, Deadline deadline);
  // Nothing where the reference's own code failed (`reference_failure_` says how); an Error where the worker
  // is lost.
  Result<std::optional<Message>> request_reference(const Json& request, const std::vector<int>& fds,
                                                   Deadline deadline);
  // Nothing where the candidate failed, died or was too slow (`candidate_failure_` says how).
  Result<std::optional<Message>> request_candidate(const Json& request, const std::vector<int>& fds,
                                                   Deadline deadline);
  // Where memory is dear one side holds next to nothing while the other works.
  Status park_candidate(Deadline deadline);
  Status park_reference(Deadline deadline);
  Result<bool> prepare(TrialReport& report, Deadline deadline);
  // Of `how` its choices are among `alternatives`.
  Result<bool> run(TrialReport& report, const Json& alternatives, Deadline deadline,
                   const ConfiguredRun& how = {});
  // `again`: this trial's inputs were judged before.
  Status judge(TrialReport& report, const Tolerance& tolerance, Deadline deadline, bool again = false);

  const trace::Trace reference_, candidate_;
  const SessionOptions options_;
  SessionFacts facts_;
  Pairing pairing_;
  StatePairing states_;
  std::vector<std::pair<trace::ValueId, trace::ValueId>> watched_;  // the reference's and the candidate's
  std::vector<std::string> paths_;
  std::vector<size_t> inputs_mutated_;
  std::vector<std::string> kept_names_;      // state that the reference leaves alone
  std::vector<std::string> written_before_;  // of these, what the candidate's earlier calls write
  std::shared_ptr<void> memory_;             // this session's part; goes after the workers
  std::shared_ptr<Worker> r_, c_;
  std::optional<Failure> reference_failure_, candidate_failure_;
  bool alive_ = true;  // the candidate's worker
  bool reference_unloadable_ = false;
  bool load_failure_ = false;  // its trace could not be prepared: every trial says so
  std::optional<TrialReport> last_;
  std::string gpu_;  // its name
};

}  // namespace nereid::replay
