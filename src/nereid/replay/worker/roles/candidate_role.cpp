// The candidate's worker. Requests:
//   load {"threads", "may_keep_inputs", "states": [value...], "inputs_written": [index...],
//         "watched": [value...], "kept": [value...], "left_as_found": [[storage, phase, step, dirty]...],
//         "compared": bool}
//        + trace, position; nothing is handed over where outputs that differ in number or shape are not
//        compared
//     -> {"footprint", "outputs_block", "calls_used", "state_written": [value...], of what is watched,
//         "written_before": [index...]}, of what is kept, by calls before the judged one
//   attach {"calls": [call...], "frugal"} + the reference's block -> {} + the block its outputs go to
//   run {"seed", "sanitize", "seconds", "alternatives": [[step, index]...],
//       "tuned": [[step, [index...]]...], "digests": bool, "other_pinned": bool}
//     -> {"findings", "finding_count", "inputs_written": [index...], "kept_written": [index...],
//         "not_as_found": [storage...],
//         "work": [[step, FLOPs, bytes]...], "left": [[step, digest]...], "changing_casts": [step...],
//         "seconds"}
//   leave_out {"steps", "seconds"} -> {"changed": [bool...]}
//   rest {} -> {}: holds nothing, until what needs it makes it again
// Where memory is dear ("frugal") the blocks are mapped only while something is copied, when no kernel runs:
// the reference works in one of them, and the other holds what is being judged.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "nereid/base/deadline.h"
#include "nereid/replay/memory_plan.h"
#include "nereid/replay/worker/block.h"
#include "nereid/replay/worker/cast_check.h"
#include "nereid/replay/worker/compare/order_difference.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

