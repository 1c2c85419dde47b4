// Operators that make new tensors of whole inputs: elementwise ones, reductions, products, gathers, new ones.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "nereid/lm/plan_sizes/step_call.h"

namespace nereid::lm {
namespace {

using Names = std::unordered_set<std::string_view>;
using Rule = StepResults (*)(const StepCall&);

std::vector<Value> new_ones(std::initializer_list<Sizes> all) {
  std::vector<Value> made;
  for (const Sizes& sizes : all) made.push_back(new_value(row_major_layout(sizes)));
  return made;
}

std::optional<Value> of_all(const std::vector<const Value*>& tensors) {
  std::vector<const Sizes*> sizes;
  std::vector<const Layout*> layouts;
  for (const Value* tensor : tensors) {
    sizes.push_back(&tensor->sizes());
    layouts.push_back(tensor->layout.get());
  }
  const auto made = broadcast(sizes);
  if (!made || tensors.empty()) return std::nullopt;
  return new_value(elementwise_layout(*made, layouts));
}

StepResults elementwise(const StepCall& call) {
  const auto made = of_all(call.tensors());
  return made ? StepResults({*made}) : std::nullopt;
}

// As the first tensor, in its order of axes.
StepResults like_first(const StepCall& call) {
  const Value& x = *call.tensor(0);
  return std::vector<Value>{new_value(elementwise_layout(x.sizes(), std::array{x.layout.get()}))};
}
StepResults two_like_first(const StepCall& call) {
  auto made = like_first(call);
  made->push_back(new_value(*made->front().layout));
  return made;
}
StepResults row_major_like_first(const StepCall& call) { return new_ones({call.tensor(0)->sizes()}); }
StepResults like_second(const StepCall& call) {
  return call.tensor(1) == nullptr ? std::nullopt : StepResults(new_ones({call.tensor(1)->sizes()}));
}

std::optional<Sizes> reduced_sizes(const Sizes& from, const std::optional<Sizes>& axes, bool keep) {
  std::vector<bool> gone(from.size(), !axes || axes->empty());
  if (axes)
    for (const int64_t axis : *axes) {
      const auto own = axis_of(axis, from.size());
      if (!own) return std::nullopt;
      if (!from.empty()) gone[*own] = true;
    }
  Sizes made;
  for (size_t d = 0; d < from.size(); ++d)
    if (!gone[d] || keep) made.push_back(gone[d] ? 1 : from[d]);
  return made;
}

StepResults reduced(const StepCall& call, const std::optional<Sizes>& axes, size_t results) {
  const auto sizes = reduced_sizes(call.tensor(0)->sizes(), axes, call.has("keepdim"));
  if (!sizes) return std::nullopt;
  return std::vector<Value>(results, new_value(row_major_layout(*sizes)));
}

StepResults reduced_over_list(const StepCall& call) { return reduced(call, call.sizes(0), 1); }
StepResults reduced_over_list_twice(const StepCall& call) { return reduced(call, call.sizes(0), 2); }
StepResults reduced_over_axis(const StepCall& call) {
  const auto axis = call.whole(0);
  if (call.sizes(0)) return reduced_over_list(call);
  return reduced(call, axis ? std::optional(Sizes{*axis}) : std::nullopt, 1);
}
// max and min: of all, or values and places along an axis, or elementwise.
StepResults extremes(const StepCall& call) {
  if (call.tensors().size() > 1) return elementwise(call);
  const auto axis = call.whole(0);
  return axis ? reduced(call, Sizes{*axis}, 2) : reduced(call, std::nullopt, 1);
}
StepResults extremes_of_both(const StepCall& call) {
  const auto axis = call.whole(0);
  return reduced(call, axis ? std::optional(Sizes{*axis}) : std::nullopt, 2);
}
// kthvalue(x, k, axis)
StepResults kth(const StepCall& call) {
  return call.whole(0) ? reduced(call, Sizes{call.whole(1).value_or(-1)}, 2) : std::nullopt;
}

StepResults topk(const StepCall& call) {
  Sizes sizes = call.tensor(0)->sizes();
  const auto count = call.whole(0);
  const auto axis = axis_of(call.whole(1).value_or(-1), sizes.size());
  if (!count || !axis || sizes.empty() || *count > sizes[*axis]) return std::nullopt;
  sizes[*axis] = *count;
  return new_ones({sizes, sizes});
}

// The last two axes are matrices; `batch` in front.
StepResults product(const Sizes& a, const Sizes& b, size_t rank) {
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2]) return std::nullopt;
  if (rank == 3 && a[0] != b[0]) return std::nullopt;
  Sizes made = a;
  made.back() = b.back();
  return new_ones({made});
}
StepResults last_two(const StepCall& call, size_t rank) {
  const auto tensors = call.tensors();
  if (tensors.size() < 2) return std::nullopt;
  return product(tensors[tensors.size() - 2]->sizes(), tensors.back()->sizes(), rank);
}
StepResults matrix_product(const StepCall& call) { return last_two(call, 2); }
StepResults batched_product(const StepCall& call) { return last_two(call, 3); }
StepResults matrix_vector(const StepCall& call) {
  const auto tensors = call.tensors();
  if (tensors.size() < 2) return std::nullopt;
  const Sizes &a = tensors[tensors.size() - 2]->sizes(), &b = tensors.back()->sizes();
  return a.size() == 2 && b.size() == 1 && a[1] == b[0] ? StepResults(new_ones({Sizes{a[0]}})) : std::nullopt;
}
StepResults dot(const StepCall&) { return new_ones({Sizes{}}); }
StepResults linear(const StepCall& call) {
  if (call.tensor(1) == nullptr) return std::nullopt;
  Sizes made = call.tensor(0)->sizes();
  const Sizes& weight = call.tensor(1)->sizes();
  if (made.empty() || weight.empty() || weight.size() > 2 || weight.back() != made.back())
    return std::nullopt;
  made.pop_back();
  if (weight.size() == 2) made.push_back(weight[0]);
  return new_ones({made});
}

