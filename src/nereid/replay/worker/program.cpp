#include "nereid/replay/worker/program.h"

#include <algorithm>

#include "nereid/replay/worker/types.h"
#include "nereid/trace/op_class.h"

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

// Which storages a step looks at and changes.
struct StepAccesses {
  std::set<StorageId> reads, writes;
  bool random = false;
};

namespace {

StorageId value_storage(const trace::Trace& trace, ValueId value) { return trace.values[value].storage; }

void touch_call(const trace::Trace& trace, const PreparedCall& prepared_call, StepAccesses& touch) {
  if (!prepared_call.shape_only())
    for (const auto value : prepared_call.reads()) touch.reads.insert(value_storage(trace, value));
  for (const auto value : prepared_call.writes()) touch.writes.insert(value_storage(trace, value));
  for (const auto value : prepared_call.bound_results()) touch.writes.insert(value_storage(trace, value));
  touch.random |= prepared_call.random();
}

// What an autotuner's hooks touch, which run in some replays of a launch.
void touch_tuning(const trace::Trace& trace, const PreparedTuning& tuning, StepAccesses& touch) {
  const bool random = touch.random;
  tuning.for_calls([&](const PreparedCall& prepared_call) { touch_call(trace, prepared_call, touch); });
  touch.random = random;
}

StepAccesses touch_of(const trace::Trace& trace, const PreparedStep& step) {
  StepAccesses touch;
  if (const auto* prepared_call = std::get_if<PreparedCall>(&step)) touch_call(trace, *prepared_call, touch);
  const auto* launch = std::get_if<PreparedLaunch>(&step);
  if (launch && launch->tuning) touch_tuning(trace, *launch->tuning, touch);
  if (launch)
    for (const auto& alternative : launch->alternatives) {
      for (const auto& prepared_call : alternative.before) touch_call(trace, prepared_call, touch);
      for (size_t b = 0; b < alternative.buffers.size(); ++b) {
        if (alternative.read[b]) touch.reads.insert(value_storage(trace, alternative.buffers[b]));
        if (alternative.written[b]) touch.writes.insert(value_storage(trace, alternative.buffers[b]));
        // One that the kernel does nothing with is handed over all the same.
        if (!alternative.read[b] && !alternative.written[b])
          touch.reads.insert(value_storage(trace, alternative.buffers[b]));
      }
    }
  return touch;
}

// Operators that do more than go once over their elements may make something as large as what they give. In
// a fenced replay, a candidate's, what any of them gives is moved to where it is fenced.
int64_t scratch_of(const trace::Trace& trace, const PreparedPhase& phase, size_t i, const StepAccesses& touch,
                   const ProgramOptions& options) {
  const auto* call = std::get_if<trace::Call>(&phase.phase->steps[i]);
  const bool fenced = !options.reference && !options.spend;
  if (!call || !phase.needed[i] || (trace::listed_class(call->op) <= trace::OpClass::kPointwise && !fenced))
    return 0;
  if (const auto* prepared_call = std::get_if<PreparedCall>(&phase.steps[i]);
      prepared_call && prepared_call->allocates())
    return 0;
  int64_t most = 0;
  for (const auto s : touch.writes) most = std::max(most, trace.storages[s].bytes);
  return most;
}

}  // namespace

// Builds a Program: prepares every step, then walks the data flow over storages.
class Planner {
 public:
  Planner(const trace::Trace& trace, Machine& machine, const ProgramOptions& options)
      : trace_(trace), machine_(machine), options_(options), program_(new Program) {
    program_->trace_ = &trace;
    program_->left_as_found_ = options.left_as_found;
    for (const auto& one : options.left_as_found) left_as_found_.insert(one.storage);
    program_->parameters_.resize(trace.values.size());
    for (const auto& state : trace.state) {
      const auto type = trace.values[state.value].dtype;
      program_->parameters_[state.value] = state.parameter && trace::is_floating(type);
    }
  }

  std::unique_ptr<const Program> plan() {
    prepare_steps();
    find_judged();
    find_touches();
    find_injections();
    follow_inputs();
    find_needed();
    find_undone();
    find_written_before();
    find_releases();
    return std::move(program_);
  }

 private:
  std::vector<PreparedPhase>& phases() { return program_->phases_; }
  StorageId storage_of(ValueId value) const { return trace_.values[value].storage; }
  bool before_forward(size_t phase) const {
    const auto kind = trace_.phases[phase].kind;
    return kind == trace::PhaseKind::kModule || kind == trace::PhaseKind::kInit;
  }