class CandidateRole : public Role {
 public:
  explicit CandidateRole(Machine& machine) : machine_(machine) {}

  Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) override {
    const auto& document = request.document;
    if (verb == "load") return load_trace(request);
    if (!loaded_.replay) throw std::runtime_error("nothing is loaded");
    if (verb == "attach") return attach(request, descriptors);
    if (verb == "rest") return rest();
    if (verb == "run") return run(document);
    if (verb == "leave_out") return leave_out(document);
    throw std::runtime_error("unknown request " + verb);
  }

  Playing playing() override {
    if (!loaded_.replay) throw std::runtime_error("nothing is loaded");
    wake();
    return {*loaded_.replay, options_};
  }

  void copy_outputs() override {
    const auto block = outputs_block(true);
    for (size_t i = 0; i < outputs_.size(); ++i)
      bools_as_bytes(out_layout_.at(block, i)).copy_(bools_as_bytes(loaded_.replay->value(outputs_[i])));
    machine_.synchronize();
  }

 private:
  Json load_trace(Message& request) {
    states_ = request.document.at("states").get<std::vector<ValueId>>();
    ProgramOptions options;
    options.may_keep_inputs = request.document.at("may_keep_inputs").get<bool>();
    options.state_values = states_;
    options.watched = request.document.at("watched").get<std::vector<ValueId>>();
    kept_ = request.document.value("kept", std::vector<ValueId>{});
    options.kept = kept_;
    for (const auto& one : request.document.value("left_as_found", Json::array()))
      options.left_as_found.push_back(
          {one.at(0).get<StorageId>(), one.at(1).get<int>(), one.at(2).get<int>(), one.at(3).get<bool>()});
    load(loaded_, request, machine_, options);
    casts_ = CastCheck(loaded_.trace);
    if (request.document.at("compared").get<bool>()) {
      for (const auto value : loaded_.program->outputs()) outputs_.push_back(value);
      const auto inputs = judged_inputs();
      for (const auto& index : request.document.at("inputs_written"))
        outputs_.push_back(inputs.at(index.get<size_t>()));
      for (const auto value : loaded_.program->written_state()) outputs_.push_back(value);
    }
    for (const auto value : outputs_) out_layout_.add(shape_of(loaded_.trace.values.at(value)));
    return {{"footprint", loaded_.program->footprint()},
            {"outputs_block", out_layout_.bytes()},
            {"calls_used", loaded_.program->calls_used()},
            {"state_written", loaded_.program->written_state()},
            {"written_before", loaded_.program->written_before()}};
  }

  std::vector<ValueId> judged_inputs() const {
    return trace::tensors_in(loaded_.program->phases()[loaded_.program->judged()].phase->inputs);
  }

  // The block holds the state (in the order of "states"), then the inputs of each call in "calls".
  Json attach(Message& request, std::vector<int>& descriptors) {
    frugal_ = request.document.at("frugal").get<bool>();
    calls_ = request.document.at("calls").get<std::vector<int>>();
    for (const auto value : states_) in_layout_.add(shape_of(loaded_.trace.values.at(value)));
    for (const auto call : calls_)
      for (const auto value : inputs_of(call)) in_layout_.add(shape_of(loaded_.trace.values.at(value)));
    if (request.descriptors.empty()) throw std::runtime_error("attach: expected a block");
    in_fd_ = std::move(request.descriptors[0]);
    if (!frugal_) in_block_ = machine_.open(in_fd_, in_layout_.bytes(), false).bytes;
    out_block_ = machine_.share(out_layout_.bytes());
    descriptors.push_back(out_block_.fd.get());
    if (frugal_) {
      machine_.synchronize();  // what fills the rest of its pages must not find them gone
      out_block_.bytes.reset();
    }
    return {{"ok", true}};
  }

  std::vector<ValueId> inputs_of(int call) const {
    for (const auto& phase : loaded_.trace.phases)
      if (phase.kind == trace::PhaseKind::kMakeInputs && phase.call == call)
        return trace::tensors_in(phase.inputs);
    return {};
  }

  // The blocks, mapped for as long as what this gives lives.
  at::Tensor inputs_block() const {
    if (!frugal_) return in_block_;
    machine_.synchronize();
    return machine_.open(in_fd_, in_layout_.bytes(), false).bytes;
  }
  at::Tensor outputs_block(bool to_write) const {
    if (!frugal_) return out_block_.bytes;
    machine_.synchronize();
    return machine_.open(out_block_.fd, out_layout_.bytes(), to_write).bytes;
  }

  void put(const at::Tensor& block, ValueId id, size_t place) {
    auto& replay = *loaded_.replay;
    const auto& value = loaded_.trace.values[id];
    if (!replay.bound(value.storage)) replay.create(value.storage, value.dtype, is_whole(loaded_.trace, id));
    replay.value(id).copy_(in_layout_.at(block, place));
    replay.mark_written(id);
  }

  void put_state(StorageId storage) {
    const auto block = inputs_block();
    for (size_t i = 0; i < states_.size(); ++i)
      if (loaded_.trace.values[states_[i]].storage == storage) put(block, states_[i], i);
    if (frugal_) machine_.synchronize();
  }

  void put_inputs(int call) {
    const auto block = inputs_block();
    size_t place = states_.size();
    for (const auto each : calls_)
      for (const auto value : inputs_of(each)) {
        if (each == call) put(block, value, place);
        ++place;
      }
    if (frugal_) machine_.synchronize();
  }

  Json rest() {
    loaded_.replay->let_go();
    machine_.trim();
    rests_ = true;
    return {{"ok", true}};
  }

  // To where the judged forward begins.
  void start() {
    rests_ = false;
    loaded_.replay->start(
        options_, [&](StorageId storage, Replay&) { put_state(storage); },
        [&](int call) { put_inputs(call); });
    loaded_.replay->begin_judged();
  }
  void wake() {
    if (rests_) start();
  }

  struct Work {
    explicit Work(const Machine& machine) : machine(machine) {}
    double seconds() const { return machine.work(watch.seconds(), processor_seconds() - before); }
    const Machine& machine;
    const Stopwatch watch{};
    const double before = processor_seconds();
  };

  Json run(const Json& document) {
    const Work work(machine_);
    auto& replay = *loaded_.replay;
    options_ = RunOptions{.seed = document.at("seed").get<uint64_t>(),
                          .sanitize = document.at("sanitize").get<bool>(),
                          .deadline = machine_.limit(document.at("seconds").get<double>())};
    machine_.fenced = options_.sanitize;
    start();
    if (document.value("other_pinned", false)) exchange_pinned();
    options_.deadline = machine_.limit(document.at("seconds").get<double>());
    for (const auto& alternative : document.at("alternatives"))
      options_.alternatives[alternative.at(0).get<int>()] = alternative.at(1).get<int>();
    for (const auto& tuned : document.value("tuned", Json::array()))
      options_.tuned[tuned.at(0).get<int>()] = tuned.at(1).get<std::vector<int>>();
    options_.count_work = !std::exchange(counted_, true);
    options_.digests = document.value("digests", false);
    run_with_casts();
    if (replay.spoil_what_changed()) run_with_casts();
    options_.count_work = options_.digests = false;
    copy_outputs();
    Json answer = {{"findings", Json::array()},
                   {"finding_count", replay.finding_count()},
                   {"inputs_written", replay.changed(judged_inputs())},
                   {"kept_written", replay.changed(kept_)},
                   {"not_as_found", not_as_found()},
                   {"work", Json::array()},
                   {"left", Json::array()},
                   {"changing_casts", casts_.take()},
                   {"seconds", work.seconds()}};
    for (const auto& [step, digest] : replay.left()) answer["left"].push_back({step, digest});
    constexpr size_t kMaxFindings = 64;
    for (size_t i = 0; i < std::min(replay.findings().size(), kMaxFindings); ++i)
      answer["findings"].push_back(to_json(replay.findings()[i]));
    for (const auto& launch : replay.work())
      answer["work"].push_back({launch.step, launch.flops, launch.bytes});
    const bool quick = work.seconds() < kQuickTrial || ++shuffled_ == 1;
    if (options_.sanitize && quick && replay.findings().empty() && !replay.communicating_steps().empty())
      run_shuffled(document, answer);
    return answer;
  }

  // What an earlier forward changed, and a kernel of the judged one reads, is not as it was found either.
  std::set<StorageId> not_as_found() const {
    const auto& replay = *loaded_.replay;
    auto changed = replay.not_as_found();
    if (std::ranges::any_of(replay.findings(), [](const ttir::Finding& finding) {
          return finding.kind == ttir::FindingKind::kUninitializedRead;
        }))
      changed.merge(replay.found().dirty());
    return changed;
  }

  void run_with_casts() {
    auto& replay = *loaded_.replay;
    struct Watched {
      Replay& replay;
      ~Watched() { replay.exchange_operands({}); }
    } watched{replay};
    if (casts_.any())
      replay.exchange_operands([this](int step, ValueId id, const at::Tensor& operand) {
        casts_.see(step, id, operand);
        return operand;
      });
    replay.run_judged(options_);
  }

  // Integer inputs that host code read take the values of an earlier call's: the trace is as the host wrote
  // it for the judged ones.
  void exchange_pinned() {
    auto& replay = *loaded_.replay;
    const auto judged = judged_inputs();
    for (const auto& phase : loaded_.trace.phases) {
      if (phase.kind != trace::PhaseKind::kMakeInputs || phase.call == loaded_.program->judged_call())
        continue;
      const auto others = trace::tensors_in(phase.inputs);
      for (size_t i = 0; i < std::min(judged.size(), others.size()); ++i) {
        const auto id = loaded_.trace.values[judged[i]].storage;
        const auto& mine = loaded_.trace.storages[id];
        const auto& other = loaded_.trace.storages[loaded_.trace.values[others[i]].storage];
        if (!mine.pinned || mine.data.size() != other.data.size() || mine.data == other.data) continue;
        if (!replay.bound(id) || static_cast<int64_t>(other.data.size()) != mine.bytes) continue;
        bytes_of(replay.storage(id), mine.bytes)
            .copy_(at::from_blob(const_cast<char*>(other.data.data()), {mine.bytes},
                                 at::TensorOptions().dtype(at::kByte)));
      }
    }
  }

  // Once more, the programs of each launch in another order: a finding where that gives other outputs.
  void run_shuffled(const Json& document, Json& answer) {
    auto& replay = *loaded_.replay;
    const auto steps = replay.communicating_steps();
    auto options = options_;
    options.shuffled = true;
    options.deadline = Deadline::after(document.at("seconds").get<double>());
    replay.run_judged(options);
    if (answer["not_as_found"].empty()) answer["not_as_found"] = not_as_found();
    std::vector<ttir::Finding> findings = replay.findings();
    int64_t count = replay.finding_count();
    const auto block = outputs_block(false);
    for (size_t i = 0; i < outputs_.size() && findings.empty(); ++i) {
      const auto difference = order_difference(out_layout_.at(block, i), replay.value(outputs_[i]));
      if (!difference) continue;
      findings.push_back(order_finding(steps, i, *difference));
      ++count;
    }
    for (const auto& finding : findings) answer["findings"].push_back(to_json(finding));
    answer["finding_count"] = count;
  }

  ttir::Finding order_finding(const std::vector<int>& steps, size_t output, const std::string& difference) {
    const auto& phase = *loaded_.program->phases()[loaded_.program->judged()].phase;
    const auto& launch = std::get<trace::Launch>(phase.steps.at(static_cast<size_t>(steps.front())));
    const auto& kernel = loaded_.trace.kernels[launch.alternatives.at(0).kernel];
    ttir::Finding finding;
    finding.kind = ttir::FindingKind::kOrderDependent;
    finding.kernel = kernel.name;
    finding.file = kernel.place.file;
    finding.line = kernel.place.line;
    finding.sentence = fmt::format(
        "order dependent: tensor {} that forward leaves differs when the programs of {} run in another "
        "order: {}",
        output, steps.size() == 1 ? "kernel " + kernel.name : fmt::format("{} launches", steps.size()),
        difference);
    return finding;
  }

  // Again without some launches; what they would have made stays poisoned, but for integers
  // (Replay::leave_out). An output may be what booleans or integers hold in their place: then once more with
  // others.
  Json leave_out(const Json& document) {
    const Work work(machine_);
    options_.deadline = machine_.limit(document.at("seconds").get<double>());
    wake();
    auto options = options_;
    options.sanitize = false;
    options.alternatives.clear();
    options.tuned.clear();
    options.leave_out = document.at("steps").get<std::set<int>>();
    options.deadline = machine_.limit(document.at("seconds").get<double>());
    std::vector<bool> changed = changed_outputs(options);
    bool again = loaded_.replay->has_stand_ins() && std::ranges::none_of(changed, std::identity());
    for (size_t i = 0; i < outputs_.size(); ++i)
      again |= !changed[i] && loaded_.trace.values[outputs_[i]].dtype == trace::DType::kBool;
    if (again) {
      options.poisoned_truth = false;
      options.other_stand_ins = true;
      const auto also = changed_outputs(options);
      for (size_t i = 0; i < outputs_.size(); ++i) changed[i] = changed[i] || also[i];
    }
    return {{"changed", changed}, {"seconds", work.seconds()}};
  }

  std::vector<bool> changed_outputs(const RunOptions& options) {
    auto& replay = *loaded_.replay;
    replay.run_judged(options);
    std::vector<bool> changed;
    const auto block = outputs_block(false);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto after = replay.value(outputs_[i]).resolve_conj().resolve_neg().contiguous();
      changed.push_back(!same_bits(out_layout_.at(block, i), after));
    }
    return changed;
  }

  Machine& machine_;
  Loaded loaded_;
  CastCheck casts_;
  std::vector<ValueId> kept_;              // state that the reference leaves alone
  std::vector<ValueId> states_, outputs_;  // outputs, then inputs and state that the reference writes
  std::vector<int> calls_;
  BlockLayout in_layout_, out_layout_;
  Fd in_fd_;
  at::Tensor in_block_;
  SharedBlock out_block_;
  static constexpr double kQuickTrial = 0.25;  // seconds
  bool frugal_ = false, rests_ = false, counted_ = false;
  int shuffled_ = 0;  // trials that were no quick ones
  RunOptions options_;
};

}  // namespace

std::unique_ptr<Role> make_candidate_role(Machine& machine) {
  return std::make_unique<CandidateRole>(machine);
}

}  // namespace nereid::replay
