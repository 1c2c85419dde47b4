#include "nereid/replay/worker/compare/float64_reference.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "nereid/replay/worker/inputs/attention_rounding.h"
#include "nereid/replay/worker/inputs/rounding.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/access.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

at::Tensor taken(Replay& replay, ValueId id) {
  const auto& trace = replay.program().trace();
  const auto tensor = replay.value(id).detach();
  const auto storage = trace.values[id].storage;
  const bool small_part = 2 * static_cast<int64_t>(tensor.nbytes()) < trace.storages[storage].bytes;
  return replay.made_by_judged(storage) && !small_part ? tensor : tensor.clone();
}

Float64Reference::Float64Reference(Upcast upcasted, std::vector<ValueId> watched, Machine& machine)
    : upcast_(std::move(upcasted)), machine_(machine) {
  program_ = Program::prepare(upcast_.trace, machine,
                              {.may_keep_inputs = true, .watched = std::move(watched), .spend = true});
  replay_ = std::make_unique<Replay>(*program_, machine);
}

namespace {

constexpr std::string_view kMeans[] = {
    "mean",       "native_layer_norm", "layer_norm",       "native_group_norm", "group_norm",
    "batch_norm", "native_batch_norm", "cudnn_batch_norm", "instance_norm"};
constexpr std::string_view kProducts[] = {"mm", "bmm",   "addmm", "baddbmm", "addbmm", "matmul",
                                          "mv", "addmv", "dot",   "vdot",    "linear"};
constexpr std::string_view kConvolutions[] = {"convolution",      "conv1d",          "conv2d",
                                              "conv3d",           "_convolution",    "conv_transpose1d",
                                              "conv_transpose2d", "conv_transpose3d"};
constexpr std::string_view kScans[] = {"cumsum"};
constexpr std::string_view kRoots[] = {"std",  "std_mean", "norm", "linalg_vector_norm", "frobenius_norm",
                                       "cdist"};
constexpr std::string_view kAttentions[] = {"scaled_dot_product_attention"};
constexpr std::string_view kApproximate[] = {"softplus",     "log1p",      "expm1",
                                             "logsumexp",    "logaddexp",  "logaddexp2",
                                             "exp",          "exp2",       "log",
                                             "log2",         "log10",      "sqrt",
                                             "rsqrt",        "reciprocal", "div",
                                             "pow",          "tanh",       "sigmoid",
                                             "log_sigmoid",  "erf",        "mean",
                                             "softmax",      "_softmax",   "log_softmax",
                                             "_log_softmax", "norm",       "linalg_vector_norm"};
constexpr std::string_view kSoftmaxes[] = {"softmax", "_softmax", "log_softmax", "_log_softmax"};

const trace::Arg* argument(const trace::Call& call, size_t position, std::string_view name) {
  if (position < call.args.size()) return &call.args[position];
  const auto found = std::ranges::find(call.kwargs, name, [](const auto& kwarg) { return kwarg.first; });
  return found == call.kwargs.end() ? nullptr : &found->second;
}

bool is_true(const trace::Arg* arg) {
  const auto* flag = arg ? std::get_if<bool>(&arg->node) : nullptr;
  return flag && *flag;
}

std::optional<double> number_in(const trace::Arg* arg) {
  if (!arg) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(&arg->node)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&arg->node);
  return number ? std::optional(*number) : std::nullopt;
}

bool is_among(std::span<const std::string_view> names, std::string_view op) {
  return std::ranges::find(names, trace::split_name(op).name) != names.end();
}

struct Exponents {
  at::Tensor numbers;
  bool logarithm = false;
};

// What tanh.approx may stand in for: its error, relative to one, is multiplied by the weight in the result,
// and by the size of the first operand where that is a factor (GELU).
struct ApproximateFunction {
  std::string_view name;
  double weight;
  bool of_operand;
};
constexpr ApproximateFunction kApproximateFunctions[] = {
    {"tanh", 1, false},  {"tanh_", 1, false},   {"sigmoid", 0.5, false}, {"sigmoid_", 0.5, false},
    {"gelu", 0.5, true}, {"gelu_", 0.5, true},  {"silu", 0.5, true},     {"silu_", 0.5, true},
    {"mish", 1, true},   {"mish_", 1, true},    {"glu", 0.5, false},     {"lstm", 1, false},
    {"gru", 1, false},   {"rnn_tanh", 1, false}};
constexpr double kTanhApprox = 0x1p-11;

