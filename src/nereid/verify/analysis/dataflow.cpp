#include "nereid/verify/analysis/dataflow.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "nereid/trace/access.h"

namespace nereid::verify {
namespace {

using trace::PhaseKind;
using trace::StorageId;

// Visits every step in order with the origins of all storages before it.
class Walk {
 public:
  explicit Walk(const TraceAnalysis& facts) : facts_(facts), origins_(facts.trace->storages.size()) {
    for (size_t s = 0; s < origins_.size(); ++s) {
      const auto role = facts.trace->storages[s].role;
      if (role == trace::Role::kParameter || role == trace::Role::kBuffer) origins_[s] = kState;
    }
  }

  // `in`: what the step reads derives from.
  using Visitor = std::function<void(size_t phase, const OrderedStep& step, uint32_t in,
                                     const std::vector<uint32_t>& origins)>;

  void run(const Visitor& visit) {
    for (size_t p = 0; p < facts_.phases.size(); ++p) {
      const auto& phase = facts_.phases[p];
      const bool now = static_cast<int>(p) == facts_.judged();
      for (const auto& step : in_order(phase)) {
        const uint32_t in = read_by(*step.facts);
        visit(p, step, in, origins_);
        const uint32_t out = made_by(*step.facts, in, now);
        for (const StorageId s : step.facts->writes) {
          auto& origin = origins_[static_cast<size_t>(s)];
          origin = step.facts->overwrites ? out : origin | out;
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
  uint32_t read_by(const StepAnalysis& step) const {
    uint32_t in = 0;
    for (const StorageId s : step.reads) {
      const auto at = static_cast<size_t>(s);
      in |= origins_[at];
      const bool data = (origins_[at] & (kAnyInputs | kState | kLaunchNow | kRandom)) != 0;
      if (data && at < facts_.floating.size() && facts_.floating[at]) in |= kFloats;
    }
    return in;
  }
  static uint32_t made_by(const StepAnalysis& step, uint32_t in, bool now) {
    uint32_t out = in;
    if (step.work != Work::kFree || step.over_integers != Work::kFree) out |= kComputed;
    if (now && step.work == Work::kTriton) {
      out |= kLaunchNow;
      if ((in & kFloats) != 0) out |= kFromLaunch;
    }
    if (step.work == Work::kTriton) out &= ~static_cast<uint32_t>(kFloats);
    if (now && step.random) out |= kRandom;
    return out;
  }

  static constexpr uint32_t kAnyInputs = kInputs0 | kInputs1 | kInputs2;
  const TraceAnalysis& facts_;
  std::vector<uint32_t> origins_;
};

std::vector<StorageId> output_storages(const TraceAnalysis& facts, size_t phase) {
  std::vector<StorageId> found;
  for (const auto v : trace::tensors_in(facts.trace->phases[phase].output))
    found.push_back(facts.trace->values[static_cast<size_t>(v)].storage);
  return found;
}

// Steps from which something reaches the storages as they are at the end.
std::vector<bool> reaching(const std::vector<DataflowStep>& steps, const std::vector<StorageId>& ends,
                           size_t storages) {
  std::vector<bool> needed(storages), reaches(steps.size());
  for (const StorageId s : ends) needed[static_cast<size_t>(s)] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    const auto& step = *steps[i].facts;
    reaches[i] =
        std::ranges::any_of(step.writes, [&](StorageId s) { return needed[static_cast<size_t>(s)]; });
    if (!reaches[i]) continue;
    if (step.overwrites)
      for (const StorageId s : step.writes) needed[static_cast<size_t>(s)] = false;
    for (const StorageId s : step.reads) needed[static_cast<size_t>(s)] = true;
  }
  return reaches;
}

// Of each of these: work is on its way, over integers too.
std::vector<bool> computed(const std::vector<DataflowStep>& steps, const std::vector<StorageId>& outputs,
                           size_t storages) {
  std::vector<bool> found;
  for (const StorageId output : outputs) {
    const auto reaching_output = reaching(steps, {output}, storages);
    bool works = false;
    for (size_t i = 0; i < steps.size(); ++i)
      works |= reaching_output[i] &&
               (steps[i].work != Work::kFree || steps[i].facts->over_integers != Work::kFree);
    found.push_back(works);
  }
  return found;
}

// `reaching` through data alone: not through indices, addresses and masks.
std::vector<bool> reaching_as_data(const std::vector<DataflowStep>& steps, const std::vector<StorageId>& ends,
                                   size_t storages) {
  std::vector<bool> needed(storages), reaches(steps.size());
  for (const StorageId s : ends) needed[static_cast<size_t>(s)] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    const auto& step = *steps[i].facts;
    std::vector<StorageId> wanted;
    for (const StorageId s : step.writes)
      if (needed[static_cast<size_t>(s)]) wanted.push_back(s);
    reaches[i] = !wanted.empty();
    if (wanted.empty()) continue;
    if (step.overwrites)
      for (const StorageId s : step.writes) needed[static_cast<size_t>(s)] = false;
    if (step.data_everywhere)
      for (const StorageId s : step.reads) needed[static_cast<size_t>(s)] = true;
    for (const auto& [from, to] : step.data)
      if (std::ranges::find(wanted, to) != wanted.end()) needed[static_cast<size_t>(from)] = true;
  }
  return reaches;
}

// What work over integers is: bookkeeping, or the work itself.
class Integers {
 public:
  Integers(const TraceAnalysis& facts, size_t judged, Dataflow& flow, const std::vector<uint32_t>& before)
      : facts_(facts), judged_(judged), flow_(flow), before_(before) {}

  void judge() {
    const bool any = std::ranges::any_of(flow_.steps, [](const DataflowStep& s) {
      return s.facts->over_integers != Work::kFree || s.facts->cast != StepAnalysis::Cast::kNone;
    });
    if (!any) return;
    const auto outputs = output_storages(facts_, judged_);
    for (auto& step : flow_.steps) {
      if (step.work != Work::kFree) continue;
      if (step.facts->over_integers == Work::kFree) {
        cast(step);
      } else if ((step.origins & kFloats) != 0 || ((step.origins & kFromLaunch) != 0 && step.as_data)) {
        step.work = step.facts->over_integers;
      } else if (step.origins != 0) {
        step.counted =
            step.facts->over_integers == Work::kHeavy || step.as_data || (step.origins & kFromLaunch) != 0;
      }
    }
    only_ways(outputs);
  }

 private:
  // A cast to integers and back truncates; a cast to integers whose result is data rounds. What a launch has
  // made may be cast to the output's type.
  static void cast(DataflowStep& step) {
    const auto kind = step.facts->cast;
    const bool rounds = kind == StepAnalysis::Cast::kFromFloat && step.as_data &&
                        (step.origins & kLaunchNow) == 0 && (step.origins & kFloats) != 0;
    const bool rounded = kind == StepAnalysis::Cast::kToFloat && (step.origins & kFloats) != 0;
    if (rounds || rounded) step.work = Work::kPointwise;
  }

  // An output whose every way from the inputs goes through work over integers is that work's.
  void only_ways(const std::vector<StorageId>& outputs) {
    std::vector<bool> other(facts_.trace->storages.size());  // of each storage: another way leads to it
    for (size_t s = 0; s < other.size(); ++s) other[s] = before_[s] != 0;
    for (const auto& step : flow_.steps) {
      const bool integers = step.facts->over_integers != Work::kFree && step.origins != 0;
      const bool way = !integers && std::ranges::any_of(step.facts->reads, [&](StorageId s) {
        return other[static_cast<size_t>(s)];
      });
      for (const StorageId s : step.facts->writes) {
        const auto at = static_cast<size_t>(s);
        other[at] = step.facts->overwrites ? way : other[at] || way;
      }
    }
    const auto& trace = *facts_.trace;
    const auto values = trace::tensors_in(trace.phases[judged_].output);
    const auto floating = [&](size_t i) {
      return trace::is_floating(trace.values[static_cast<size_t>(values[i])].dtype);
    };
    bool any_floating = false;
    for (size_t i = 0; i < values.size(); ++i) any_floating |= floating(i);
    std::vector<StorageId> ends;
    for (size_t i = 0; i < values.size(); ++i)
      if (!other[static_cast<size_t>(outputs[i])] && (floating(i) || !any_floating))
        ends.push_back(outputs[i]);
    const auto reaches = reaching(flow_.steps, ends, trace.storages.size());
    for (size_t i = 0; i < flow_.steps.size(); ++i) {
      auto& step = flow_.steps[i];
      if (!reaches[i] || step.facts->over_integers == Work::kFree || step.origins == 0) continue;
      step.work = step.facts->over_integers, step.counted = false;
    }
  }

  const TraceAnalysis& facts_;
  const size_t judged_;
  Dataflow& flow_;
  const std::vector<uint32_t>& before_;  // origins of storages when the judged call began
};

// Which bytes of older storages the judged call has surely overwritten.
class Overwritten {
 public:
  explicit Overwritten(const TraceAnalysis& facts) : facts_(facts), of_(facts.trace->storages.size()) {
    pinned_ = std::ranges::any_of(facts.trace->storages, &trace::Storage::pinned);
  }

  // A step of an earlier call: what it leaves, if it comes from that call's inputs.
  void left_by_earlier(const StepAnalysis& step, bool from_inputs) {
    if (!from_inputs) return;
    for (const auto& range : step.ranges) of_[static_cast<size_t>(range.storage)].earlier.insert(range.place);
    if (step.ranges.empty())
      for (const StorageId s : step.writes) of_[static_cast<size_t>(s)].earlier.insert("");
  }
  void made_by_constructor(StorageId s) { of_[static_cast<size_t>(s)].constructed = true; }

  void written_now(const StepAnalysis& step) {
    for (const auto& range : step.ranges) {
      auto& of = of_[static_cast<size_t>(range.storage)];
      if (range.coverage == WrittenRange::Coverage::kAll) cover(of.covered, range.first, range.last);
      if (!range.place.empty() && of.now.insert(range.place).second) of.parts += range.bytes;
      if (range.coverage != WrittenRange::Coverage::kUnknown) continue;
      // What no constructor filled is poisoned when a replay of the judged call begins: the rest of it
      // shows.
      of.shows |= !of.constructed;
      of.perhaps |= pinned_;
    }
    if (step.ranges.empty())  // nothing is known but that it writes
      for (const StorageId s : step.writes) of_[static_cast<size_t>(s)].perhaps = true;
  }

  bool all(StorageId s, int64_t first, int64_t last) const {
    const auto& of = of_[static_cast<size_t>(s)];
    // Launches that write a part each are taken to write different parts: what they leave shows in replays.
    return first >= last || of.parts >= static_cast<double>(last - first) ||
           std::ranges::any_of(
               of.covered, [&](const auto& range) { return range.first <= first && last <= range.second; });
  }
  // Every byte that the value shows, as far as replays do not show it.
  bool all_of(const trace::Value& value) const {
    const auto [first, last] = trace::byte_extent(value);
    const auto& of = of_[static_cast<size_t>(value.storage)];
    const int64_t shown = trace::element_count(value) * trace::element_bytes(value.dtype);
    return of.shows || all(value.storage, first, last) || of.parts >= static_cast<double>(shown);
  }
  // Nothing of an earlier call can be left in what the step reads of it, as far as replays do not show it:
  // a launch that reads no more bytes than this call has written is taken to read these.
  bool fresh(StorageId s, const StepAnalysis& reader) const {
    const auto& of = of_[static_cast<size_t>(s)];
    const auto read = reader.bytes_read_by_storage.find(s);
    if (!of.constructed && read != reader.bytes_read_by_storage.end() && read->second <= of.written())
      return true;
    if (of.perhaps || of.shows || all(s, 0, facts_.trace->storages[static_cast<size_t>(s)].bytes))
      return true;
    return !of.earlier.empty() && !of.earlier.contains("") && std::ranges::includes(of.now, of.earlier);
  }

 private:
  struct Storage {
    std::set<std::string> earlier, now;  // which bytes earlier calls wrote, and this one: WrittenRange::place
    std::vector<std::pair<int64_t, int64_t>> covered;  // disjoint, sorted
    double parts = 0;
    bool constructed = false;  // and filled
    bool perhaps = false;      // nothing says that it is not overwritten
    bool shows = false;        // ... and if it is not, replays show it

    double written() const {  // bytes, as far as they are counted
      double bytes = parts;
      for (const auto& [first, last] : covered) bytes += static_cast<double>(last - first);
      return bytes;
    }
  };

  static void cover(std::vector<std::pair<int64_t, int64_t>>& covered, int64_t first, int64_t last) {
    covered.emplace_back(first, last);
    std::ranges::sort(covered);
    std::vector<std::pair<int64_t, int64_t>> joined;
    for (const auto& range : covered) {
      if (!joined.empty() && range.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, range.second);
      else
        joined.push_back(range);
    }
    covered = std::move(joined);
  }

  const TraceAnalysis& facts_;
  std::vector<Storage> of_;
  bool pinned_ = false;
};

// Of each storage, before the judged forward: the first step that wrote something of any inputs to it, where
// something else wrote to it before, or the judged forward writes to it, and reads it in kernels alone.
class FirstWrites {
 public:
  explicit FirstWrites(const TraceAnalysis& facts) : of_(facts.trace->storages.size()) {
    for (const auto& phase : facts.trace->phases)
      for (const auto v : trace::tensors_in(phase.inputs))
        of_[static_cast<size_t>(facts.trace->values[static_cast<size_t>(v)].storage)].is_input = true;
    for (size_t s = 0; s < of_.size(); ++s)
      of_[s].filled = facts.trace->storages[s].role == trace::Role::kConstant;
    for (const auto& step : in_order(facts.phases[static_cast<size_t>(facts.judged())])) {
      for (const StorageId s : step.facts->writes) of_[static_cast<size_t>(s)].is_written = true;
      if (step.facts->work == Work::kTriton) continue;
      for (const StorageId s : step.facts->reads) of_[static_cast<size_t>(s)].read_by_operators = true;
    }
  }

  void see(size_t phase, const OrderedStep& step, bool from_inputs) {
    for (const StorageId s : step.facts->writes) {
      auto& of = of_[static_cast<size_t>(s)];
      if (of.seen) continue;
      of.seen = from_inputs;
      if (from_inputs && (of.filled || of.is_workspace()) && !of.is_input)
        of.first = replay::LeftAsFound{.storage = s,
                                       .phase = static_cast<int>(phase),
                                       .step = step.step,
                                       .may_be_dirty = of.is_workspace()};
      of.filled = true;
    }
  }

  std::optional<replay::LeftAsFound> of(StorageId s) const { return of_[static_cast<size_t>(s)].first; }

 private:
  struct Storage {
    bool filled = false, seen = false, is_input = false;
    bool is_written = false, read_by_operators = false;  // in the judged forward
    bool is_workspace() const { return is_written && !read_by_operators; }
    std::optional<replay::LeftAsFound> first{};
  };
  std::vector<Storage> of_;
};

}  // namespace

std::vector<OrderedStep> in_order(const PhaseAnalysis& phase) {
  std::vector<OrderedStep> steps;
  for (size_t i = 0; i < phase.steps.size(); ++i) {
    for (const auto& before : phase.steps[i].before) steps.push_back({&before, static_cast<int>(i), true});
    steps.push_back({&phase.steps[i], static_cast<int>(i), false});
  }
  return steps;
}

int TraceAnalysis::judged() const {
  for (int p = static_cast<int>(phases.size()) - 1; p >= 0; --p)
    if (phases[static_cast<size_t>(p)].kind == PhaseKind::kForward) return p;
  return -1;
}

bool TraceAnalysis::is_value_independent() const {
  if (std::ranges::any_of(kernels, &KernelAnalysis::moves_by_data)) return false;
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

Dataflow trace_dataflow(const TraceAnalysis& facts) {
  Dataflow flow;
  const auto& trace = *facts.trace;
  const size_t storages = trace.storages.size();
  flow.made_before.resize(storages);
  const int last = facts.judged();
  if (last < 0) return flow;
  const auto judged = static_cast<size_t>(last);
  for (const auto& step : in_order(facts.phases[judged]))
    flow.steps.push_back(
        {.facts = step.facts, .step = step.step, .before = step.before, .work = step.facts->work});
  const auto outputs = output_storages(facts, judged);
  const auto live = reaching(flow.steps, outputs, storages),
             as_data = reaching_as_data(flow.steps, outputs, storages);
  flow.live.resize(facts.phases[judged].steps.size());
  for (size_t i = 0; i < flow.steps.size(); ++i) {
    flow.steps[i].live = live[i], flow.steps[i].as_data = as_data[i];
    if (!flow.steps[i].before) flow.live[static_cast<size_t>(flow.steps[i].step)] = live[i];
  }

  for (size_t p = 0; p < judged; ++p) {
    for (const auto& step : in_order(facts.phases[p]))
      for (const auto* list : {&step.facts->reads, &step.facts->writes})
        for (const StorageId s : *list) flow.made_before[static_cast<size_t>(s)] = true;
    for (const auto v : trace::tensors_in(trace.phases[p].inputs))
      flow.made_before[static_cast<size_t>(trace.values[static_cast<size_t>(v)].storage)] = true;
  }
  for (const auto& state : trace.state)
    flow.made_before[static_cast<size_t>(trace.values[static_cast<size_t>(state.value)].storage)] = true;

  std::vector<bool> seen(storages), written(storages);
  FirstWrites first_writes(facts);
  constexpr uint32_t kAnyInputs = kInputs0 | kInputs1 | kInputs2;
  const uint32_t earlier = kAnyInputs & ~inputs_of(facts.phases[judged].call);
  Overwritten overwritten(facts);
  std::vector<uint32_t> before(storages);
  size_t number = 0;
  Walk walk(facts);
  walk.run([&](size_t p, const OrderedStep& at_step, uint32_t in, const std::vector<uint32_t>& origins) {
    const auto& step = *at_step.facts;
    if (p < judged) {
      const auto kind = facts.phases[p].kind;
      if (kind == PhaseKind::kForward) overwritten.left_by_earlier(step, (in & kAnyInputs) != 0);
      if (kind == PhaseKind::kModule || kind == PhaseKind::kInit)
        for (const StorageId s : step.writes) overwritten.made_by_constructor(s);
      first_writes.see(p, at_step, (in & kAnyInputs) != 0);
    }
    if (p != judged) return;
    if (number == 0) before = origins;
    auto& of = flow.steps[number++];
    of.origins = in;
    for (const StorageId s : step.reads) {
      const auto at = static_cast<size_t>(s);
      if (!of.live || !flow.made_before[at]) continue;
      const auto role = trace.storages[at].role;
      if ((before[at] & earlier) != 0) {
        if (seen[at] || overwritten.fresh(s, step)) continue;
        flow.stale_reads.push_back({of.step, s, before[at], first_writes.of(s)});
      } else if (!seen[at] && !written[at] && role == trace::Role::kTemporary && (before[at] & kState) != 0) {
        flow.reused.push_back(s);
      } else {
        continue;
      }
      seen[at] = true;
    }
    for (const StorageId s : step.writes) written[static_cast<size_t>(s)] = true;
    overwritten.written_now(step);
  });
  flow.origins = walk.origins();
  if (number == 0) before = flow.origins;
  for (const auto v : trace::tensors_in(trace.phases[judged].output)) {
    const auto& value = trace.values[static_cast<size_t>(v)];
    flow.output_overwritten.push_back(overwritten.all_of(value));
  }
  Integers(facts, judged, flow, before).judge();
  flow.output_computed = computed(flow.steps, outputs, storages);
  return flow;
}

std::vector<uint32_t> origins_of_call(const TraceAnalysis& facts, int call) {
  std::vector<uint32_t> found;
  Walk(facts).run([&](size_t p, const OrderedStep& step, uint32_t in, const std::vector<uint32_t>&) {
    const auto& phase = facts.phases[p];
    if (phase.kind == PhaseKind::kForward && phase.call == call && !step.before) found.push_back(in);
  });
  return found;
}

}  // namespace nereid::verify
