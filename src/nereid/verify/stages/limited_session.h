// A replay session that keeps what one candidate's replays may take together, and that is opened again where
// an experiment of ours ended the candidate's process.
//
// `Settings::time_limit` bounds each replay. `Settings::verdict_limit` bounds all of them: a candidate whose
// replays take a little less than the limit each is one that takes too long. Only its own work counts, and
// not what a loaded machine adds (replay::TrialReport::seconds_candidate).
#pragma once

#include <set>
#include <vector>

#include "nereid/replay/host/client.h"

namespace nereid::verify {

// What one verdict has used so far, over all of its sessions.
struct CandidateWork {
  double limit = 0;  // seconds
  double seconds = 0;
  bool exceeded = false;
  // Launches without which the candidate's process ended, or lost its GPU: they matter, and how it ends
  // without them is no fault of the candidate's.
  std::set<std::vector<int>> fatal_without{};
};

class LimitedSession : public replay::Session {
 public:
  // Both outlive it.
  LimitedSession(replay::Session& session, CandidateWork& work) : session_(session), work_(work) {}

  const replay::SessionFacts& facts() const override { return session_.facts(); }
  // Past the limit these report the candidate's failure kTimedOut, and nothing is replayed.
  Result<replay::TrialReport> trial(const replay::Trial& trial, const replay::Tolerance& tolerance,
                                    Deadline deadline) override;
  Result<replay::TrialReport> try_alternatives(const replay::ConfiguredRun& run,
                                               const replay::Tolerance& tolerance,
                                               Deadline deadline) override;
  // An Error of ours where the candidate's process did not survive it: the next session, with the same
  // `work`, answers this without a replay.
  Result<replay::MutationReport> leave_out(const std::vector<int>& launches, Deadline deadline) override;
  Result<replay::UnmovedReport> unmoved(Deadline deadline) override { return session_.unmoved(deadline); }
  Result<replay::TimeReport> time(const replay::TimeRequest& request, const replay::Tolerance& tolerance,
                                  Deadline deadline) override {
    return session_.time(request, tolerance, deadline);
  }

 private:
  bool exceeded();

  replay::Session& session_;
  CandidateWork& work_;
};

}  // namespace nereid::verify