const ApproximateFunction* near_one(std::string_view op) {
  const auto* found =
      std::ranges::find(kApproximateFunctions, trace::split_name(op).name, &ApproximateFunction::name);
  return found == std::end(kApproximateFunctions) ? nullptr : found;
}

// The weight of a normalisation and its bias, or a product's bias: their positions among the arguments (-1:
// there is none), and whether they belong to dimension 1 or to the last ones.
struct AffineStep {
  std::string_view name;
  int weight, bias;
  bool of_channels;
};
constexpr AffineStep kAffineSteps[] = {{"layer_norm", 2, 3, false},      {"native_layer_norm", 2, 3, false},
                                       {"rms_norm", 2, -1, false},       {"_fused_rms_norm", 2, -1, false},
                                       {"group_norm", 2, 3, true},       {"native_group_norm", 1, 2, true},
                                       {"batch_norm", 1, 2, true},       {"native_batch_norm", 1, 2, true},
                                       {"cudnn_batch_norm", 1, 2, true}, {"instance_norm", 1, 2, true},
                                       {"linear", -1, 2, false},         {"addmm", -1, 0, false},
                                       {"convolution", -1, 2, true},     {"_convolution", -1, 2, true},
                                       {"conv1d", -1, 2, true},          {"conv2d", -1, 2, true},
                                       {"conv3d", -1, 2, true}};

const AffineStep* affine_step(const trace::Step& step) {
  const auto* call = std::get_if<trace::Call>(&step);
  if (!call) return nullptr;
  const auto* found = std::ranges::find(kAffineSteps, trace::split_name(call->op).name, &AffineStep::name);
  // A bias that is scaled is not followed.
  const bool scaled = std::ranges::any_of(
      call->kwargs, [](const auto& kwarg) { return kwarg.first == "beta" || kwarg.first == "alpha"; });
  return found == std::end(kAffineSteps) || scaled ? nullptr : found;
}

struct Affine {
  at::Tensor weight, bias;
  bool of_channels = false;

  // Convolutions of one image have no dimension for a batch.
  bool fits(const at::Tensor& made) const {
    const auto& any = weight.defined() ? weight : bias;
    return !of_channels || made.dim() < 2 || made.size(1) == any.numel();
  }
  at::Tensor over(const at::Tensor& parameter, const at::Tensor& made) const {
    if (!of_channels || made.dim() < 2) return parameter;
    std::vector<int64_t> sizes(static_cast<size_t>(made.dim()), 1);
    sizes[1] = parameter.numel();
    return parameter.reshape(sizes);
  }
};

}  // namespace

std::vector<at::Tensor> Float64Reference::run(Replay& own, const RunOptions& options,
                                              const std::vector<ValueId>& outputs, Change change) {
  replay_->reset();
  const auto& trace = own.program().trace();
  // Constants are the upcast trace's own, unless they are what a trial may have changed.
  std::set<StorageId> given;
  for (const auto& state : trace.state) given.insert(trace.values[state.value].storage);
  for (const auto value : trace::tensors_in(own.program().phases()[own.program().judged()].phase->inputs))
    given.insert(trace.values[value].storage);
  for (const auto id : program_->live_in()) {
    if (!own.bound(id) || (trace.storages[id].role == trace::Role::kConstant && !given.contains(id)))
      continue;
    replay_->bind_storage(id, converted(own, id, change));
  }
  if (change.exchange) replay_->exchange_operands(change.exchange);
  replay_->tf32 = change.tf32;
  reorder_ = change.reorder;
  watch(change.watch);
  if (change.rounding) round_on_the_way(*change.rounding, change.coarse, change.exchange);
  if (change.in_parts) round_parts(change.exchange);
  if (change.apart) round_apart(*change.apart);
  if (change.odd_attention) fill_odd_attention(*change.odd_attention);
  if (change.mark_overflow)
    watch([this, chosen = replaced_infinities()](StorageId id, const at::Tensor& made) {
      if (const auto was = upcast_.was[id]; was && !chosen.contains(id))
        replay::mark_overflow(made, real_of(*was));
    });
  std::vector<at::Tensor> out;
  try {
    replay_->run_judged(options);
    for (const auto id : outputs) out.push_back(taken(*replay_, id));
  } catch (...) {
    replay_->watch_results({}), replay_->exchange_operands({});
    replay_->let_go();
    throw;
  }
  replay_->watch_results({}), replay_->exchange_operands({});
  replay_->let_go();
  machine_.trim();
  return out;
}

void Float64Reference::watch(Replay::Watcher watcher) {
  if (!reorder_) return replay_->watch_results(std::move(watcher));
  replay_->watch_results([first = reorder_, then = std::move(watcher)](StorageId id, const at::Tensor& made) {
    first(id, made);
    if (then) then(id, made);
  });
}

