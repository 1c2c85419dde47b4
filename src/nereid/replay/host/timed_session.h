// How a session is timed: trials, a choice among alternatives, capture, turns, and a look at what the timed
// runs gave.
#pragma once

#include <functional>
#include <optional>

#include "nereid/base/deadline.h"
#include "nereid/replay/host/gpu_gate.h"
#include "nereid/replay/message.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

// A session as timing uses it. Nullopt stands for a failure of the candidate's, which `failed` then returns.
struct TimedSides {
  std::function<Result<TrialReport>(const Trial&)> trial;
  std::function<Result<TrialReport>(const Trial&)> replay;  // a trial whose outputs are not compared
  // The last trial again with these alternatives: [[step, index]...].
  std::function<Result<TrialReport>(const Json& alternatives)> again;
  std::function<Result<std::optional<Json>>(const Json& request)> request_reference, request_candidate;
  // The outputs in the candidate's block against the reference's.
  std::function<Result<TrialReport>()> judge;
  std::function<TrialReport()> failed;
  Json alternatives = Json::array();  // what is launched where nothing was chosen
  bool must_choose = false;           // some launch offers more than one
  std::string device = {};            // the GPU's name
  // `trial`, `replay`, `again` and `judge` pass it themselves; requests to one side are passed here.
  GpuGate* gate = nullptr;
  GpuUse* use = nullptr;  // of all that pass it
};

Result<TimeReport> time_sides(const TimedSides& sides, const TimeRequest& request, Deadline deadline);

}  // namespace nereid::replay
