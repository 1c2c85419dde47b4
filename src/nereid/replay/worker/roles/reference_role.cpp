// The reference's worker. Requests:
//   load {"threads"} + trace, position
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
//   unmoved {"again"} -> {"outputs": [{"elements", "unmoved", "numbers": [...]}...]}: of the candidate's outputs, the
//     elements that were the same in every trial judged since load; with "again" those that still are, in what the
//     candidate has handed over since. Kept where load asks for it ("unmoved").
//   needs {"seed", "samples", "seconds"} -> {"inputs": [{"bytes", "tried", "mattered"}...]}: see needs.h

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "nereid/base/deadline.h"
#include "nereid/replay/host/upcast.h"
#include "nereid/replay/state_pairing.h"
#include "nereid/replay/worker/block.h"
#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/float64_reference.h"
#include "nereid/replay/worker/compare/index_outputs.h"
#include "nereid/replay/worker/inputs/input_sensitivity.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/inputs/integer_inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/roles/degenerate.h"
#include "nereid/replay/worker/roles/forward_traits.h"
#include "nereid/replay/worker/roles/other_references.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/roles/trial_inputs.h"
#include "nereid/replay/worker/roles/undecided_elements.h"
#include "nereid/replay/worker/roles/unmoved_elements.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

at::Generator make_generator(uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  generator.set_current_seed(seed);
  return generator;
}

