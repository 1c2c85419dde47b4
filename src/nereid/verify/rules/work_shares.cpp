#include "nereid/verify/rules/work_shares.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace nereid::verify {
namespace {

using trace::StorageId;

// Where data decides what a launch touches, a count without data may see little of it: it is given all data
// that it has pointers to.
double uncounted_bytes(const TraceAnalysis& candidate, const Dataflow& flow, const DataflowStep& step) {
  const auto& phase = candidate.trace->phases[static_cast<size_t>(candidate.judged())];
  const auto* launch = std::get_if<trace::Launch>(&phase.steps.at(static_cast<size_t>(step.step)));
  if (launch == nullptr) return 0;
  const auto kernel = static_cast<size_t>(launch->alternatives.front().kernel);
  if (kernel >= candidate.kernels.size() || !candidate.kernels[kernel].moves_by_data) return 0;
  std::set<StorageId> touched(step.facts->reads.begin(), step.facts->reads.end());
  touched.insert(step.facts->writes.begin(), step.facts->writes.end());
  double bytes = 0;
  for (const StorageId s : touched)
    if (flow.origins[static_cast<size_t>(s)] != 0)
      bytes += static_cast<double>(candidate.trace->storages[static_cast<size_t>(s)].bytes);
  return std::max(0.0, bytes - step.facts->bytes);
}

const ReplayedWork* replayed_work_of(const DataflowStep& step, const std::vector<ReplayedWork>* ran) {
  if (!step.facts->by_data || step.before || ran == nullptr) return nullptr;
  const auto found = std::ranges::find(*ran, step.step, &ReplayedWork::step);
  return found == ran->end() ? nullptr : &*found;
}

// FLOPs and bytes of a step; of a launch that does more or less by what it loads, as it ran. An access that
// comes again and again moves no more bytes than it reaches.
std::pair<double, double> work_of(const DataflowStep& step, const std::vector<ReplayedWork>* ran) {
  const auto& s = *step.facts;
  if (const auto* r = replayed_work_of(step, ran)) {
    const double bytes = std::min(s.max_bytes, r->bytes);
    return {std::max(r->flops, bytes / 4), bytes};
  }
  return {s.flops, s.bytes};
}

// A draw of the reference's that the candidate makes, too: its operands are constants, so that it works on
// no data. That it is the same draw is seen by the outputs.
bool is_draw_on_no_data(const DataflowStep& step) {
  return step.facts->random && step.origins == 0 && step.work == Work::kPointwise;
}

}  // namespace

WorkShares shares_of_work(const TraceAnalysis& candidate, const Dataflow& flow, bool free_draws,
                          const std::set<int>& idle, const std::vector<ReplayedWork>* ran) {
  WorkShares shares;
  double triton_flops = 0, triton_bytes = 0, flops = 0, bytes = 0, bookkeeping = 0, uncounted = 0;
  std::set<std::string_view> launched;  // what is launched again with the same arguments counts once
  for (const auto& step : flow.steps) {
    const auto& s = *step.facts;
    if (!step.live || (!step.before && idle.contains(step.step))) continue;
    if (step.counted) {
      bookkeeping += s.bytes;
      if (shares.counted == nullptr || s.bytes > shares.counted->bytes) shares.counted = &s;
    }
    if (step.work == Work::kFree || (free_draws && is_draw_on_no_data(step))) continue;
    if (step.work == Work::kTriton && !s.same.empty() && !launched.insert(s.same).second) continue;
    const auto [step_flops, step_bytes] = work_of(step, ran);
    flops += step_flops, bytes += step_bytes;
    if (step.work == Work::kTriton) {
      triton_flops += step_flops, triton_bytes += step_bytes;
      if (s.by_data && ran == nullptr) shares.final = false;
      if (replayed_work_of(step, ran) == nullptr) uncounted += uncounted_bytes(candidate, flow, step);
      continue;
    }
    if (step.work == Work::kHeavy && shares.heavy == nullptr) shares.heavy = &s;
    if (shares.largest == nullptr || s.bytes > shares.largest->bytes) shares.largest = &s;
  }
  if (flops > 0) shares.flops = triton_flops / flops;
  if (bytes > 0) shares.bytes = triton_bytes / bytes;
  if (bookkeeping > 0) shares.bookkeeping = bookkeeping / (bytes + uncounted + bookkeeping);
  return shares;
}

}  // namespace nereid::verify
