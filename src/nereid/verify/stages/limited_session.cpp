#include "nereid/verify/stages/limited_session.h"

namespace nereid::verify {
namespace {

replay::Failure over() {
  return {replay::Failure::Kind::kTimedOut, {}, "all replays together took longer than a verdict may"};
}

}  // namespace

bool LimitedSession::exceeded() {
  work_.exceeded |= work_.limit > 0 && work_.seconds > work_.limit;
  return work_.exceeded;
}

Result<replay::TrialReport> LimitedSession::trial(const replay::Trial& trial,
                                                  const replay::Tolerance& tolerance, Deadline deadline) {
  if (exceeded()) {
    replay::TrialReport report;
    report.trial = trial, report.failed = over();
    return report;
  }
  auto report = session_.trial(trial, tolerance, deadline);
  if (report.ok()) work_.seconds += report->seconds_candidate;
  return report;
}

Result<replay::TrialReport> LimitedSession::try_alternatives(const replay::ConfiguredRun& run,
                                                             const replay::Tolerance& tolerance,
                                                             Deadline deadline) {
  if (exceeded()) {
    replay::TrialReport report;
    report.failed = over();
    return report;
  }
  auto report = session_.try_alternatives(run, tolerance, deadline);
  if (report.ok()) work_.seconds += report->seconds_candidate;
  return report;
}

Result<replay::MutationReport> LimitedSession::leave_out(const std::vector<int>& launches,
                                                         Deadline deadline) {
  if (exceeded() || work_.fatal_without.contains(launches)) {
    replay::MutationReport report;
    report.changed = true;
    report.failed = over();
    return report;
  }
  auto report = session_.leave_out(launches, deadline);
  if (!report.ok()) return report;
  work_.seconds += report->seconds;
  using Kind = replay::Failure::Kind;
  const auto& failed = report->failed;
  if (!failed || (failed->kind != Kind::kCrashed && failed->kind != Kind::kTimedOut)) return report;
  work_.fatal_without.insert(launches);
  return our_error("the candidate's process did not survive a replay without {} of its launches ({})",
                   launches.size(), failed->message);
}

}  // namespace nereid::verify