constexpr double kNearly = 1024;  // times what is allowed
// Of roots whose squares underflow; of a softmax, an ulp of whose exponents (2^16 of them on other
// distributions) is an ulp of float32 times 2^16.
constexpr double kNearlyWide = 32 * kNearly;
constexpr int kTimesToRound = 4, kTimesToRoundCoarse = 8;
constexpr double kNearlyCoarse = 16;
constexpr double kFactorOfPlaces = 4;  // times the reference's own error of the values that indices point to
constexpr int kChoices = 15;           // among equals that are tried
constexpr int64_t kFew = 64;           // elements of an output that may all lie where chance has put them

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
    return {*loaded_.replay, options_};
  }
  void hand_over() override {}

 private:
  const trace::Trace& trace() const { return loaded_.trace; }

  Json load_trace(Message& request) {
    ProgramOptions options;
    options.may_keep_inputs = true;
    options.reference = true;
    load(loaded_, request, machine_, options);
    const auto& program = *loaded_.program;
    outputs_ = program.outputs();
    coarse_ = is_coarse(loaded_.trace);
    near_one_ = goes_near_one(loaded_.trace);
    bounds_ = bounds_of_clamps(loaded_.trace);
    tracks_unmoved_ = request.document.value("unmoved", false);
    unmoved_.clear();
    makers_ = index_makers(loaded_.trace);
    inputs_.load(coarse_, !makers_.empty());
    Json written = Json::array();
    const auto inputs = trace::tensors_in(program.phases()[program.judged()].phase->inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::ranges::find(program.judged_writes(), trace().values[inputs[i]].storage) !=
          program.judged_writes().end()) {
        written.push_back(i);
        outputs_.push_back(inputs[i]);
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
    const auto* recomputed = references_.in_float64();
    return {{"own", loaded_.program->footprint()},
            {"upcast", recomputed ? Json(recomputed->footprint()) : Json()},
            {"outputs", block_bytes(trace(), outputs_)},
            {"upcast_outputs", recomputed ? block_bytes(recomputed->trace(), outputs_) : 0},
            {"moved", moved},
            {"inputs_block", block_bytes(trace(), shared)}};
  }

  Json share(const Json& document, std::vector<int>& descriptors) {
    frugal_ = document.at("frugal").get<bool>();
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
      outputs_.push_back(value.get<ValueId>());
    }
    if (request.descriptors.empty()) throw std::runtime_error("attach: expected a block");
    got_block_ = machine_.open(request.descriptors[0], got_layout_.bytes(), false);
    return {{"ok", true}};
  }

  Json prepare(const Trial& trial) {
    const Stopwatch watch;
    auto& replay = *loaded_.replay;
    judged_.reset();
    if (!inputs_.may_be(trial.distribution)) return {{"applicable", false}, {"seconds", watch.seconds()}};
    options_ = RunOptions{.seed = trial.seed};
    auto generator = make_generator(trial.seed ^ 0x5EED);
    bool applied = trial.distribution == InputDistribution::kOwn ||
                   (trial.distribution == InputDistribution::kState && trial.perturb);
    widened_ = trial.distribution >= InputDistribution::kState;
    std::set<size_t> handed;  // of `shared_`
    replay.start(
        options_,
        [&](StorageId storage, Replay&) {
          if (trial.perturb) inputs_.perturb_state(storage, trial, paired_, generator);
        },
        [&](int call) {
          if (call == loaded_.program->judged_call()) inputs_.note_labels();
          // Here, and not when all is made: what earlier calls leave behind follows from their inputs.
          if (trial.distribution != InputDistribution::kOwn &&
              trial.distribution != InputDistribution::kState)
            applied |= inputs_.change(call, trial, generator, widened_);
          hand_inputs(call, handed);
        });
    if (trial.distribution == InputDistribution::kRedrawn) applied = applied || inputs_.has_integer_tables();
    for (size_t i = 0; i < shared_.size() && applied; ++i) {
      if (!handed.contains(i)) layout_.at(block_.bytes, i).copy_(replay.value(shared_[i]));
      if (!frugal_ || !moved_[i]) continue;
      machine_.synchronize();
      replay.bind_storage(trace().values[shared_[i]].storage, layout_.storage(block_.bytes, i));
    }
    replay.begin_judged();
    repeating_ = inputs_.repeat();
    machine_.synchronize();
    return {{"applicable", applied}, {"seconds", watch.seconds()}};
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

  // The last judged outputs, kept where they are small, and what was found of them.
  struct Judged {
    std::vector<OutputTensors> outputs;
    Comparison comparison;
  };

  // Another answer to the inputs judged last: nothing where that takes the truth anew.
  std::optional<Comparison> judged_again(const Tolerance& tolerance, const std::vector<std::string>& paths,
                                         std::vector<OutputTensors>& outputs) {
    if (!judged_) return std::nullopt;
    bool same = true;
    for (size_t i = 0; i < outputs.size() && same; ++i)
      same = same_bits(outputs[i].got, judged_->outputs[i].got);
    if (same) return judged_->comparison;
    auto known = judged_->outputs;
    for (size_t i = 0; i < outputs.size(); ++i) known[i].got = outputs[i].got;
    Comparison comparison = judged_->comparison;
    compare_all(comparison, tolerance, paths, known);
    if (comparison.agrees) return comparison;
    return std::nullopt;
  }

  void keep_judged(std::vector<OutputTensors>& outputs, const Comparison& comparison) {
    int64_t bytes = 0;
    for (const auto& output : outputs) bytes += static_cast<int64_t>(output.truth.nbytes());
    judged_.reset();
    // What was left out for this answer's sake is judged in others.
    if (!frugal_ && bytes <= kMaxRemembered / 16 && comparison.overflown == 0)
      judged_ = Judged{std::move(outputs), comparison};
  }

  Json judge(const Trial& trial, const Tolerance& tolerance, const std::vector<std::string>& paths,
             bool again) {
    const Stopwatch watch;
    const double processor = processor_seconds();
    auto& replay = *loaded_.replay;
    replay.rewind();
    auto outputs = candidates_outputs();
    if (!again) note_unmoved(outputs);
    if (again)
      if (const auto known = judged_again(tolerance, paths, outputs))
        return {{"comparison", to_json(*known)}, {"seconds", 0.0}, {"oracle_seconds", watch.seconds()}};
    judged_.reset();
    reorder_ = {};
    Comparison comparison;
    std::map<int, at::Tensor> values, own_values;  // that indices point to, by the step that makes them
    // In this order: while the float64 reference runs, with its inputs in float64, nothing else need be
    // there.
    compute_truth(outputs, comparison, values);
    const Stopwatch own;
    const double processor_before = processor_seconds();
    run_own(own_values);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].own = taken(replay, outputs_[i]);
    const double own_seconds = machine_.work(own.seconds(), processor_seconds() - processor_before);
    replay.rewind();
    if (comparison.oracle == Oracle::kOwn)
      for (auto& output : outputs) output.truth = output.own, output.upcast = false;

    find_places(comparison, outputs, values, own_values);
    find_undefined(trial, comparison, outputs);
    leave_out_ill_conditioned(trial, comparison, outputs);
    // The task's own with slack are a caller's own changes of them.
    const bool changed = trial.distribution == InputDistribution::kOwn && tolerance.slack > 1;
    if (makes_large(trial.distribution) || changed)
      for (auto& output : outputs) output.saturated = is_saturated(output.truth);
    for (auto& output : outputs)
      output.statistics_slack = statistics_slack(trial.distribution),
      output.other_inputs = tolerance.slack > 1;
    take_tf32(tolerance, comparison, outputs);
    const auto move_inputs = [&] {
      comparison.conditioned = true;
      const auto whole = inputs_.exact(trial);
      for (int i = 0; i < times_to_move(outputs); ++i)
        if (auto* recomputed = truth_reference(comparison))
          widen(outputs, *recomputed,
                {.nudge = make_generator(trial.seed + 77 + i), .exact = whole, .coarse = coarse_});
    };
    if (comparison.oracle == Oracle::kOwn) move_inputs();
    compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && follow_order(comparison, outputs, values))
      compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && !tolerance.kernelbench && leave_out_undecided(comparison, outputs))
      compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && !tolerance.kernelbench && leave_out_nearly_infinite(trial, comparison, outputs))
      compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && !tolerance.kernelbench && leave_out_near_overflow(trial, comparison, outputs))
      compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && !tolerance.kernelbench && leave_out_overflown(trial, comparison, outputs))
      compare_all(comparison, tolerance, paths, outputs);
    if (!comparison.agrees && !tolerance.fixed() && choose_among_equals(trial, comparison, outputs, values))
      compare_all(comparison, tolerance, paths, outputs);
    // An output that its inputs' own rounding moves that far cannot be asked for more.
    if (!comparison.agrees && !comparison.conditioned && !tolerance.fixed()) {
      move_inputs();
      compare_all(comparison, tolerance, paths, outputs);
      if (comparison.oracle == Oracle::kFloat64 && nearly_agrees(comparison, outputs)) {
        round_intermediates(trial, outputs);
        compare_all(comparison, tolerance, paths, outputs);
      }
    }
    if (!comparison.agrees && !tolerance.fixed() && leave_out_hanging(trial, comparison, outputs))
      compare_all(comparison, tolerance, paths, outputs);
    if (trial.distribution == InputDistribution::kOwn) comparison.finite = finite_share(outputs);
    degenerate(comparison, outputs);
    keep_judged(outputs, comparison);
    return {
        {"comparison", to_json(comparison)},
        {"seconds", own_seconds},
        {"oracle_seconds", machine_.work(watch.seconds(), processor_seconds() - processor) - own_seconds}};
  }

  // On distributions whose numbers are as many and as different as the task's own, roundings are alike. Not
  // so of what an approximate instruction gives relative to one, nor of float32, where sums cancel.
  double statistics_slack(InputDistribution kind) const {
    using enum InputDistribution;
    constexpr double kSlack = 2;
    const bool like_own = makes_large(kind) || kind == kSmall;
    return like_own && coarse_ && !near_one_ ? kSlack : 0;
  }

  // Half of the elements have come to one number, which is no bound that the forward names.
  bool is_saturated(const at::Tensor& truth) const {
    constexpr double kNear = 1e-6;
    const auto number = saturated_at(truth);
    return number && std::ranges::none_of(bounds_, [&](double bound) {
             return std::abs(std::abs(*number) - std::abs(bound)) <= kNear * std::abs(bound);
           });
  }

  static bool makes_large(InputDistribution kind) {
    using enum InputDistribution;
    return kind == kHuge || kind == kWide || kind == kNegative || kind == kOutliers || kind == kLarge ||
           kind == kShifted || kind == kFar || kind == kState;
  }

  void run_own(std::map<int, at::Tensor>& values) {
    struct Exchanged {
      Replay& replay;
      ~Exchanged() { replay.exchange_operands({}); }
    } exchanged{*loaded_.replay};
    loaded_.replay->exchange_operands(keep_operands(values));
    loaded_.replay->run_judged(options_);
  }

  Json needs(const Json& document) {
    loaded_.replay->rewind();
    Json inputs = Json::array();
    for (const auto& need : input_sensitivity(*loaded_.replay, options_, document.at("seed").get<uint64_t>(),
                                              document.at("samples").get<int>(),
                                              Deadline::after(document.at("seconds").get<double>())))
      inputs.push_back({{"bytes", need.bytes}, {"tried", need.tried}, {"mattered", need.mattered}});
    return {{"inputs", inputs}};
  }

  // Taken before the answer exists. Where memory is scarce the candidate has released the block, and gets no
  // request until the comparison is done.
  std::vector<OutputTensors> candidates_outputs() const {
    std::vector<OutputTensors> outputs;
    for (size_t i = 0; i < got_layout_.count(); ++i) {
      const auto got = got_layout_.at(got_block_.bytes, i);
      outputs.push_back({.dtype = trace().values[outputs_.at(i)].dtype,
                         .got = frugal_ ? got : copy_of(got),
                         .own = {},
                         .truth = {},
                         .usual_scale = usual_scale(i),
                         .coarse = coarse_,
                         .near_one = near_one_,
                         .repeating = repeating_});
    }
    return outputs;
  }

  // An index is right or wrong, and how nearly is not known: what rounding on the way does to the values that
  // it points to decides.
  bool nearly_agrees(const Comparison& comparison, const std::vector<OutputTensors>& outputs) {
    const auto* recomputed = references_.in_float64();
    const bool wide = recomputed != nullptr && (recomputed->has_softmax() || recomputed->has_roots());
    const double usual = wide ? kNearlyWide : kNearly;
    const double nearly = coarse_ ? kNearlyCoarse : usual;
    if (comparison.agrees) return false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& o = comparison.outputs[i];
      if (!o.agrees && !outputs[i].places &&
          !(o.error <= nearly * o.error_limit && o.norm_error <= nearly * o.norm_limit))
        return false;
    }
    return true;
  }

  // Where PyTorch lets a GPU compute with TF32, an operand may be rounded to it or truncated.
  void take_tf32(const Tolerance& tolerance, const Comparison& comparison,
                 std::vector<OutputTensors>& outputs) {
    auto tf32 = tf32_of(trace(), tolerance.allow_tf32);
    if (comparison.oracle != Oracle::kFloat64 || !uses_tf32(trace(), tf32)) return;
    for (auto& output : outputs) output.coarse = output.tf32 = true;
    for (const bool truncated : {false, true}) {
      tf32.truncated = truncated;
      const auto name = fmt::format("tf32{}{}", tolerance.allow_tf32 ? " all" : "", truncated ? " cut" : "");
      if (auto* recomputed = references_.upcast_to_float64(tf32, name))
        widen(outputs, *recomputed, {}, truncated);
    }
  }

  // Where everything hangs on one number on the way (a loss, a norm), the reference's own error may be small
  // by chance: so it is measured again, with every result on the way rounded up or down.
  void round_intermediates(const Trial& trial, std::vector<OutputTensors>& outputs) {
    auto* recomputed = references_.in_float64();
    for (int i = 0; i < (coarse_ ? kTimesToRoundCoarse : kTimesToRound); ++i)
      widen(outputs, *recomputed, {.coarse = coarse_, .rounding = make_generator(trial.seed + 777 + i)});
    if (coarse_ && recomputed->has_parts()) widen(outputs, *recomputed, {.coarse = true, .in_parts = true});
  }

  // How often inputs are moved: what that does to an output of many elements shows in two tries; to a single
  // element, which one try may leave where it was by chance, it takes more.
  static int times_to_move(const std::vector<OutputTensors>& outputs) {
    const bool few =
        std::ranges::any_of(outputs, [](const OutputTensors& o) { return o.got.numel() <= kFew; });
    return few ? 10 : 2;
  }

  // In the order that the candidate has, where the reference leaves that open.
  std::vector<at::Tensor> recompute(Float64Reference& recomputed, Change change) {
    change.reorder = reorder_;
    return recomputed.run(*loaded_.replay, options_, outputs_, std::move(change));
  }

  // The order of an answer to topk(sorted=False): of its places where these are an output, else of its
  // values. The outputs' truth, and the reference's own, are then those in that order. False where the
  // answer shows none.
  bool follow_order(const Comparison& comparison, std::vector<OutputTensors>& outputs,
                    const std::map<int, at::Tensor>& values) {
    if (comparison.oracle != Oracle::kFloat64 || frugal_) return false;
    const auto storage = [&](ValueId id) { return trace().values[id].storage; };
    std::map<StorageId, std::pair<IndexMaker, at::Tensor>> orders;
    for (const auto& maker : makers_) {
      if (!maker.open_order || !values.contains(maker.step)) continue;
      at::Tensor order;
      for (const bool places : {true, false})
        for (size_t i = 0; i < outputs.size() && !order.defined(); ++i)
          if (outputs_[i] == (places ? maker.result : maker.values))
            order = places ? order_of_places(maker, values.at(maker.step), outputs[i].got)
                           : order_of_values(maker, outputs[i].got);
      if (!order.defined()) continue;
      orders[storage(maker.result)] = orders[storage(maker.values)] = {maker, order};
    }
    if (orders.empty()) return false;
    reorder_ = [orders](StorageId id, const at::Tensor& made) {
      if (const auto found = orders.find(id); found != orders.end())
        made.copy_(in_order(found->second.first, made, found->second.second));
    };
    auto truth = recompute(*references_.in_float64(), {});
    auto& own = *loaded_.replay;
    own.watch_results(reorder_);
    own.run_judged(options_);
    own.watch_results({});
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].truth = std::move(truth[i]), outputs[i].own = taken(own, outputs_[i]);
      outputs[i].statistics.reset();
    }
    own.rewind();
    return true;
  }

  // The reference that computes other truths of the same kind as the comparison's own.
  Float64Reference* truth_reference(const Comparison& comparison) {
    return comparison.oracle == Oracle::kFloat64 ? references_.in_float64() : references_.in_own_dtypes();
  }

  // Keeps what index makers choose from; nothing where there are none or memory is dear.
  Replay::Exchange keep_operands(std::map<int, at::Tensor>& values) const {
    if (makers_.empty() || frugal_) return {};
    return [this, &values](int step, ValueId id, const at::Tensor& operand) {
      for (const auto& maker : makers_)
        if (maker.step == step && maker.operand == id)
          values[step] = operand.detach().to(c10::kDouble, false, true);
      return operand;
    };
  }

  void find_places(const Comparison& comparison, std::vector<OutputTensors>& outputs,
                   const std::map<int, at::Tensor>& values, const std::map<int, at::Tensor>& own_values) {
    if (comparison.oracle != Oracle::kFloat64) return;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!trace::is_integral(outputs[i].dtype) || outputs[i].own.numel() == 0) continue;
      const auto found = index_output(trace(), makers_, outputs_[i]);
      if (!found || !values.contains(found->maker.step) || values.at(found->maker.step).numel() == 0)
        continue;
      outputs[i].places =
          std::make_shared<Places>(*found, trace(), outputs_[i], values.at(found->maker.step));
      outputs[i].chosen_at = found->maker.step;
    }
    widen_places(outputs, own_values);
  }

  void widen_places(std::vector<OutputTensors>& outputs, const std::map<int, at::Tensor>& values) const {
    for (auto& output : outputs)
      if (output.places && values.contains(output.chosen_at)) {
        const auto maker = std::ranges::find(makers_, output.chosen_at, &IndexMaker::step);
        const double eps = epsilon(trace().values[maker->operand].dtype);
        output.places->widen(values.at(output.chosen_at), kFactorOfPlaces, eps);
      }
  }

  // Where a choice among equal numbers decides what is computed from it, any choice is right: elements take
  // what another choice makes of them, if that is what the candidate has.
  bool choose_among_equals(const Trial& trial, const Comparison& comparison,
                           std::vector<OutputTensors>& outputs, const std::map<int, at::Tensor>& values) {
    auto* recomputed = comparison.oracle == Oracle::kFloat64 && !frugal_ ? references_.in_float64() : nullptr;
    std::vector<const IndexMaker*> open;
    for (const auto& maker : makers_)
      if (!maker.stable && values.contains(maker.step) && has_ties(maker, values.at(maker.step)))
        open.push_back(&maker);
    if (!recomputed || open.empty()) return false;
    for (int choice = 1; choice <= kChoices; ++choice) {
      auto generator = make_generator(trial.seed + 7777 + choice);
      const auto choose = [&](StorageId storage, const at::Tensor& made) {
        for (const auto* maker : open)
          if (trace().values[maker->result].storage == storage)
            made.copy_(other_choice(*maker, values.at(maker->step), made, choice, generator));
      };
      const auto others = recompute(*recomputed, {.watch = choose});
      for (size_t i = 0; i < outputs.size(); ++i)
        if (!outputs[i].places) adopt_nearest(outputs[i], others[i]);
    }
    return true;
  }

  void widen(std::vector<OutputTensors>& outputs, Float64Reference& recomputed, Change change,
             bool shifted = true) {
    std::map<int, at::Tensor> values;
    change.exchange = keep_operands(values);
    auto near = recompute(recomputed, std::move(change));
    widen_places(outputs, values);
    for (size_t i = 0; i < outputs.size(); ++i) {
      replay::widen(outputs[i], near[i], shifted);
      near[i].reset();
    }
  }

  void find_undefined(const Trial& trial, const Comparison& comparison, std::vector<OutputTensors>& outputs) {
    if (widened_)
      for (auto& output : outputs) keep_agreeing(output.agreed, output.truth, output.truth);
    if (trial.distribution != InputDistribution::kInfinities &&
        trial.distribution != InputDistribution::kNans)
      return;
    // A forward that says what it makes of them is held to that.
    if (handles_nans(trace())) {
      for (auto& output : outputs) keep_agreeing(output.agreed, output.truth, output.truth);
      return;
    }
    // What is beyond an integer type's range is cast to one number on a CPU: the last of them is within it.
    for (const auto& other : {Change{.nan = 1e9, .infinity = 1e9}, Change{.nan = -1e12, .infinity = 1e12},
                              Change{.nan = 3e4, .infinity = 3e4}}) {
      auto* recomputed = truth_reference(comparison);
      if (!recomputed) return;
      const auto others = recompute(*recomputed, other);
      for (size_t i = 0; i < outputs.size(); ++i)
        keep_agreeing(outputs[i].agreed, outputs[i].truth, others[i]);
    }
  }

  // Of numbers that are close to each other differences lose their digits, and how many
  // depends on the way that they are computed: elements that inputs moved by half an ulp move by 16 of them
  // are not judged.
  void leave_out_ill_conditioned(const Trial& trial, const Comparison& comparison,
                                 std::vector<OutputTensors>& outputs) {
    if (trial.distribution != InputDistribution::kClose || comparison.oracle != Oracle::kFloat64) return;
    const auto moved = recompute(*references_.in_float64(), {.nudge = make_generator(trial.seed + 7)});
    for (size_t i = 0; i < outputs.size(); ++i) forget_ill_conditioned(outputs[i], moved[i]);
  }

  // Where infinities or NaNs are what does not agree, elements that hang on how a sum is taken, or on whether
  // a number just overflows, are not judged: their own number becomes NaN where the truth is finite. False
  // where there are none.
  bool leave_out_undecided(const Comparison& comparison, std::vector<OutputTensors>& outputs) {
    if (!is_odd(comparison) || comparison.oracle != Oracle::kFloat64) return false;
    auto* recomputed = references_.order_checked();
    if (!recomputed) recomputed = references_.in_float64();
    auto marked = recompute(*recomputed, {.mark_overflow = true});
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      any |= forget_others(outputs[i], marked[i]);
      marked[i].reset();
    }
    return any;
  }

  // On inputs that are not the task's own, a candidate that takes a product or a sum in another order may
  // overflow where the reference just does not: elements that inputs a quarter larger would make infinite are
  // not judged. False where there are none.
  bool leave_out_nearly_infinite(const Trial& trial, const Comparison& comparison,
                                 std::vector<OutputTensors>& outputs) {
    constexpr double kLarger = 1.25;
    if (trial.distribution == InputDistribution::kOwn || !is_odd(comparison)) return false;
    auto* recomputed = comparison.oracle == Oracle::kFloat64 ? references_.in_float64() : nullptr;
    if (!recomputed) return false;
    auto scaled = recompute(*recomputed, {.scale = kLarger});
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      any |= forget_nearly_infinite(outputs[i], scaled[i]);
      scaled[i].reset();
    }
    return any;
  }

  // A score that overflows, before or after it is scaled, may decide which finite number comes out: elements
  // at which the reference's own types have no digit right for inputs a few times larger are not judged.
  // False where there are none.
  bool leave_out_near_overflow(const Trial& trial, const Comparison& comparison,
                               std::vector<OutputTensors>& outputs) {
    constexpr double kLarger = 16;
    if (trial.distribution != InputDistribution::kFar || comparison.oracle != Oracle::kFloat64) return false;
    const auto own = recompute(*references_.in_own_dtypes(), {.scale = kLarger});
    const auto truth = recompute(*references_.in_float64(), {.scale = kLarger});
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i) any |= forget_near_overflow(outputs[i], own[i], truth[i]);
    return any;
  }

  // Overflow may give another infinity, or a NaN, where sums and products are taken in another order. False
  // where there are none.
  static bool leave_out_overflown(const Trial& trial, Comparison& comparison,
                                  std::vector<OutputTensors>& outputs) {
    using enum InputDistribution;
    const auto kind = trial.distribution;
    if (kind == kOwn || kind == kInfinities || kind == kNans || !is_odd(comparison)) return false;
    for (auto& output : outputs) comparison.overflown += forget_overflown(output);
    return comparison.overflown > 0;
  }

  // A result that a forward subtracts from itself, or from a sum that begins with it, leaves exactly zero;
  // and rounding noise where kernels compute it anew for each of its readers. On a grid, results may be equal
  // to bounds but for rounding. Elements that hang on that (zero divided by its norm, a comparison) are not
  // judged. False where there are none, or more than half are and the inputs are on no grid.
  bool leave_out_hanging(const Trial& trial, const Comparison& comparison,
                         std::vector<OutputTensors>& outputs) {
    constexpr int kTimes = 3;
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const bool grid = trial.distribution == InputDistribution::kGrid;
    auto* recomputed = comparison.oracle == Oracle::kFloat64 && !coarse_ ? references_.in_float64() : nullptr;
    const bool approximate = recomputed && recomputed->has_approximate_results();
    if (!recomputed || !(grid || approximate || recomputed->has_shared_results())) return false;
    // What the task's own inputs show is not left out as a whole.
    const bool any_share = grid || (approximate && trial.distribution != InputDistribution::kOwn);
    // 32 ulps of float32; of what functions make by chance, 4.
    const double least_moved = any_share && !grid ? 0x1p-21 : 0x1p-18;
    std::vector<at::Tensor> moved(outputs.size());  // the most that a sample moves each element
    for (int time = 0; time < (grid ? 2 : 1) * kTimes; ++time) {
      const auto generator = make_generator(trial.seed + 77777 + static_cast<uint64_t>(time));
      Change change;
      if (time < kTimes) change.apart = generator;
      if (time >= kTimes) change.rounding = generator, change.coarse = true;
      const auto others = recompute(*recomputed, std::move(change));
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto& truth = outputs[i].truth;
        if (truth.scalar_type() != c10::kDouble || truth.numel() == 0) continue;
        const auto by = others[i].sub(truth).abs_().nan_to_num_(kInfinite);
        moved[i] = moved[i].defined() ? moved[i].maximum(by) : by;
      }
    }
    bool any = false;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (moved[i].defined()) any |= forget_hanging(outputs[i], moved[i], least_moved, any_share);
    return any;
  }

  void compare_all(Comparison& comparison, const Tolerance& tolerance, const std::vector<std::string>& paths,
                   const std::vector<OutputTensors>& outputs) const {
    comparison.outputs.clear();
    comparison.agrees = true;
    int64_t elements = 0, undefined = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto output = compare(outputs[i], tolerance);
      output.path = paths.at(i);
      comparison.agrees &= output.agrees;
      elements += output.elements;
      undefined += output.undefined;
      comparison.outputs.push_back(std::move(output));
    }
    comparison.defined = elements == 0 || undefined < elements;
  }

  void note_unmoved(const std::vector<OutputTensors>& outputs) {
    if (tracks_unmoved_ && !frugal_) unmoved_.note(outputs);
  }
  Json unmoved(bool again) {
    if (again) note_unmoved(candidates_outputs());
    return unmoved_.found();
  }

  double usual_scale(size_t i) const { return i < usual_scales_.size() ? usual_scales_[i] : 0; }

  void compute_truth(std::vector<OutputTensors>& outputs, Comparison& comparison,
                     std::map<int, at::Tensor>& values) {
    auto* recomputed = references_.in_float64();
    try {
      if (recomputed) {
        auto truth = recompute(*recomputed, {.exchange = keep_operands(values)});
        for (size_t i = 0; i < outputs.size(); ++i) outputs[i].truth = std::move(truth[i]);
        return;
      }
    } catch (const Failed& failed) {  // no float64 kernel for some operator
      references_.give_up_float64(
          fmt::format("in float64: {}{}", failed.where ? describe(*failed.where) + ": " : "", failed.what()));
    }
    comparison.oracle = Oracle::kOwn;
    comparison.oracle_note = references_.why_not();
  }

  // Whether the task says anything: outputs that are one number, or the same whatever goes in.
  void degenerate(Comparison& comparison, const std::vector<OutputTensors>& outputs) {
    comparison.constant = !outputs.empty();
    comparison.insensitive = !outputs.empty() && !earlier_.empty();
    int64_t bytes = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      bytes += static_cast<int64_t>(outputs[i].truth.nbytes());
      if (outputs[i].own.numel() == 0) continue;
      auto& recomputed = comparison.outputs[i];
      const auto& truth = outputs[i].truth;
      const auto flat = truth.reshape({-1});
      comparison.constant &= is_constant(outputs[i].own);
      recomputed.constant =
          flat.numel() > 1 && is_close(flat, flat.narrow(0, 0, 1).expand_as(flat), recomputed.error_limit);
      if (!earlier_.empty()) recomputed.insensitive = is_close(truth, earlier_[i], recomputed.error_limit);
      comparison.insensitive &= recomputed.insensitive;
    }
    if (!earlier_.empty() || bytes > kMaxRemembered) return;
    for (const auto& output : outputs) {
      earlier_.push_back(output.truth.clone());
      usual_scales_.push_back(trace::is_integral(dtype_of(output.truth.scalar_type())) ? 0
                                                                                       : rms(output.truth));
    }
  }

  Machine& machine_;
  Loaded loaded_;
  TrialInputs inputs_{loaded_};
  OtherReferences references_{loaded_, machine_};
  std::vector<ValueId> outputs_;  // outputs, then what the forward writes of inputs and state
  std::vector<ValueId> shared_;   // state, then inputs
  BlockLayout layout_, got_layout_;
  SharedBlock block_, got_block_;
  bool frugal_ = false;
  bool widened_ =
      false;  // the trial's inputs or state are not such as the task's own: judged where that makes numbers
  std::vector<ValueId> paired_;  // state that the candidate has, too
  std::vector<IndexMaker> makers_;
  Replay::Watcher reorder_;  // of the trial being judged: see follow_order
  bool repeating_ = false;
  bool coarse_ = false;         // the forward rounds to 16 bits or less
  bool near_one_ = false;       // see OutputTensors::near_one
  std::vector<double> bounds_;  // of the forward's clamps
  bool tracks_unmoved_ = false;
  UnmovedElements unmoved_;
  std::vector<bool> moved_;  // of `shared_`: it is in the block where memory is dear
  RunOptions options_;
  std::optional<Judged> judged_;
  std::vector<at::Tensor> earlier_;  // the first trial's truth
  std::vector<double> usual_scales_;
};

}  // namespace

std::unique_ptr<Role> make_reference_role(Machine& machine) {
  return std::make_unique<ReferenceRole>(machine);
}

}  // namespace nereid::replay