StepResults attention(const StepCall& call) {
  const auto tensors = call.tensors();
  if (tensors.size() < 3 || tensors[0]->sizes().size() < 2 || tensors[2]->sizes().empty())
    return std::nullopt;
  Sizes made = tensors[0]->sizes();
  made.back() = tensors[2]->sizes().back();
  return new_ones({made});
}

StepResults layer_norm(const StepCall& call) {
  const Sizes& x = call.tensor(0)->sizes();
  const auto axes = call.sizes(0);
  if (!axes || axes->size() > x.size()) return std::nullopt;
  Sizes rows = x;
  std::fill(rows.end() - std::ssize(*axes), rows.end(), 1);
  return new_ones({x, rows, rows});
}

// native_group_norm(x, ..., samples, channels, elements, groups, eps)
StepResults group_norm(const StepCall& call) {
  const auto samples = call.whole(0), groups = call.whole(3);
  if (!samples || !groups) return std::nullopt;
  const Sizes groups_of_samples = {*samples, *groups};
  return new_ones({call.tensor(0)->sizes(), groups_of_samples, groups_of_samples});
}

StepResults cat(const StepCall& call) {
  const auto tensors = call.tensors();
  Sizes made = tensors[0]->sizes();
  const auto axis = axis_of(call.whole(0).value_or(0), made.size());
  if (!axis || made.empty()) return std::nullopt;
  made[*axis] = 0;
  for (const Value* tensor : tensors) {
    const Sizes& own = tensor->sizes();
    if (own.size() != made.size()) return std::nullopt;
    for (size_t d = 0; d < own.size(); ++d)
      if (d != *axis && own[d] != made[d]) return std::nullopt;
    made[*axis] += own[*axis];
  }
  return new_ones({made});
}

StepResults stack(const StepCall& call) {
  const auto tensors = call.tensors();
  Sizes made = tensors[0]->sizes();
  const auto axis = axis_of(call.whole(0).value_or(0), made.size() + 1);
  if (!axis || !std::ranges::all_of(tensors, [&](const Value* own) { return own->sizes() == made; }))
    return std::nullopt;
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(*axis), std::ssize(tensors));
  return new_ones({made});
}

StepResults repeat(const StepCall& call) {
  Sizes made = call.tensor(0)->sizes();
  const auto times = call.sizes(0);
  if (!times || times->size() < made.size()) return std::nullopt;
  made.insert(made.begin(), times->size() - made.size(), 1);
  for (size_t d = 0; d < made.size(); ++d) made[d] *= (*times)[d];
  return new_ones({made});
}

StepResults embedding(const StepCall& call) {
  if (call.tensor(1) == nullptr || call.tensor(0)->sizes().size() != 2) return std::nullopt;
  Sizes made = call.tensor(1)->sizes();
  made.push_back(call.tensor(0)->sizes()[1]);
  return new_ones({made});
}

