// The reference's worker. Requests:
//   load {"threads", "every_call": bool, the inputs of all calls are made} + trace, position
//     -> {"keeps_inputs", "calls_used", "inputs_written": [index...], "state_written": [value...]}
//   plan {"states": [value...], "calls": [call...]}
//     -> {"own", "upcast", "outputs", "upcast_outputs", "moved", "inputs_block"}: see ReferenceFootprint
//   share {"states", "calls", "frugal"}
//     -> {} + the block that state and inputs are copied to, or (frugally) made to be in
//   attach {"outputs": [{"dtype", "sizes"}...], "state": [value...]}
//     + the block of the candidate's outputs, of the inputs that the reference writes, and of this state
//   prepare {"trial"} -> {"applicable", "seconds"}: makes state and inputs
//   rest {} -> {}: memory kept for later goes
//   judge {"trial", "tolerance", "paths", "again"} -> {"comparison", "seconds", "oracle_seconds"}: runs and
//     compares; `again`: another answer to the inputs that were judged last, whose truth may still be known
//   unmoved {"again"} -> {"outputs": [{"elements", "unmoved", "numbers": [...]}...]}: the elements of the
//     candidate's outputs that were the same in every trial judged since load; with "again" those that still
//     are, in what the candidate has handed over since. Kept where load asks for it ("unmoved").
//   needs {"seed", "samples", "seconds"} -> {"inputs": [{"bytes", "tried", "mattered"}...]}:
//     see input_sensitivity.h

#include <algorithm>
#include <map>
#include <set>

#include "nereid/base/deadline.h"
#include "nereid/replay/worker/block.h"
#include "nereid/replay/worker/inputs/input_sensitivity.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/trial/exponents.h"
#include "nereid/replay/worker/trial/trial_forward.h"
#include "nereid/replay/worker/trial/trial_inputs.h"
#include "nereid/replay/worker/trial/trial_judge.h"
#include "nereid/replay/worker/trial/unmoved_elements.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

