#include "nereid/trace/dataflow.h"

#include <algorithm>
#include <map>
#include <set>

namespace nereid::trace {
namespace {

struct Written {
  int step;
  int64_t first, last;
  bool covers;
};
using History = std::map<StorageId, std::vector<Written>>;  // the writes so far, oldest first

// A hostile trace can write a million times to one storage and read as often: the walk is bounded.
constexpr int64_t kMaxWork = 50'000'000;

// The steps whose writes a read of [first, last) may see, newest first; kBefore where bytes older than the
// phase show.
std::vector<int> writers_of(const History& history, StorageId storage, int64_t first, int64_t last,
                            int64_t& work) {
  std::vector<int> found;
  if (first >= last) return found;
  std::vector<std::pair<int64_t, int64_t>> open = {{first, last}};  // what no covering write has hidden yet
  if (const auto writes = history.find(storage); writes != history.end()) {
    for (auto write = writes->second.rbegin(); write != writes->second.rend() && !open.empty(); ++write) {
      work += static_cast<int64_t>(open.size() + found.size());
      if (work > kMaxWork) break;
      std::vector<std::pair<int64_t, int64_t>> left;
      bool seen = false;
      for (const auto& [begin, end] : open) {
        const int64_t low = std::max(begin, write->first), high = std::min(end, write->last);
        if (low >= high || !write->covers) left.emplace_back(begin, end);
        if (low >= high) continue;
        seen = true;
        if (!write->covers) continue;
        if (begin < low) left.emplace_back(begin, low);
        if (high < end) left.emplace_back(high, end);
      }
      if (seen && std::find(found.begin(), found.end(), write->step) == found.end())
        found.push_back(write->step);
      open = std::move(left);
    }
  }
  if (!open.empty()) found.push_back(Flow::kBefore);
  return found;
}

History history_of(const std::vector<StepAccess>& accesses, size_t steps) {
  History history;
  for (size_t i = 0; i < steps; ++i)
    for (const Access& write : accesses[i].writes)
      history[write.storage].push_back({static_cast<int>(i), write.first, write.last, write.covers});
  return history;
}

// Steps from which the marked ones can be reached along flows between steps.
void mark_reachable(const std::vector<Flow>& flows, std::vector<bool>& marked) {
  for (auto flow = flows.rbegin(); flow != flows.rend(); ++flow) {
    if (flow->from == Flow::kBefore || flow->to >= static_cast<int>(marked.size())) continue;
    if (marked[static_cast<size_t>(flow->to)]) marked[static_cast<size_t>(flow->from)] = true;
  }
}

}  // namespace

std::vector<bool> DataFlow::steps_behind(const Trace& trace, ValueId value) const {
  std::vector<bool> marked(accesses.size());
  const auto [first, last] = byte_extent(trace.values[static_cast<size_t>(value)]);
  const StorageId storage = trace.values[static_cast<size_t>(value)].storage;
  int64_t work = 0;
  for (const int step : writers_of(history_of(accesses, accesses.size()), storage, first, last, work))
    if (step != Flow::kBefore) marked[static_cast<size_t>(step)] = true;
  mark_reachable(flows, marked);
  return marked;
}

DataFlow follow(const Trace& trace, const Phase& phase, const KernelUses& uses) {
  DataFlow flow;
  History history;
  std::set<StorageId> made;  // in this phase: nothing is in them from before
  int64_t work = 0;
  const auto add = [&](int to, StorageId storage, int64_t first, int64_t last, ValueId value) {
    if (work > kMaxWork) return;
    for (const int from : writers_of(history, storage, first, last, work))
      if (from != Flow::kBefore || !made.contains(storage)) flow.flows.push_back({from, to, storage, value});
  };
  for (size_t i = 0; i < phase.steps.size(); ++i) {
    StepAccess access = access_of(trace, phase.steps[i], uses);
    for (const Access& read : access.reads)
      add(static_cast<int>(i), read.storage, read.first, read.last, read.value);
    for (const Access& write : access.writes)
      history[write.storage].push_back({static_cast<int>(i), write.first, write.last, write.covers});
    made.insert(access.made.begin(), access.made.end());
    flow.accesses.push_back(std::move(access));
  }
  const auto end = static_cast<int>(phase.steps.size());
  flow.reaches_output.assign(phase.steps.size(), false);
  const size_t inner = flow.flows.size();
  for (const ValueId id : tensors_in(phase.output)) {
    const Value& value = trace.values[static_cast<size_t>(id)];
    const auto [first, last] = byte_extent(value);
    add(end, value.storage, first, last, id);
  }
  for (size_t i = inner; i < flow.flows.size(); ++i)
    if (flow.flows[i].from != Flow::kBefore)
      flow.reaches_output[static_cast<size_t>(flow.flows[i].from)] = true;
  mark_reachable(flow.flows, flow.reaches_output);
  flow.complete = work <= kMaxWork;
  if (!flow.complete) flow.reaches_output.assign(phase.steps.size(), true);
  return flow;
}

}  // namespace nereid::trace
