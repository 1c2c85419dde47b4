// The rules that are read off the trace (docs/verdicts.md, "Disallowed"), and off what leaving launches out
// has shown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

enum class Policy { kStrict, kMostly, kHybrid };
std::string_view to_string(Policy policy);
std::optional<Policy> policy_from_string(std::string_view name);

// Remarks that Settings::forbid and Pair::forbid may name.
inline constexpr std::array<std::string_view, 2> kForbiddable = {"reused-output", "frozen-parameters"};

// Under `mostly`, the part of the counted FLOPs and bytes that must be Triton's.
inline constexpr double kTritonShare = 0.9;
// The part of the counted bytes that bookkeeping over integers may move where it is more than pointwise work
// on addresses and masks.
inline constexpr double kBookkeepingShare = 0.25;

struct RuleReport {
  std::vector<Evidence> broken;  // the first decides
  bool ignored = false;  // what is broken, now and in replays, is passed over: see Settings::ignore_rules
  std::vector<Evidence> remarks;
  double triton_share = 0;  // the smaller of FLOPs' and bytes', over the live steps of the judged forward
  bool frozen_parameters = false;
  bool reused_output =
      false;  // an output is a buffer from before the call that the call has overwritten whole
  int64_t kernels = 0, launches = 0, alternatives = 0;  // of the judged forward
  // Memory of the candidate's that its earlier calls write and the judged one reads: allowed where every call
  // leaves it as it found it, which replays show.
  std::vector<replay::LeftAsFound> left_as_found;
  // Steps of the judged forward that are launches on the way to an output: leaving each out must change the
  // answer.
  std::vector<int> live_launches;
};

// Whether a rule protects what runs, rather than judging what did the work: such a rule always counts.
bool protects(std::string_view rule);

// Makes of every remark by one of these rules a rule that is broken.
void forbid(const std::set<std::string>& rules, RuleReport& report);

RuleReport check_rules(const TraceAnalysis& reference, const TraceAnalysis& candidate, Policy policy);

// What leaving out launches (one, or all of them at once) changed, output by output (in the order of the
// tensors in the output tree).
struct LeftOut {
  std::vector<int> steps;
  std::vector<bool> outputs_changed;
  bool all = false;  // these are all live launches, not one that is launched several times
};
// Which of the live launches to leave out in turn; launches of one kernel with the same arguments (a warm-up,
// and what a graph repeats) together. Where there are more than `most`: of each kernel the first and the
// last, then the rest.
std::vector<std::vector<int>> launches_to_leave_out(const TraceAnalysis& candidate,
                                                    const std::vector<int>& live_launches, size_t most);

// What a launch did in a replay, where its trace does not say (StepAnalysis::by_data).
struct ReplayedWork {
  int step = 0;
  double flops = 0, bytes = 0;  // bytes of each access
};

// A floating-point output that no launch changes, whichever is left out, and the shares of work without the
// launches that change nothing.
RuleReport check_effects(const TraceAnalysis& reference, const TraceAnalysis& candidate, Policy policy,
                         const std::vector<LeftOut>& left_out, const std::vector<ReplayedWork>& ran = {});

// Casts to integers or booleans that are free while they keep every number (`changing`: steps of the judged
// forward where a replay saw a number change) are pointwise work: what that breaks.
std::vector<Evidence> check_casts(const TraceAnalysis& reference, const TraceAnalysis& candidate,
                                  Policy policy, const std::vector<int>& changing,
                                  const std::vector<ReplayedWork>& ran);

}  // namespace nereid::verify