  void prepare_steps() {
    program_->launcher_ = machine_.load_kernels(trace_);
    for (const auto& phase : trace_.phases) {
      auto& prepared = phases().emplace_back();
      prepared.phase = &phase;
      for (size_t i = 0; i < phase.steps.size(); ++i) {
        try {
          prepared.steps.push_back(prepare_step(phase.steps[i]));
        } catch (Failed& failed) {
          failed.where = where(phase, static_cast<int>(i));
          throw;
        } catch (const c10::Error& error) {
          Failed failed(Failure::Kind::kRaised, error.what_without_backtrace());
          failed.where = where(phase, static_cast<int>(i));
          throw failed;
        }
      }
    }
  }

  PreparedStep prepare_step(const trace::Step& step) {
    if (const auto* launch = std::get_if<trace::Launch>(&step))
      return PreparedLaunch::prepare(*launch, trace_, machine_, *program_->launcher_);
    auto prepared_call = PreparedCall::prepare(std::get<trace::Call>(step), trace_, machine_);
    if (prepared_call.does_work()) return prepared_call;
    return Nothing{};
  }

  Where where(const trace::Phase& phase, int step) const { return where_is(trace_, phase, step); }

  void find_judged() {
    bool found = false;
    for (size_t p = 0; p < trace_.phases.size(); ++p)
      if (trace_.phases[p].kind == trace::PhaseKind::kForward) program_->judged_ = p, found = true;
    if (!found) throw Failed(Failure::Kind::kRefused, "the trace has no forward phase");
    program_->outputs_ = trace::tensors_in(trace_.phases[program_->judged_].output);
  }

  void find_touches() {
    touches_.resize(phases().size());
    created_in_.assign(trace_.storages.size(), -1);
    for (size_t p = 0; p < phases().size(); ++p) {
      for (const auto& step : phases()[p].steps) touches_[p].push_back(touch_of(trace_, step));
      for (const auto storage : made_by(p))
        if (created_in_[storage] < 0) created_in_[storage] = static_cast<int>(p);
      if (trace_.phases[p].kind == trace::PhaseKind::kMakeInputs)
        for (const auto value : trace::tensors_in(trace_.phases[p].inputs))
          if (created_in_[storage_of(value)] < 0) created_in_[storage_of(value)] = static_cast<int>(p);
    }
  }

  // The storages that a phase's own steps allocate, constants among them; what it only writes was there
  // before.
  std::vector<StorageId> made_by(size_t p) const {
    std::vector<StorageId> made;
    const auto add = [&](const PreparedCall& prepared_call) {
      for (const auto value : prepared_call.bound_results()) made.push_back(storage_of(value));
    };
    for (size_t i = 0; i < program_->phases_[p].steps.size(); ++i) {
      const auto& step = program_->phases_[p].steps[i];
      if (const auto* prepared_call = std::get_if<PreparedCall>(&step)) add(*prepared_call);
      const auto* launch = std::get_if<PreparedLaunch>(&step);
      if (launch && launch->tuning) launch->tuning->for_calls(add);
      if (launch)
        for (const auto& alternative : launch->alternatives)
          for (const auto& prepared_call : alternative.before) add(prepared_call);
      const auto* call = std::get_if<trace::Call>(&trace_.phases[p].steps[i]);
      if (call && call->op == "nereid::constant")
        for (const auto value : trace::tensors_in(call->result)) made.push_back(storage_of(value));
    }
    return made;
  }

  bool writes(size_t phase, size_t step, StorageId storage) const {
    return touches_[phase][step].writes.contains(storage);
  }

  // After the last step of module and init that writes it; before everything where none does.
  void find_injections() {
    for (auto& phase : phases()) phase.inject.resize(phase.steps.size() + 1);
    std::set<StorageId> injected;
    for (const auto value : options_.state_values) injected.insert(trace_.values.at(value).storage);
    if (options_.reference)
      for (const auto& state : trace_.state) injected.insert(storage_of(state.value));
    for (const auto storage : injected) {
      size_t at_phase = 0, at = 0;
      for (size_t p = 0; p < phases().size(); ++p)
        for (size_t i = 0; before_forward(p) && i < phases()[p].steps.size(); ++i)
          if (writes(p, i, storage)) at_phase = p, at = i + 1;
      if (!phases().empty()) phases()[at_phase].inject[at].push_back(storage);
    }
    for (size_t s = 0; s < trace_.storages.size(); ++s) {  // pinned: in the phase that makes it
      if (!trace_.storages[s].pinned || created_in_[s] < 0) continue;
      auto& phase = phases()[created_in_[s]];
      size_t at = 0;
      for (size_t i = 0; i < phase.steps.size(); ++i)
        if (writes(created_in_[s], i, static_cast<StorageId>(s))) at = i + 1;
      if (at > 0) phase.inject[at].push_back(static_cast<StorageId>(s));
    }
  }