void Float64Reference::round_on_the_way(at::Generator generator, bool coarse, const Replay::Exchange& then) {
  // By the storage of the result: what softmaxes and attention are taken of, and what an approximate tanh may
  // err by.
  const auto exponents = std::make_shared<std::map<StorageId, Exponents>>();
  const auto attentions = std::make_shared<std::map<StorageId, Attention>>();
  const auto approximate = std::make_shared<std::map<StorageId, at::Tensor>>();
  const auto terms = coarse ? std::map<StorageId, double>() : terms_of_sums();
  const auto roots = coarse ? std::set<StorageId>() : roots_of_squares();
  watch([=, this](StorageId id, const at::Tensor& made) {
    const auto was = upcast_.was[id];
    if (!was) return;
    if (const auto of = terms.find(id); of != terms.end())
      move_sums(made, of->second, real_of(*was), generator);
    if (roots.contains(id)) flush_small_squares(made, real_of(*was));
    if (auto of = approximate->extract(id)) move_up_or_down(made, of.mapped(), generator);
    if (auto of = attentions->extract(id)) round_probabilities(made, of.mapped(), real_of(*was), generator);
    coarse ? add_rounding_noise(made, real_of(*was), generator)
           : round_by_chance(made, real_of(*was), generator);
    if (auto of = exponents->extract(id))
      move_exponents(made, of.mapped().numbers, of.mapped().logarithm, real_of(*was), generator);
  });
  replay_->exchange_operands([=, this](int step, ValueId id, const at::Tensor& operand) {
    keep_attention(step, id, operand, *attentions);
    const auto was = upcast_.was[upcast_.trace.values[id].storage];
    const auto* call = was ? call_on(step, id) : nullptr;
    auto moved = operand;
    if (call == nullptr) return then ? then(step, id, moved) : moved;
    const auto results = trace::tensors_in(call->result);
    if (const auto* function = coarse && real_of(*was) == trace::DType::kF16 ? near_one(call->op) : nullptr)
      for (const auto result : results)
        (*approximate)[upcast_.trace.values[result].storage] =
            (function->of_operand ? operand.detach().abs() : at::ones({}, operand.options()))
                .mul(function->weight * kTanhApprox);
    if (!coarse && is_among(kMeans, call->op)) {
      moved = operand.detach().clone();
      move_half_ulp(moved, real_of(*was), generator);
    }
    // Scores are sums of products that no watcher sees.
    if (!coarse && is_among(kAttentions, call->op) && operand.dim() > 0) {
      moved = operand.detach().clone();
      move_sums(moved, static_cast<double>(operand.size(-1)), real_of(*was), generator);
    }
    if (!coarse && is_among(kSoftmaxes, call->op))
      for (const auto result : results)
        (*exponents)[upcast_.trace.values[result].storage] = {operand.detach(),
                                                              call->op.find("log") != std::string::npos};
    return then ? then(step, id, moved) : moved;
  });
}

void Float64Reference::fill_odd_attention(double with) {
  const auto attentions = std::make_shared<std::map<StorageId, Attention>>();
  replay_->exchange_operands([=, this](int step, ValueId id, const at::Tensor& operand) {
    keep_attention(step, id, operand, *attentions);
    return operand;
  });
  watch([=](StorageId id, const at::Tensor& made) {
    const auto of = attentions->extract(id);
    if (!of || !of.mapped().query.defined() || of.mapped().query.dim() != made.dim()) return;
    made.masked_fill_(at::isfinite(of.mapped().query).all(-1, true).logical_not_(), with);
  });
}

void Float64Reference::keep_attention(int step, ValueId id, const at::Tensor& operand,
                                      std::map<StorageId, Attention>& by_result) const {
  const auto& steps = judged_steps();
  const auto* call =
      static_cast<size_t>(step) < steps.size() ? std::get_if<trace::Call>(&steps[step]) : nullptr;
  if (!call || !is_among(kAttentions, call->op) || trace::draws_random(*call)) return;
  const auto results = trace::tensors_in(call->result);
  if (results.empty()) return;
  auto& attention = by_result[upcast_.trace.values[results[0]].storage];
  const std::pair<const char*, at::Tensor*> operands[] = {{"query", &attention.query},
                                                          {"key", &attention.key},
                                                          {"value", &attention.value},
                                                          {"attn_mask", &attention.mask}};
  for (size_t i = 0; i < std::size(operands); ++i) {
    const auto* given = argument(*call, i, operands[i].first);
    if (given && trace::tensors_in(*given) == std::vector{id}) *operands[i].second = operand.detach();
  }
  attention.causal = is_true(argument(*call, 5, "is_causal"));
  attention.grouped = is_true(argument(*call, 7, "enable_gqa"));
  attention.scale = number_in(argument(*call, 6, "scale"));
}