StepResults index_select(const StepCall& call) {
  Sizes made = call.tensor(0)->sizes();
  const auto asked = call.whole(0);
  const auto axis = asked ? axis_of(*asked, made.size()) : std::nullopt;
  if (call.tensor(1) == nullptr || !axis || made.empty()) return std::nullopt;
  const Sizes& places = call.tensor(1)->sizes();
  made[*axis] = std::accumulate(places.begin(), places.end(), int64_t{1}, std::multiplies<>());
  return new_ones({made});
}

StepResults distances(const StepCall& call) {
  if (call.tensor(1) == nullptr) return std::nullopt;
  Sizes a = call.tensor(0)->sizes(), b = call.tensor(1)->sizes();
  if (a.size() < 2 || b.size() < 2 || a.back() != b.back()) return std::nullopt;
  const int64_t rows = a[a.size() - 2], columns = b[b.size() - 2];
  a.resize(a.size() - 2), b.resize(b.size() - 2);
  auto made = broadcast(std::array<const Sizes*, 2>{&a, &b});
  if (!made) return std::nullopt;
  made->push_back(rows), made->push_back(columns);
  return new_ones({*made});
}

// Losses: elementwise where the reduction is 0, else a number.
StepResults loss(const StepCall& call) {
  return call.whole(0) == std::optional<int64_t>(0) ? elementwise(call) : StepResults(new_ones({Sizes{}}));
}
StepResults nll_loss(const StepCall& call) {
  if (call.tensor(1) == nullptr) return std::nullopt;
  const bool each = call.whole(0) == std::optional<int64_t>(0);
  return new_ones({each ? call.tensor(1)->sizes() : Sizes{}, Sizes{}});
}

// lstm_cell(x, [h, c], ...), gru_cell(x, h, ...): states as they were.
StepResults lstm_cell(const StepCall& call) {
  const auto tensors = call.tensors();
  if (tensors.size() < 3) return std::nullopt;
  return new_ones({tensors[1]->sizes(), tensors[2]->sizes()});
}

StepResults grid_sampler(const StepCall& call) {
  if (call.tensor(1) == nullptr) return std::nullopt;
  Sizes made = call.tensor(0)->sizes();
  const Sizes& grid = call.tensor(1)->sizes();
  if (made.size() < 4 || grid.size() != made.size()) return std::nullopt;
  std::copy(grid.begin() + 1, grid.end() - 1, made.begin() + 2);
  return new_ones({made});
}

StepResults sizes_given(const StepCall& call) {
  const auto sizes = call.sizes(0);
  if (!sizes || std::ranges::any_of(*sizes, [](int64_t size) { return size < 0; })) return std::nullopt;
  return new_ones({*sizes});
}
StepResults eye(const StepCall& call) {
  const auto rows = call.whole(0);
  return rows ? StepResults(new_ones({Sizes{*rows, call.whole(1).value_or(*rows)}})) : std::nullopt;
}
StepResults scalar(const StepCall&) { return new_ones({Sizes{}}); }
StepResults arange(const StepCall& call) {
  std::vector<double> numbers;
  for (const StepArgument& argument : call.arguments) {
    if (argument.kind == StepArgument::Kind::kTensor) return std::nullopt;
    if (argument.kind == StepArgument::Kind::kWhole) numbers.push_back(static_cast<double>(argument.whole));
    if (argument.kind == StepArgument::Kind::kReal) numbers.push_back(argument.real);
  }
  if (numbers.empty() || numbers.size() > 3) return std::nullopt;
  const double begin = numbers.size() == 1 ? 0 : numbers[0],
               end = numbers.size() == 1 ? numbers[0] : numbers[1],
               step = numbers.size() == 3 ? numbers[2] : 1;
  const double count = std::ceil((end - begin) / step);
  if (!(count >= 0 && count < 1e12)) return std::nullopt;
  return new_ones({Sizes{static_cast<int64_t>(count)}});
}

constexpr std::string_view kElementwise =
    "abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or "
    "bitwise_xor bitwise_left_shift bitwise_right_shift ceil celu clamp clamp_max clamp_min copysign "
    "cos cosh deg2rad digamma div dropout elu eq erf erfc erfinv exp exp2 expm1 floor floor_divide fmax "
    "fmin fmod frac ge gelu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite isinf "
    "isnan isneginf isposinf ldexp le leaky_relu lerp lgamma log log10 log1p log2 log_sigmoid logaddexp "
    "logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum "
    "mish mul nan_to_num ne neg nextafter positive pow rad2deg reciprocal relu relu6 remainder round "
    "rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink sqrt square sub "
    "tan tanh threshold true_divide trunc where xlogy _prelu_kernel _to_copy rrelu";

