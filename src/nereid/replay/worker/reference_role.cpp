// The reference's worker. Requests:
//   load {"threads"} + trace, position -> {"peak_bytes", "keeps_inputs", "calls_used", "inputs_written":
//   [index...]} share {"states": [value...], "calls": [call...]} -> {} + the block that state and inputs are
//   copied to attach {"outputs": [{"dtype", "sizes"}...]} + the block of the candidate's outputs prepare
//   {"trial"} -> {"applicable", "seconds"}: makes state and inputs, and copies them judge {"trial",
//   "tolerance", "paths"} -> {"comparison", "seconds", "oracle_seconds"}: runs and compares
#include <ATen/Functions.h>

#include <cstring>
#include <map>

#include "nereid/base/deadline.h"
#include "nereid/replay/lift.h"
#include "nereid/replay/worker/block.h"
#include "nereid/replay/worker/compare.h"
#include "nereid/replay/worker/inputs.h"
#include "nereid/replay/worker/role.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

constexpr int64_t kMaxRemembered = int64_t{1} << 28;  // bytes of an earlier trial's truth kept for comparison

at::Generator make_generator(uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  generator.set_current_seed(seed);
  return generator;
}

constexpr int64_t kGlance = 256;  // elements that settle most questions about a whole tensor

// Whether all elements are one number; one alone says nothing.
bool is_constant(const at::Tensor& tensor) {
  const auto flat = tensor.reshape({-1});
  const auto all_are_first = [&](const at::Tensor& part) {
    return part.eq(flat.narrow(0, 0, 1)).all().item().toBool();
  };
  return flat.numel() > 1 && all_are_first(flat.narrow(0, 0, std::min(flat.numel(), kGlance))) &&
         all_are_first(flat);
}

// Whether no element differs by more than `limit` in units of max(|b|, rms(a)).
bool is_close(const at::Tensor& first, const at::Tensor& second, double limit) {
  const auto a = (first.is_complex() ? at::view_as_real(first) : first).reshape({-1});
  const auto b = (second.is_complex() ? at::view_as_real(second) : second).reshape({-1});
  const auto scale = std::max(rms(a), 1e-300);
  const auto close = [&](const at::Tensor& x, const at::Tensor& y) {
    return at::isclose(x.to(c10::kDouble), y.to(c10::kDouble), limit, limit * scale, true)
        .all()
        .item()
        .toBool();
  };
  const auto glance = std::min(a.numel(), kGlance);
  return close(a.narrow(0, 0, glance), b.narrow(0, 0, glance)) && close(a, b);
}

// How inputs and state are changed before they are retold.
struct Change {
  std::optional<at::Generator> nudge = {};        // by half an ulp either way
  std::optional<double> nan = {}, infinity = {};  // what stands for a NaN, and for an infinity with its sign
};

// The same judged forward under other arithmetic: lifted to float64 or in its own dtype.
class Retelling {
 public:
  Retelling(Lifted lifted, Machine& machine) : lifted_(std::move(lifted)), machine_(machine) {
    program_ = Program::prepare(lifted_.trace, machine, {.may_keep_inputs = true});
    replay_ = std::make_unique<Replay>(*program_, machine);
  }

  // Runs from the state that `own` begins its judged forward with. Floating-point state and inputs are
  // changed first.
  std::vector<at::Tensor> run(Replay& own, const RunOptions& options, const std::vector<ValueId>& outputs,
                              Change change) {
    replay_->reset();
    const auto& trace = own.program().trace();
    for (const auto id : program_->live_in()) {
      if (!own.bound(id) || trace.storages[id].role == trace::Role::kConstant) continue;
      replay_->bind_storage(id, converted(own, id, change));
    }
    replay_->run_judged(options);
    std::vector<at::Tensor> out;
    for (const auto id : outputs) out.push_back(replay_->value(id).clone());
    return out;
  }