std::set<StorageId> Float64Reference::read_by(const trace::Step& step) const {
  std::set<StorageId> read;
  const auto* call = std::get_if<trace::Call>(&step);
  if (!call) return read;
  for (const auto& arg : call->args)
    for (const auto value : trace::tensors_in(arg)) read.insert(upcast_.trace.values[value].storage);
  for (const auto value : trace::tensors_in(call->result)) read.erase(upcast_.trace.values[value].storage);
  return read;
}

std::set<StorageId> Float64Reference::shared_results() const {
  std::map<StorageId, int> readers;
  for (const auto& step : judged_steps())
    for (const auto storage : read_by(step)) ++readers[storage];
  std::set<StorageId> shared;
  for (const auto& [storage, count] : readers)
    if (const auto was = upcast_.was[storage]; was && count > 1 && real_of(*was) == trace::DType::kF32)
      shared.insert(storage);
  return shared;
}

std::set<StorageId> Float64Reference::replaced_infinities() const {
  std::set<StorageId> results;
  for (const auto& step : judged_steps()) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call || !trace::split_name(call->op).name.starts_with("nan_to_num")) continue;
    for (const auto value : trace::tensors_in(call->result))
      results.insert(upcast_.trace.values[value].storage);
  }
  return results;
}

std::set<StorageId> Float64Reference::approximate_results() const {
  std::set<StorageId> results;
  for (const auto& step : judged_steps()) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call || !is_among(kApproximate, call->op)) continue;
    for (const auto value : trace::tensors_in(call->result))
      if (const auto was = upcast_.was[upcast_.trace.values[value].storage];
          was && real_of(*was) == trace::DType::kF32)
        results.insert(upcast_.trace.values[value].storage);
  }
  return results;
}

void Float64Reference::round_apart(at::Generator generator) {
  watch([generator, approximate = approximate_results()](StorageId id, const at::Tensor& made) {
    if (approximate.contains(id)) add_noise_to_exact(made, trace::DType::kF32, generator);
  });
  replay_->exchange_operands(
      [this, generator, shared = shared_results()](int step, ValueId id, const at::Tensor& operand) {
        const auto storage = upcast_.trace.values[id].storage;
        const auto& steps = judged_steps();
        if (!shared.contains(storage) || static_cast<size_t>(step) >= steps.size() ||
            !read_by(steps[static_cast<size_t>(step)]).contains(storage))
          return operand;
        auto moved = operand.detach().clone();
        add_rounding_noise(moved, trace::DType::kF32, generator);
        return moved;
      });
}

bool Float64Reference::has_softmax() const {
  return std::ranges::any_of(judged_steps(), [](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    return call != nullptr && (is_among(kSoftmaxes, call->op) || is_among(kAttentions, call->op));
  });
}

bool Float64Reference::has_parts() const {
  return std::ranges::any_of(judged_steps(), [](const trace::Step& step) { return affine_step(step); });
}

void Float64Reference::round_parts(const Replay::Exchange& then) {
  const auto affine = std::make_shared<std::map<StorageId, Affine>>();  // by the storage of the result
  replay_->exchange_operands([this, affine, then](int step, ValueId id, const at::Tensor& operand) {
    const auto& steps = judged_steps();
    const auto* norm = static_cast<size_t>(step) < steps.size() ? affine_step(steps[step]) : nullptr;
    if (norm != nullptr) {
      const auto& call = std::get<trace::Call>(steps[step]);
      const auto results = trace::tensors_in(call.result);
      const auto is = [&](int position) {
        if (position < 0 || static_cast<size_t>(position) >= call.args.size()) return false;
        const auto given = trace::tensors_in(call.args[static_cast<size_t>(position)]);
        return given.size() == 1 && given[0] == id;
      };
      if (!results.empty() && (is(norm->weight) || is(norm->bias))) {
        auto& of = (*affine)[upcast_.trace.values[results[0]].storage];
        of.of_channels = norm->of_channels;
        (is(norm->weight) ? of.weight : of.bias) = operand.detach();
      }
    }
    return then ? then(step, id, operand) : operand;
  });
  watch([this, affine](StorageId id, const at::Tensor& made) {
    const auto was = upcast_.was[id];
    if (!was) return;
    const auto round = [&](const at::Tensor& x) { return x.to(scalar_type(real_of(*was))).to(c10::kDouble); };
    if (auto of = affine->extract(id); of && of.mapped().fits(made)) {
      const auto& [weight, bias, of_channels] = of.mapped();
      auto normalised = bias.defined() ? made.sub(of.mapped().over(bias, made)) : made;
      const auto by = weight.defined() ? of.mapped().over(weight, made) : at::ones({}, made.options());
      const auto parts = round(normalised.div(by)).mul(by);
      made.copy_(at::where(by.eq(0), made, bias.defined() ? parts.add(of.mapped().over(bias, made)) : parts));
    }
    made.copy_(round(made));
  });
}