// The words of a list that spaces divide.
Names names_in(std::string_view list) {
  Names names;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (end > 0) names.insert(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

std::unordered_map<std::string_view, Rule> rules() {
  std::unordered_map<std::string_view, Rule> made = {{"argmax", reduced_over_axis},
                                                     {"argmin", reduced_over_axis},
                                                     {"all", reduced_over_axis},
                                                     {"any", reduced_over_axis},
                                                     {"prod", reduced_over_axis},
                                                     {"count_nonzero", reduced_over_axis},
                                                     {"max", extremes},
                                                     {"min", extremes},
                                                     {"median", extremes},
                                                     {"nanmedian", extremes},
                                                     {"aminmax", extremes_of_both},
                                                     {"mode", extremes_of_both},
                                                     {"kthvalue", kth},
                                                     {"topk", topk},
                                                     {"mm", matrix_product},
                                                     {"addmm", matrix_product},
                                                     {"bmm", batched_product},
                                                     {"baddbmm", batched_product},
                                                     {"mv", matrix_vector},
                                                     {"addmv", matrix_vector},
                                                     {"dot", dot},
                                                     {"vdot", dot},
                                                     {"linear", linear},
                                                     {"scaled_dot_product_attention", attention},
                                                     {"native_layer_norm", layer_norm},
                                                     {"native_group_norm", group_norm},
                                                     {"cat", cat},
                                                     {"stack", stack},
                                                     {"repeat", repeat},
                                                     {"embedding", embedding},
                                                     {"index_select", index_select},
                                                     {"gather", like_second},
                                                     {"searchsorted", like_second},
                                                     {"_cdist_forward", distances},
                                                     {"nll_loss_forward", nll_loss},
                                                     {"lstm_cell", lstm_cell},
                                                     {"gru_cell", like_second},
                                                     {"rnn_tanh_cell", like_second},
                                                     {"rnn_relu_cell", like_second},
                                                     {"grid_sampler", grid_sampler},
                                                     {"eye", eye},
                                                     {"scalar_tensor", scalar},
                                                     {"arange", arange},
                                                     {"sort", two_like_first},
                                                     {"cummax", two_like_first},
                                                     {"cummin", two_like_first}};
  for (const char* name :
       {"sum", "mean", "amax", "amin", "std", "var", "logsumexp", "linalg_vector_norm", "nansum", "norm"})
    made.emplace(name, reduced_over_list);
  for (const char* name : {"std_mean", "var_mean"}) made.emplace(name, reduced_over_list_twice);
  for (const char* name : {"mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                           "binary_cross_entropy_with_logits", "soft_margin_loss"})
    made.emplace(name, loss);
  for (const char* name :
       {"zeros", "ones", "full", "empty", "randn", "rand", "new_zeros", "new_ones", "new_full", "new_empty"})
    made.emplace(name, sizes_given);
  for (const char* name : {"zeros_like",  "ones_like",      "full_like",      "empty_like",    "randn_like",
                           "rand_like",   "cumsum",         "cumprod",        "logcumsumexp",  "argsort",
                           "flip",        "roll",           "tril",           "triu",          "scatter",
                           "scatter_add", "scatter_reduce", "index_add",      "index_put",     "index_copy",
                           "index_fill",  "masked_scatter", "select_scatter", "slice_scatter", "bucketize"})
    made.emplace(name, like_first);
  for (const char* name : {"clone", "_softmax", "_log_softmax", "softmax", "log_softmax", "batch_norm",
                           "instance_norm", "rms_norm", "layer_norm", "group_norm"})
    made.emplace(name, row_major_like_first);
  return made;
}

// Operators that are called without a tensor.
bool is_factory(const std::string& name) {
  static const Names kNames = {"zeros", "ones", "full",          "empty", "randn",
                               "rand",  "eye",  "scalar_tensor", "arange"};
  return kNames.contains(name);
}

}  // namespace

StepResults compute_results(const StepCall& call) {
  static const auto kRules = rules();
  static const Names kOfEachElement = names_in(kElementwise);
  if (call.tensor(0) == nullptr && !is_factory(call.name)) return std::nullopt;
  if (kOfEachElement.contains(call.name)) return elementwise(call);
  const auto rule = kRules.find(call.name);
  return rule == kRules.end() ? std::nullopt : rule->second(call);
}

}  // namespace nereid::lm
