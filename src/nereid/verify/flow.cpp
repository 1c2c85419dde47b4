#include "nereid/verify/flow.h"

#include <algorithm>
#include <functional>

namespace nereid::verify {
namespace {

using trace::PhaseKind;
using trace::StorageId;

// Visits every step in order with the origins of all storages before it.
class Walk {
 public:
  explicit Walk(const TraceFacts& facts) : facts_(facts), origins_(facts.trace->storages.size()) {
    for (size_t s = 0; s < origins_.size(); ++s) {
      const auto role = facts.trace->storages[s].role;
      if (role == trace::Role::kParameter || role == trace::Role::kBuffer) origins_[s] = kState;
    }
  }

  using Visitor =
      std::function<void(size_t phase, size_t step, uint32_t in, const std::vector<uint32_t>& origins)>;

  void run(const Visitor& visit) {
    for (size_t p = 0; p < facts_.phases.size(); ++p) {
      const auto& phase = facts_.phases[p];
      const bool now = static_cast<int>(p) == facts_.judged();
      for (size_t i = 0; i < phase.steps.size(); ++i) {
        const auto& step = phase.steps[i];
        uint32_t in = 0;
        for (const StorageId s : step.reads) in |= origins_[static_cast<size_t>(s)];
        visit(p, i, in, origins_);
        uint32_t out = in;
        if (step.work != Work::kFree) out |= kComputed;
        if (now && step.work == Work::kTriton) out |= kLaunchNow;
        if (now && step.random) out |= kRandom;
        for (const StorageId s : step.writes) {
          auto& origin = origins_[static_cast<size_t>(s)];
          origin = step.overwrites ? out : origin | out;
        }
      }
      if (phase.kind == PhaseKind::kMakeInputs)
        for (const auto v : trace::tensors_in(facts_.trace->phases[p].inputs))
          origins_[static_cast<size_t>(facts_.trace->values[static_cast<size_t>(v)].storage)] =
              inputs_of(phase.call);
    }
  }

  const std::vector<uint32_t>& origins() const { return origins_; }

 private:
  const TraceFacts& facts_;
  std::vector<uint32_t> origins_;
};

std::vector<bool> live_steps(const TraceFacts& facts, size_t judged) {
  const auto& steps = facts.phases[judged].steps;
  const auto& trace = *facts.trace;
  std::vector<bool> needed(trace.storages.size()), live(steps.size());
  for (const auto v : trace::tensors_in(trace.phases[judged].output))
    needed[static_cast<size_t>(trace.values[static_cast<size_t>(v)].storage)] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    for (const StorageId s : steps[i].writes) live[i] = live[i] || needed[static_cast<size_t>(s)];
    if (!live[i]) continue;
    if (steps[i].overwrites)
      for (const StorageId s : steps[i].writes) needed[static_cast<size_t>(s)] = false;
    for (const StorageId s : steps[i].reads) needed[static_cast<size_t>(s)] = true;
  }
  return live;
}

}  // namespace

int TraceFacts::judged() const {
  for (int p = static_cast<int>(phases.size()) - 1; p >= 0; --p)
    if (phases[static_cast<size_t>(p)].kind == PhaseKind::kForward) return p;
  return -1;
}

bool TraceFacts::blind_to_values() const {
  if (std::ranges::any_of(kernels, &KernelFacts::moves_by_data)) return false;
  const auto phase = static_cast<size_t>(judged());
  const auto& steps = trace->phases.at(phase).steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* launch = std::get_if<trace::Launch>(&steps[i]);
    if (launch == nullptr && phases.at(phase).steps.at(i).work != Work::kFree) return false;
    if (launch != nullptr && !std::ranges::all_of(launch->alternatives, &std::vector<trace::Call>::empty,
                                                  &trace::Alternative::before))
      return false;
  }
  return true;
}

Flow follow(const TraceFacts& facts) {
  Flow flow;
  const size_t storages = facts.trace->storages.size();
  flow.made_before.resize(storages);
  const int last = facts.judged();
  if (last < 0) return flow;
  const auto judged = static_cast<size_t>(last);
  const int call = facts.phases[judged].call;
  flow.live = live_steps(facts, judged);
  flow.step_origins.resize(facts.phases[judged].steps.size());

  for (size_t p = 0; p < judged; ++p) {
    for (const auto& step : facts.phases[p].steps)
      for (const auto* list : {&step.reads, &step.writes})
        for (const StorageId s : *list) flow.made_before[static_cast<size_t>(s)] = true;
    for (const auto v : trace::tensors_in(facts.trace->phases[p].inputs))
      flow.made_before[static_cast<size_t>(facts.trace->values[static_cast<size_t>(v)].storage)] = true;
  }
  for (const auto& state : facts.trace->state)
    flow.made_before[static_cast<size_t>(facts.trace->values[static_cast<size_t>(state.value)].storage)] =
        true;

  std::vector<bool> written_now(storages), seen(storages);
  const uint32_t earlier = (kInputs0 | kInputs1 | kInputs2) & ~inputs_of(call);
  Walk walk(facts);
  walk.run([&](size_t p, size_t i, uint32_t in, const std::vector<uint32_t>& origins) {
    if (p != judged) return;
    const auto& step = facts.phases[p].steps[i];
    flow.step_origins[i] = in;
    for (const StorageId s : step.reads) {
      const auto at = static_cast<size_t>(s);
      if (!flow.live[i] || written_now[at] || seen[at] || !flow.made_before[at]) continue;
      seen[at] = true;
      const auto role = facts.trace->storages[at].role;
      if ((origins[at] & earlier) != 0) {
        flow.stale_reads.push_back({static_cast<int>(i), s, origins[at]});
      } else if (role == trace::Role::kTemporary && (origins[at] & kState) != 0) {
        flow.reused.push_back(s);
      }
    }
    for (const StorageId s : step.writes) written_now[static_cast<size_t>(s)] = true;
  });
  flow.origins = walk.origins();
  return flow;
}

std::vector<uint32_t> origins_of_call(const TraceFacts& facts, int call) {
  std::vector<uint32_t> found;
  Walk(facts).run([&](size_t p, size_t, uint32_t in, const std::vector<uint32_t>&) {
    const auto& phase = facts.phases[p];
    if (phase.kind == PhaseKind::kForward && phase.call == call) found.push_back(in);
  });
  return found;
}

}  // namespace nereid::verify