std::map<StorageId, double> Float64Reference::terms_of_sums() const {
  std::map<StorageId, double> terms;
  const auto& trace = upcast_.trace;
  for (const auto& step : judged_steps()) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call) continue;
    const auto results = trace::tensors_in(call->result);
    std::vector<const trace::Value*> operands;
    for (const auto& arg : call->args)
      for (const auto value : trace::tensors_in(arg)) operands.push_back(&trace.values[value]);
    if (results.empty() || operands.empty()) continue;
    const auto& made = trace.values[results.front()];
    double count = 1;
    if (is_among(kProducts, call->op)) {
      // The first operand but for a bias, which has no part in the sum.
      const auto& left = *operands[operands.size() > 2 && call->op.find("add") != std::string::npos ? 1 : 0];
      if (!left.sizes.empty()) count = static_cast<double>(left.sizes.back());
    } else if (is_among(kConvolutions, call->op) && operands.size() > 1 && !operands[1]->sizes.empty()) {
      const auto& weight = *operands[1];
      const int64_t taps = trace::element_count(weight) / std::max<int64_t>(1, weight.sizes.front());
      count = static_cast<double>(taps);
    } else if (is_among(kScans, call->op) && !operands[0]->sizes.empty()) {
      count = static_cast<double>(std::ranges::max(operands[0]->sizes));
    }
    if (count > 1) terms[made.storage] = count;
  }
  return terms;
}

std::set<StorageId> Float64Reference::roots_of_squares() const {
  std::set<StorageId> roots;
  for (const auto& step : judged_steps()) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (!call || !is_among(kRoots, call->op)) continue;
    if (const auto results = trace::tensors_in(call->result); !results.empty())
      roots.insert(upcast_.trace.values[results.front()].storage);
  }
  return roots;
}

const trace::Call* Float64Reference::call_on(int step, ValueId value) const {
  const auto& steps = judged_steps();
  if (step < 0 || static_cast<size_t>(step) >= steps.size()) return nullptr;
  const auto* call = std::get_if<trace::Call>(&steps[static_cast<size_t>(step)]);
  if (!call || call->args.empty()) return nullptr;
  const auto first = trace::tensors_in(call->args[0]);
  return std::ranges::find(first, value) != first.end() ? call : nullptr;
}

trace::DType Float64Reference::real_of(trace::DType type) {
  return type == trace::DType::kC128  ? trace::DType::kF64
         : type == trace::DType::kC64 ? trace::DType::kF32
         : type == trace::DType::kC32 ? trace::DType::kF16
                                      : type;
}

c10::Storage Float64Reference::converted(Replay& own, StorageId id, Change& change) const {
  const auto& storage = own.program().trace().storages[id];
  const auto bytes = bytes_of(own.storage(id), storage.bytes);
  const auto was = upcast_.was[id];
  if (!was) return bytes.clone().storage();
  const auto real = real_of(*was);
  const auto whole = storage.bytes / trace::element_bytes(real) * trace::element_bytes(real);
  auto upcasted = bytes.narrow(0, 0, whole)
                      .view(scalar_type(real))
                      .to(upcast_.same_dtype ? scalar_type(real) : c10::kDouble, false, true);
  // An input of 16 bits is taken as exact: its neighbouring values excuse no error.
  const bool finer = !upcast_.same_dtype && epsilon(real) > epsilon(trace::DType::kF32);
  if (change.nudge && !change.exact.contains(id))
    move_half_ulp(upcasted, finer ? trace::DType::kF32 : real, *change.nudge, change.nudge_times);
  if (change.scale != 1 && (!change.scaled || change.scaled->contains(id))) upcasted.mul_(change.scale);
  if (change.nan) upcasted.nan_to_num_(*change.nan, *change.infinity, -*change.infinity);
  return upcasted.storage();
}

}  // namespace nereid::replay