class ReferenceRole : public Role {
 public:
  explicit ReferenceRole(Machine& machine) : machine_(machine) {}

  Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) override {
    const auto& document = request.document;
    if (verb == "load") return load_trace(request);
    if (!loaded_.replay) throw std::runtime_error("nothing is loaded");
    if (verb == "plan") return plan(document);
    if (verb == "rest") return machine_.trim(), Json{{"ok", true}};
    if (verb == "share") return share(document, descriptors);
    if (verb == "attach") return attach(request);
    if (verb == "prepare") return prepare(trial_from_json(document.at("trial")));
    if (verb == "needs") return needs(document);
    if (verb == "unmoved") return unmoved(document.at("again").get<bool>());
    if (verb == "judge")
      return judge(trial_from_json(document.at("trial")), tolerance_from_json(document.at("tolerance")),
                   document.at("paths").get<std::vector<std::string>>(), document.value("again", false));
    throw std::runtime_error("unknown request " + verb);
  }

  Playing playing() override {
    if (!loaded_.replay) throw std::runtime_error("nothing is loaded");
    return {*loaded_.replay, forward_.options};
  }
  void copy_outputs() override {}

 private:
  const trace::Trace& trace() const { return loaded_.trace; }

  Json load_trace(Message& request) {
    ProgramOptions options;
    options.may_keep_inputs = true;
    options.reference = true;
    options.every_call = request.document.value("every_call", false);
    load(loaded_, request, machine_, options);
    const auto& program = *loaded_.program;
    forward_.outputs = program.outputs();
    forward_.read_traits();
    tracks_unmoved_ = request.document.value("unmoved", false);
    unmoved_.clear();
    inputs_.load(forward_.coarse, uses_places(trace(), forward_.makers));
    has_exponents_ = !exponent_operands(trace()).empty();
    Json written = Json::array();
    const auto inputs = trace::tensors_in(program.phases()[program.judged()].phase->inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::ranges::find(program.judged_writes(), trace().values[inputs[i]].storage) !=
          program.judged_writes().end()) {
        written.push_back(i);
        forward_.outputs.push_back(inputs[i]);
      }
    return {{"keeps_inputs", program.keeps_inputs()},
            {"calls_used", program.calls_used()},
            {"inputs_written", written},
            {"state_written", program.written_state()}};
  }

  // What the block holds: state, then inputs.
  std::vector<ValueId> shared_by(const Json& document) const {
    auto shared = document.at("states").get<std::vector<ValueId>>();
    for (const auto& call : document.at("calls"))
      for (const auto value : inputs_.of_call(call)) shared.push_back(value);
    return shared;
  }

  // Where memory is scarce: which of these are in the block and nowhere else, whole storages that no step
  // writes.
  std::vector<bool> movable(const std::vector<ValueId>& shared) const {
    std::vector<bool> out;
    const auto& written = loaded_.program->judged_writes();
    std::map<StorageId, int> uses;
    for (const auto value : shared) ++uses[trace().values.at(value).storage];
    for (const auto value : shared) {
      const auto storage = trace().values.at(value).storage;
      out.push_back(uses[storage] == 1 && is_whole(trace(), value) &&
                    trace().storages[storage].role != trace::Role::kConstant &&
                    std::ranges::find(written, storage) == written.end());
    }
    return out;
  }

  Json plan(const Json& document) {
    const auto shared = shared_by(document);
    const auto moves = movable(shared);
    int64_t moved = 0;
    for (size_t i = 0; i < shared.size(); ++i)
      if (moves[i]) moved += trace().storages[trace().values[shared[i]].storage].bytes;
    const auto* recomputed = forward_.references.in_float64();
    return {{"own", loaded_.program->footprint()},
            {"upcast", recomputed ? Json(recomputed->footprint()) : Json()},
            {"outputs", block_bytes(trace(), forward_.outputs)},
            {"upcast_outputs", recomputed ? block_bytes(recomputed->trace(), forward_.outputs) : 0},
            {"moved", moved},
            {"inputs_block", block_bytes(trace(), shared)}};
  }

  Json share(const Json& document, std::vector<int>& descriptors) {
    forward_.frugal = document.at("frugal").get<bool>();
    paired_ = document.at("states").get<std::vector<ValueId>>();
    shared_ = shared_by(document);
    moved_ = movable(shared_);
    for (const auto value : shared_) layout_.add(shape_of(trace().values.at(value)));
    block_ = machine_.share(layout_.bytes());
    descriptors.push_back(block_.fd.get());
    return {{"ok", true}};
  }

  Json attach(Message& request) {
    for (const auto& output : request.document.at("outputs")) {
      const auto type = trace::dtype_from_string(output.at("dtype").get<std::string>());
      got_layout_.add({type.value(), output.at("sizes").get<std::vector<int64_t>>()});
    }
    const auto& written = loaded_.program->written_state();
    for (const auto& value : request.document.at("state")) {
      if (std::ranges::find(written, value.get<ValueId>()) == written.end())
        throw std::runtime_error("attach: expected state that the forward writes");
      forward_.outputs.push_back(value.get<ValueId>());
    }
    if (request.descriptors.empty()) throw std::runtime_error("attach: expected a block");
    got_block_ = machine_.open(request.descriptors[0], got_layout_.bytes(), false);
    return {{"ok", true}};
  }

  Json prepare(const Trial& trial) {
    const Stopwatch watch;
    judge_.forget();
    if (!inputs_.may_be(trial.distribution)) return {{"applicable", false}, {"seconds", watch.seconds()}};
    // Of larger numbers, rounding decides what exponentials make.
    const bool large = trial.distribution == InputDistribution::kFar ||
                       (trial.distribution == InputDistribution::kWide && trial.narrowed == 0);
    const bool bounds = large && has_exponents_;
    inputs_.bounded = bounds ? std::optional(1.0) : std::nullopt;
    bool applied = make(trial);
    if (applied && bounds) {
      const auto factor = factor_for_exponents(forward_, inputs_.floating());
      if (factor && *factor != 1) inputs_.bounded = factor, applied = make(trial);
      applied &= factor.has_value();
    }
    repeating_ = inputs_.repeat();
    machine_.synchronize();
    return {{"applicable", applied}, {"seconds", watch.seconds()}};
  }

  // State and inputs, up to where the judged forward begins; false where they are the task's own.
  bool make(const Trial& trial) {
    auto& replay = *loaded_.replay;
    forward_.options = RunOptions{.seed = trial.seed};
    auto generator = make_generator(trial.seed ^ 0x5EED);
    bool applied = trial.distribution == InputDistribution::kOwn ||
                   (trial.distribution == InputDistribution::kState && trial.perturb);
    forward_.widened = trial.distribution >= InputDistribution::kState;
    std::set<size_t> handed;  // of `shared_`
    replay.start(
        forward_.options,
        [&](StorageId storage, Replay&) {
          if (trial.perturb) inputs_.perturb_state(storage, trial, paired_, generator);
        },
        [&](int call) {
          if (call == loaded_.program->judged_call()) inputs_.note_labels();
          // Here, and not when all is made: what earlier calls leave behind follows from their inputs.
          if (trial.distribution != InputDistribution::kOwn &&
              trial.distribution != InputDistribution::kState)
            applied |= inputs_.change(call, trial, generator, forward_.widened);
          hand_inputs(call, handed);
        });
    if (trial.distribution == InputDistribution::kRedrawn) applied = applied || inputs_.has_integer_tables();
    for (size_t i = 0; i < shared_.size() && applied; ++i) {
      if (!handed.contains(i)) layout_.at(block_.bytes, i).copy_(replay.value(shared_[i]));
      if (!forward_.frugal || !moved_[i]) continue;
      machine_.synchronize();
      replay.bind_storage(trace().values[shared_[i]].storage, layout_.storage(block_.bytes, i));
    }
    replay.begin_judged();
    return applied;
  }

  // A call's inputs go to the block before its forward may change them.
  void hand_inputs(int call, std::set<size_t>& handed) {
    for (const auto value : inputs_.of_call(call))
      for (size_t i = 0; i < shared_.size(); ++i) {
        if (shared_[i] != value || !loaded_.replay->bound(trace().values[value].storage)) continue;
        layout_.at(block_.bytes, i).copy_(loaded_.replay->value(value));
        handed.insert(i);
      }
  }

  Json judge(const Trial& trial, const Tolerance& tolerance, const std::vector<std::string>& paths,
             bool again) {
    const Stopwatch watch;
    const double processor = processor_seconds();
    loaded_.replay->rewind();
    auto outputs = candidates_outputs();
    if (!again) note_unmoved(outputs);
    if (again)
      if (const auto known = judge_.judged_again(tolerance, paths, outputs))
        return {{"comparison", to_json(*known)}, {"seconds", 0.0}, {"oracle_seconds", watch.seconds()}};
    const auto judged = judge_.judge(trial, tolerance, paths, std::move(outputs));
    return {{"comparison", to_json(judged.comparison)},
            {"seconds", judged.own_seconds},
            {"oracle_seconds",
             machine_.work(watch.seconds(), processor_seconds() - processor) - judged.own_seconds}};
  }

  Json needs(const Json& document) {
    loaded_.replay->rewind();
    Json inputs = Json::array();
    for (const auto& need : input_sensitivity(
             *loaded_.replay, forward_.options, document.at("seed").get<uint64_t>(),
             document.at("samples").get<int>(), Deadline::after(document.at("seconds").get<double>())))
      inputs.push_back({{"bytes", need.bytes}, {"tried", need.tried}, {"mattered", need.mattered}});
    return {{"inputs", inputs}};
  }

  // Taken before the answer exists. Where memory is scarce the candidate has released the block, and gets no
  // request until the comparison is done.
  std::vector<OutputTensors> candidates_outputs() const {
    std::vector<OutputTensors> outputs;
    for (size_t i = 0; i < got_layout_.count(); ++i) {
      const auto got = got_layout_.at(got_block_.bytes, i);
      outputs.push_back({.dtype = trace().values[forward_.outputs.at(i)].dtype,
                         .got = forward_.frugal ? got : copy_of(got),
                         .own = {},
                         .truth = {},
                         .usual_scale = judge_.usual_scale(i),
                         .coarse = forward_.coarse,
                         .near_one = forward_.near_one,
                         .repeating = repeating_});
    }
    return outputs;
  }

  void note_unmoved(const std::vector<OutputTensors>& outputs) {
    if (tracks_unmoved_ && !forward_.frugal) unmoved_.note(outputs);
  }
  Json unmoved(bool again) {
    if (again) note_unmoved(candidates_outputs());
    return unmoved_.found();
  }

  Machine& machine_;
  Loaded loaded_;
  TrialInputs inputs_{loaded_};
  TrialForward forward_{loaded_, machine_};
  TrialJudge judge_{forward_, inputs_, machine_};
  std::vector<ValueId> shared_;  // state, then inputs
  std::vector<bool> moved_;      // of `shared_`: it is in the block where memory is scarce
  BlockLayout layout_, got_layout_;
  SharedBlock block_, got_block_;
  std::vector<ValueId> paired_;  // state that the candidate has, too
  bool repeating_ = false;
  bool has_exponents_ = false;  // see exponents.h
  bool tracks_unmoved_ = false;
  UnmovedElements unmoved_;
};

}  // namespace

std::unique_ptr<Role> make_reference_role(Machine& machine) {
  return std::make_unique<ReferenceRole>(machine);
}

}  // namespace nereid::replay