  // Marks storages that earlier calls made from their inputs.
  void follow_inputs() {
    kept_.assign(trace_.storages.size(), false);
    for (size_t p = 0; p < program_->judged_; ++p) {
      const auto& phase = trace_.phases[p];
      if (before_forward(p) || phase.call == trace_.phases[program_->judged_].call) continue;
      const bool makes_inputs = phase.kind == trace::PhaseKind::kMakeInputs;
      if (makes_inputs)
        for (size_t s = 0; s < kept_.size(); ++s)
          kept_[s] = kept_[s] || created_in_[s] == static_cast<int>(p);
      for (const auto& touch : touches_[p]) {
        const bool kept = makes_inputs || std::ranges::any_of(touch.reads, [&](auto s) { return kept_[s]; });
        if (!kept) continue;
        for (const auto storage : touch.writes)
          if (created_in_[storage] >= 0 && !before_forward(created_in_[storage])) kept_[storage] = true;
      }
    }
  }

  // One pass from the judged forward's outputs backwards. A step that writes something wanted is needed, and
  // so is what it reads. Repeated while random steps of a phase draw in others: the stream must be the same.
  void find_needed() {
    // The judged forward runs whole: what does not reach the outputs may still overrun its buffers.
    for (auto& phase : phases())
      phase.needed.assign(phase.steps.size(), &phase == &phases()[program_->judged_]);
    while (mark_needed()) {
    }
    for (const auto call : wanted_calls_) program_->calls_used_.insert(call);
    program_->calls_used_.insert(trace_.phases[program_->judged_].call);
  }

  bool mark_needed() {
    bool changed = false;
    std::set<StorageId> wanted;
    for (const auto value : program_->outputs_) wanted.insert(storage_of(value));
    for (size_t p = program_->judged_ + 1; p-- > 0;) {
      auto& phase = phases()[p];
      bool random_later = false;
      for (size_t i = phase.steps.size() + 1; i-- > 0;) {
        for (const auto storage : phase.inject[i])
          if (fully_injected(storage)) wanted.erase(storage);
        if (i == 0) break;
        const auto& touch = touches_[p][i - 1];
        const bool useful =
            std::ranges::any_of(touch.writes, [&](auto s) { return wanted.contains(s) && lasts(p, s); });
        const bool draws = touch.random && random_later;
        if (std::holds_alternative<Nothing>(phase.steps[i - 1])) {
          phase.needed[i - 1] = false;
        } else if (useful || draws || phase.needed[i - 1]) {
          changed |= !phase.needed[i - 1];
          phase.needed[i - 1] = true;
          wanted.insert(touch.reads.begin(), touch.reads.end());
          wanted.insert(touch.writes.begin(), touch.writes.end());  // part of it may stay as it was
        }
        random_later |= touch.random && phase.needed[i - 1];
      }
      if (p == program_->judged_) begin_judged(wanted);
      if (p == program_->judged_ && options_.reference) {
        for (const auto& state : trace_.state) wanted.insert(storage_of(state.value));
        for (const auto value : trace::tensors_in(trace_.phases[p].inputs)) wanted.insert(storage_of(value));
      }
      for (size_t made = 0; made < p && p == program_->judged_ && options_.every_call; ++made)
        for (const auto value : trace::tensors_in(trace_.phases[made].inputs))
          wanted.insert(storage_of(value));
      if (trace_.phases[p].kind == trace::PhaseKind::kMakeInputs)
        for (const auto storage : wanted)
          if (created_in_[storage] == static_cast<int>(p)) wanted_calls_.insert(trace_.phases[p].call);
    }
    return changed;
  }

  // What a forward call before the judged one does to state made by init is undone.
  bool lasts(size_t phase, StorageId storage) const {
    if (left_as_found_.contains(storage)) return true;
    const bool earlier_forward =
        trace_.phases[phase].kind == trace::PhaseKind::kForward && phase != program_->judged_;
    return !earlier_forward || created_in_[storage] < 0 || !before_forward(created_in_[storage]);
  }