 private:
  c10::Storage converted(Replay& own, StorageId id, Change& change) {
    const auto& storage = own.program().trace().storages[id];
    const auto bytes = bytes_of(own.storage(id), storage.bytes);
    const auto was = lifted_.was[id];
    if (!was) return bytes.clone().storage();
    const auto real = *was == trace::DType::kC64   ? trace::DType::kF32
                      : *was == trace::DType::kC32 ? trace::DType::kF16
                                                   : *was;
    const auto whole = storage.bytes / trace::element_bytes(real) * trace::element_bytes(real);
    auto lifted = bytes.narrow(0, 0, whole)
                      .view(scalar_type(real))
                      .to(lifted_.same_dtype ? scalar_type(real) : c10::kDouble);
    if (lifted_.same_dtype) lifted = lifted.clone();
    if (change.nudge) move_half_ulp(lifted, real, *change.nudge);
    if (change.nan) lifted.nan_to_num_(*change.nan, *change.infinity, -*change.infinity);
    return lifted.storage();
  }

  Lifted lifted_;
  Machine& machine_;
  std::unique_ptr<const Program> program_;
  std::unique_ptr<Replay> replay_;
};

class ReferenceRole : public Role {
 public:
  explicit ReferenceRole(Machine& machine) : machine_(machine) {}

  Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) override {
    const auto& document = request.document;
    if (verb == "load") return load_trace(request);
    if (!loaded_.replay) throw std::runtime_error("nothing is loaded");
    if (verb == "share") return share(document, descriptors);
    if (verb == "attach") return attach(request);
    if (verb == "prepare") return prepare(trial_from_json(document.at("trial")));
    if (verb == "judge")
      return judge(trial_from_json(document.at("trial")), tolerance_from_json(document.at("tolerance")),
                   document.at("paths").get<std::vector<std::string>>());
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
    Json written = Json::array();
    const auto inputs = trace::tensors_in(program.phases()[program.judged()].phase->inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::ranges::find(program.judged_writes(), trace().values[inputs[i]].storage) !=
          program.judged_writes().end()) {
        written.push_back(i);
        outputs_.push_back(inputs[i]);
      }
    // Own dtype and float64 together, and the copies that are compared.
    int64_t lifted = 0;
    for (const auto& storage : trace().storages) lifted = std::max(lifted, storage.bytes);
    return {{"peak_bytes", 3 * program.peak_bytes() + 8 * lifted},
            {"keeps_inputs", program.keeps_inputs()},
            {"calls_used", program.calls_used()},
            {"inputs_written", written}};
  }

  std::vector<ValueId> inputs_of(int call) const {
    for (const auto& phase : trace().phases)
      if (phase.kind == trace::PhaseKind::kMakeInputs && phase.call == call)
        return trace::tensors_in(phase.inputs);
    return {};
  }

  Json share(const Json& document, std::vector<int>& descriptors) {
    shared_ = document.at("states").get<std::vector<ValueId>>();
    for (const auto& call : document.at("calls"))
      for (const auto value : inputs_of(call)) shared_.push_back(value);
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
    if (request.descriptors.empty()) throw std::runtime_error("attach: expected a block");
    got_block_ = machine_.open(std::move(request.descriptors[0]), got_layout_.bytes());
    return {{"ok", true}};
  }

  Json prepare(const Trial& trial) {
    const Stopwatch watch;
    auto& replay = *loaded_.replay;
    options_ = RunOptions{.seed = trial.seed};
    auto generator = make_generator(trial.seed ^ 0x5EED);
    replay.start(options_,
                 [&](StorageId storage, Replay&) {
                   if (trial.perturb) perturb_state(storage, generator);
                 },
                 {});
    const bool applied = trial.kind == InputKind::kOwn || change_inputs(trial.kind, generator);
    replay.begin_judged();
    if (applied)
      for (size_t i = 0; i < shared_.size(); ++i) layout_.at(block_.bytes, i).copy_(replay.value(shared_[i]));
    machine_.synchronize();
    return {{"applicable", applied}, {"seconds", watch.seconds()}};
  }

  void perturb_state(StorageId storage, at::Generator& generator) {
    for (const auto& state : trace().state) {
      const bool running = state.name.ends_with("running_mean") || state.name.ends_with("running_var");
      if (trace().values[state.value].storage != storage || !(state.parameter || running)) continue;
      if (loaded_.replay->bound(storage)) perturb(loaded_.replay->value(state.value), generator);
    }
  }

  bool change_inputs(InputKind kind, at::Generator& generator) {
    bool any = false;
    for (const auto call : loaded_.program->calls_used())
      for (const auto value : inputs_of(call))
        if (loaded_.replay->bound(trace().values[value].storage))
          any |= apply_kind(loaded_.replay->value(value), kind, generator);
    return any;
  }

  Json judge(const Trial& trial, const Tolerance& tolerance, const std::vector<std::string>& paths) {
    const Stopwatch watch;
    // Taken before the answer exists.
    std::vector<at::Tensor> got;
    for (size_t i = 0; i < got_layout_.count(); ++i)
      got.push_back(got_layout_.at(got_block_.bytes, i).clone());
    auto& replay = *loaded_.replay;
    replay.run_judged(options_);
    std::vector<at::Tensor> own;
    for (const auto id : outputs_) own.push_back(replay.value(id).clone());
    const double own_seconds = watch.seconds();
    replay.rewind();

    Comparison comparison;
    auto truth = tell_truth(tolerance, comparison);
    if (comparison.oracle == Oracle::kOwn) {
      truth.clear();
      for (const auto& tensor : own) truth.push_back(tensor);
    }
    std::vector<std::vector<at::Tensor>> nearby(own.size());
    const auto add_nearby = [&](const std::vector<at::Tensor>& tensors) {
      for (size_t i = 0; i < tensors.size(); ++i) nearby[i].push_back(tensors[i]);
    };
    const auto tf32 = tf32_of(trace(), tolerance.allow_tf32);
    if (comparison.oracle == Oracle::kFloat64 && uses_tf32(trace(), tf32))
      if (auto* told = retelling(tf32, tolerance.allow_tf32 ? "tf32 all" : "tf32"))
        add_nearby(told->run(replay, options_, outputs_, {}));
    const auto move_inputs = [&] {
      comparison.conditioned = true;
      auto* told = comparison.oracle == Oracle::kFloat64 ? retelling({}, "f64") : own_retelling();
      for (int i = 0; i < 2 && told; ++i)
        add_nearby(told->run(replay, options_, outputs_, {.nudge = make_generator(trial.seed + 77 + i)}));
    };
    if (comparison.oracle == Oracle::kOwn) move_inputs();
    std::vector<std::vector<at::Tensor>> finite(own.size());
    if (trial.kind == InputKind::kInfinities || trial.kind == InputKind::kNans)
      for (const auto& huge : {Change{{}, 1e9, 1e9}, Change{{}, -1e12, 1e12}})
        if (auto* told = comparison.oracle == Oracle::kFloat64 ? retelling({}, "f64") : own_retelling()) {
          const auto tensors = told->run(replay, options_, outputs_, huge);
          for (size_t i = 0; i < tensors.size(); ++i) finite[i].push_back(tensors[i]);
        }
    if (trial.kind == InputKind::kFlipped)
      for (size_t i = 0; i < own.size(); ++i) finite[i].push_back(truth[i]);
    compare_all(comparison, tolerance, paths, got, own, truth, nearby, finite);
    // An output that its inputs' own rounding moves that far cannot be asked for more.
    if (!comparison.agrees && !comparison.conditioned && !tolerance.rtol && !tolerance.atol) {
      move_inputs();
      compare_all(comparison, tolerance, paths, got, own, truth, nearby, finite);
    }
    degenerate(comparison, own, truth);
    return {{"comparison", to_json(comparison)},
            {"seconds", own_seconds},
            {"oracle_seconds", watch.seconds() - own_seconds}};
  }

  void compare_all(Comparison& comparison, const Tolerance& tolerance, const std::vector<std::string>& paths,
                   const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& own,
                   const std::vector<at::Tensor>& truth, const std::vector<std::vector<at::Tensor>>& nearby,
                   const std::vector<std::vector<at::Tensor>>& finite) {
    comparison.outputs.clear();
    comparison.agrees = true;
    int64_t elements = 0, undefined = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      OutputTensors tensors{trace().values[outputs_[i]].dtype,
                            got.at(i),
                            own[i],
                            truth[i],
                            nearby[i],
                            usual_scale(i),
                            finite[i]};
      auto output = compare(tensors, tolerance);
      output.path = paths.at(i);
      comparison.agrees &= output.agrees;
      elements += output.elements;
      undefined += output.undefined;
      comparison.outputs.push_back(std::move(output));
    }
    comparison.defined = elements == 0 || undefined < elements;
  }

  double usual_scale(size_t i) const { return i < usual_scales_.size() ? usual_scales_[i] : 0; }

  std::vector<at::Tensor> tell_truth(const Tolerance&, Comparison& comparison) {
    auto* told = retelling({}, "f64");
    if (!told) {
      comparison.oracle = Oracle::kOwn;
      comparison.oracle_note = unliftable_;
      return {};
    }
    try {
      return told->run(*loaded_.replay, options_, outputs_, {});
    } catch (const Failed& failed) {  // no float64 kernel for some operator
      unliftable_ =
          fmt::format("in float64: {}{}", failed.where ? describe(*failed.where) + ": " : "", failed.what());
      retellings_["f64"] = nullptr;
      comparison.oracle = Oracle::kOwn;
      comparison.oracle_note = unliftable_;
      return {};
    }
  }

  Retelling* retelling(const Tf32& tf32, const std::string& name) {
    const auto found = retellings_.find(name);
    if (found != retellings_.end()) return found->second.get();
    auto& made = retellings_[name];
    auto lifted = lift(trace(), tf32);
    if (!lifted.ok()) {
      unliftable_ = lifted.error().message;
      return nullptr;
    }
    try {
      made = std::make_unique<Retelling>(std::move(lifted).value(), machine_);
    } catch (const Failed& failed) {
      unliftable_ = failed.what();
    }
    return made.get();
  }

  Retelling* own_retelling() {
    auto& made = retellings_["own"];
    if (!made) made = std::make_unique<Retelling>(keep_dtypes(trace()), machine_);
    return made.get();
  }

  // Whether the task says anything: outputs that are one number, or the same whatever goes in.
  void degenerate(Comparison& comparison, const std::vector<at::Tensor>& own,
                  const std::vector<at::Tensor>& truth) {
    comparison.constant = !own.empty();
    comparison.insensitive = !own.empty() && !earlier_.empty();
    int64_t bytes = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      bytes += truth[i].nbytes();
      if (own[i].numel() == 0) continue;
      comparison.constant &= is_constant(own[i]);
      if (!earlier_.empty() && comparison.insensitive)
        comparison.insensitive = is_close(truth[i], earlier_[i], comparison.outputs[i].error_limit);
    }
    if (!earlier_.empty() || bytes > kMaxRemembered) return;
    for (const auto& tensor : truth) {
      earlier_.push_back(tensor.clone());
      usual_scales_.push_back(trace::is_integral(dtype_of(tensor.scalar_type())) ? 0 : rms(tensor));
    }
  }

  Machine& machine_;
  Loaded loaded_;
  std::vector<ValueId> outputs_;  // outputs, then the inputs that the forward writes
  std::vector<ValueId> shared_;   // state, then inputs
  BlockLayout layout_, got_layout_;
  SharedBlock block_, got_block_;
  RunOptions options_;
  std::map<std::string, std::unique_ptr<Retelling>> retellings_;  // null: cannot be
  std::string unliftable_;
  std::vector<at::Tensor> earlier_;  // the first trial's truth
  std::vector<double> usual_scales_;
};

}  // namespace

std::unique_ptr<Role> make_reference_role(Machine& machine) {
  return std::make_unique<ReferenceRole>(machine);
}

}  // namespace nereid::replay