  bool fully_injected(StorageId storage) const {
    if (trace_.storages[storage].pinned && !trace_.storages[storage].data.empty()) return true;
    const auto covers = [&](ValueId id) {
      const auto& value = trace_.values[id];
      return value.storage == storage && trace::element_count(value) * trace::element_bytes(value.dtype) >=
                                             trace_.storages[storage].bytes;
    };
    return std::ranges::any_of(options_.state_values, covers);
  }

  // What is wanted here exists before the judged forward, unless it is that forward's own.
  void begin_judged(std::set<StorageId>& wanted) {
    program_->live_in_.clear();
    program_->workspace_.clear();
    for (auto it = wanted.begin(); it != wanted.end();) {
      const auto storage = *it;
      const int made = created_in_[storage];
      if (made == static_cast<int>(program_->judged_)) {
        it = wanted.erase(it);
        continue;
      }
      const bool keeps = kept_[storage] && !left_as_found_.contains(storage);
      if (keeps) program_->keeps_inputs_ = true;
      if (keeps && !options_.may_keep_inputs) {
        program_->workspace_.push_back(storage);
        it = wanted.erase(it);
        continue;
      }
      program_->live_in_.push_back(storage);
      ++it;
    }
    std::set<StorageId> written;
    for (size_t i = 0; i < touches_[program_->judged_].size(); ++i)
      if (phases()[program_->judged_].needed[i])
        written.insert(touches_[program_->judged_][i].writes.begin(),
                       touches_[program_->judged_][i].writes.end());
    program_->judged_writes_.assign(written.begin(), written.end());
    for (const auto& touch : touches_[program_->judged_])
      program_->written_by_.emplace_back(touch.writes.begin(), touch.writes.end());
    auto watched = options_.watched;
    if (options_.reference)
      for (const auto& state : trace_.state) watched.push_back(state.value);
    program_->written_state_.clear();
    for (const auto value : watched)
      if (written.contains(storage_of(value))) program_->written_state_.push_back(value);
  }

  void find_undone() {
    std::set<StorageId> undone;
    for (size_t p = 0; p < program_->judged_; ++p)
      for (size_t i = 0; !before_forward(p) && i < phases()[p].steps.size(); ++i)
        for (const auto storage : touches_[p][i].writes)
          if (phases()[p].needed[i] && !left_as_found_.contains(storage) &&
              (created_in_[storage] < 0 || before_forward(created_in_[storage])))
            undone.insert(storage);
    program_->undone_.assign(undone.begin(), undone.end());
  }

  void find_written_before() {
    for (size_t i = 0; i < options_.kept.size(); ++i)
      for (size_t p = 0; p < program_->judged_; ++p)
        if (phases()[p].phase->kind == trace::PhaseKind::kForward &&
            std::ranges::any_of(touches_[p], [&](const StepAccesses& touch) {
              return touch.writes.contains(storage_of(options_.kept[i]));
            })) {
          program_->written_before_.push_back(i);
          break;
        }
  }

  // Temporaries go after the last needed step that touches them, unless the judged forward begins with them.
  void find_releases() {
    std::set<StorageId> keep;
    for (const auto value : program_->outputs_) keep.insert(storage_of(value));
    for (const auto value : program_->written_state_) keep.insert(storage_of(value));
    for (const auto value : trace::tensors_in(phases()[program_->judged_].phase->inputs))
      if (std::ranges::find(program_->judged_writes_, storage_of(value)) != program_->judged_writes_.end())
        keep.insert(storage_of(value));
    if (!options_.spend) {
      keep.insert(program_->live_in_.begin(), program_->live_in_.end());
      keep.insert(program_->workspace_.begin(), program_->workspace_.end());
      for (const auto& state : trace_.state) keep.insert(storage_of(state.value));
      for (const auto& phase : trace_.phases)
        for (const auto value : trace::tensors_in(phase.inputs)) keep.insert(storage_of(value));
    }
    for (size_t s = 0; s < trace_.storages.size(); ++s)
      if (trace_.storages[s].role == trace::Role::kConstant) keep.insert(static_cast<StorageId>(s));

    constexpr Moment kNever{-1, -1};
    std::vector<Moment> first(trace_.storages.size(), kNever), last(first);
    const auto touched = [&](StorageId s, Moment when) {
      if (first[s] == kNever) first[s] = when;
      last[s] = when;
    };
    for (size_t p = 0; p <= program_->judged_; ++p) {
      phases()[p].release.resize(phases()[p].steps.size());
      put_from_outside(p, touched);
      for (size_t i = 0; i < phases()[p].steps.size(); ++i) {
        const Moment now{static_cast<int>(p), static_cast<int>(i)};
        if (phases()[p].needed[i])
          for (const auto* set : {&touches_[p][i].reads, &touches_[p][i].writes})
            for (const auto s : *set) touched(s, now);
        for (const auto s : phases()[p].inject[i + 1]) touched(s, now);
      }
    }
    const auto judged = static_cast<int>(program_->judged_);
    for (const auto s : program_->live_in_)
      if (first[s] == kNever || first[s].first == judged) first[s] = {judged, -1};
    for (size_t s = 0; s < trace_.storages.size(); ++s)
      if (last[s] != kNever && last[s].second >= 0 && !keep.contains(static_cast<StorageId>(s)))
        phases()[last[s].first].release[last[s].second].push_back(static_cast<StorageId>(s));
    estimate_footprint(first);
  }

  // A step: its phase, its index; -1: before the phase's first step.
  using Moment = std::pair<int, int>;

  // What others put into storages before a phase's steps, or in their place.
  template <typename F>
  void put_from_outside(size_t p, F touched) const {
    const auto& phase = trace_.phases[p];
    for (const auto s : phases_of(p).inject[0]) touched(s, Moment{static_cast<int>(p), -1});
    const bool inputs_are_external = phase.kind == trace::PhaseKind::kMakeInputs && !options_.reference;
    if (inputs_are_external && program_->calls_used_.contains(phase.call))
      for (const auto value : trace::tensors_in(phase.inputs))
        touched(storage_of(value), Moment{static_cast<int>(p), -1});
  }
  const PreparedPhase& phases_of(size_t p) const { return program_->phases_[p]; }

  // What is alive, step by step: a storage from its first use until it is released.
  void estimate_footprint(const std::vector<Moment>& first) {
    auto& out = program_->footprint_;
    int64_t alive = 0;
    std::vector<std::vector<std::vector<StorageId>>> made(program_->judged_ + 1);
    for (size_t p = 0; p < made.size(); ++p) made[p].resize(phases()[p].steps.size() + 1);
    for (size_t s = 0; s < first.size(); ++s) {
      if (trace_.storages[s].role == trace::Role::kConstant)
        alive += trace_.storages[s].bytes;
      else if (first[s].first >= 0)
        made[first[s].first][first[s].second + 1].push_back(static_cast<StorageId>(s));
    }
    for (size_t p = 0; p <= program_->judged_; ++p) {
      const bool judged = p == program_->judged_;
      auto& most = judged ? out.forward : out.start;
      for (size_t i = 0; i <= phases()[p].steps.size(); ++i) {
        for (const auto s : made[p][i]) alive += trace_.storages[s].bytes;
        if (judged && i == 0) out.standing = alive;
        most = std::max(most, alive);
        if (i == 0) continue;
        out.scratch =
            std::max(out.scratch, scratch_of(trace_, phases()[p], i - 1, touches_[p][i - 1], options_));
        for (const auto s : phases()[p].release[i - 1]) alive -= trace_.storages[s].bytes;
      }
    }
    for (const auto s : program_->judged_writes_)
      if (first[s].first >= 0 && first[s] < Moment{static_cast<int>(program_->judged_), 0})
        out.saved += trace_.storages[s].bytes;
  }

  const trace::Trace& trace_;
  Machine& machine_;
  const ProgramOptions& options_;
  std::unique_ptr<Program> program_;
  std::vector<std::vector<StepAccesses>> touches_;  // [phase][step]
  std::vector<int> created_in_;                     // by storage: the phase; -1: no phase of this trace
  std::vector<bool> kept_;                          // by storage: made by an earlier call from its inputs
  std::set<int> wanted_calls_;
  std::set<StorageId> left_as_found_;
};

std::unique_ptr<const Program> Program::prepare(const trace::Trace& trace, Machine& machine,
                                                const ProgramOptions& options) {
  return Planner(trace, machine, options).plan();
}

int Program::judged_call() const { return trace_->phases[judged_].call; }

}  // namespace nereid::replay
