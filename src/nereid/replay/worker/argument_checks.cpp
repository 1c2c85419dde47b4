#include "nereid/replay/worker/argument_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

using trace::Arg;
using trace::Value;

namespace {

int64_t product(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (const auto size : sizes)
    if (__builtin_mul_overflow(count, size, &count)) refuse("sizes whose product passes 2^63");
  return count;
}

}  // namespace

const Arg* GivenArguments::at(size_t index) const {
  const Arg* arg = index < call_.args.size() ? &call_.args[index] : nullptr;
  for (const auto& [key, value] : call_.kwargs)
    if (key == schema_.arguments()[index].name()) arg = &value;
  return arg;
}

size_t GivenArguments::index_of(std::string_view name) const {
  return schema_.argumentIndexWithName(name).value();
}

const Arg* GivenArguments::find(std::string_view name) const {
  const auto* arg = has(name) ? at(index_of(name)) : nullptr;
  return arg && std::holds_alternative<trace::None>(arg->node) ? nullptr : arg;
}

const Value* GivenArguments::tensor(std::string_view name) const {
  const auto* arg = find(name);
  if (!arg) return nullptr;
  const auto* ref = std::get_if<trace::TensorRef>(&arg->node);
  if (!ref) refuse(fmt::format("argument '{}': expected Tensor", name));
  return &trace_.values[ref->value];
}

std::optional<int64_t> GivenArguments::integer(std::string_view name) const {
  const auto* arg = find(name);
  const auto* number = arg ? std::get_if<int64_t>(&arg->node) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<double> GivenArguments::real(std::string_view name) const {
  const auto* arg = find(name);
  if (const auto* number = arg ? std::get_if<double>(&arg->node) : nullptr) return *number;
  const auto number = integer(name);
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

bool GivenArguments::flag(std::string_view name) const {
  const auto* arg = find(name);
  const auto* flag = arg ? std::get_if<bool>(&arg->node) : nullptr;
  return (flag && *flag) || integer(name).value_or(0) != 0;
}

size_t GivenArguments::items(std::string_view name) const {
  const auto* arg = find(name);
  const auto* list = arg ? std::get_if<trace::List>(&arg->node) : nullptr;
  return list ? list->items.size() : 0;
}

std::vector<int64_t> GivenArguments::integers(std::string_view name) const {
  std::vector<int64_t> out;
  const auto* arg = find(name);
  if (const auto* list = arg ? std::get_if<trace::List>(&arg->node) : nullptr)
    for (const auto& item : list->items)
      if (const auto* number = std::get_if<int64_t>(&item.node)) out.push_back(*number);
  return out;
}

namespace {

// One operator's arguments, and what is said of those that do not fit.
class Checks {
 public:
  Checks(std::string_view op, const GivenArguments& given) : op_(op), given_(given) {}

  const Value& tensor(const char* name, size_t min_dims = 0) const {
    const auto* value = given_.tensor(name);
    if (!value) refuse(fmt::format("the argument '{}' of {} is missing", name, op_));
    if (value->sizes.size() < min_dims)
      refuse(fmt::format("argument '{}' of {}: expected at least {} dimensions, got {}", name, op_, min_dims,
                         value->sizes.size()));
    return *value;
  }
  // `count` elements in any number of dimensions; an omitted optional argument passes.
  void counts(std::initializer_list<const char*> names, int64_t count) const {
    for (const auto* name : names)
      if (const auto* value = given_.tensor(name); value && trace::element_count(*value) != count)
        refuse(fmt::format("argument '{}' of {}: expected {} elements, got {}", name, op_, count,
                           trace::element_count(*value)));
  }
  void sizes(const char* name, const std::vector<int64_t>& expected) const {
    if (const auto& value = tensor(name); value.sizes != expected)
      refuse(fmt::format("argument '{}' of {}: expected the sizes {}, got {}", name, op_,
                         fmt::join(expected, "x"), fmt::join(value.sizes, "x")));
  }
  void same_sizes(const char* name, const char* as) const { sizes(name, tensor(as).sizes); }

  void batch_norm() const {
    const auto channels = tensor("input", 2).sizes[1];
    counts({"weight", "bias", "running_mean", "running_var"}, channels);
    const bool by_statistics =
        given_.has("training") ? !given_.flag("training") : op_ == "_batch_norm_no_update";
    if (by_statistics) tensor("running_mean"), tensor("running_var");
    if (op_ != "native_batch_norm_backward") return;
    same_sizes("grad_out", "input");
    // Saved in training alone: without, they come empty.
    if (given_.flag("train")) {
      tensor("save_mean"), tensor("save_invstd");
      counts({"save_mean", "save_invstd"}, channels);
    } else {
      tensor("running_mean"), tensor("running_var");
    }
  }

  void layer_norm_backward() const {
    const auto& input = tensor("input");
    const auto shape = given_.integers("normalized_shape");
    const auto outer = static_cast<int64_t>(input.sizes.size()) - static_cast<int64_t>(shape.size());
    if (shape.empty() || outer < 0 || !std::equal(shape.begin(), shape.end(), input.sizes.begin() + outer))
      refuse(fmt::format("argument 'normalized_shape' of {}: expected the last sizes of {}, got {}", op_,
                         fmt::join(input.sizes, "x"), fmt::join(shape, "x")));
    same_sizes("grad_out", "input");
    tensor("rstd");
    counts({"mean", "rstd"}, product(std::span(input.sizes).first(outer)));
    counts({"weight", "bias"}, product(shape));
  }

  // Backward, of what the forward saved.
  void weight_norm(const char* v_name, const char* g_name) const {
    const auto& v = tensor(v_name, 1);
    const auto dim = given_.integer("dim").value_or(0), last = static_cast<int64_t>(v.sizes.size()) - 1;
    if (dim != 0 && dim != last)
      refuse(fmt::format("argument 'dim' of {}: expected 0 or {}, got {}", op_, last, dim));
    tensor(g_name);
    counts({g_name, "saved_norms"}, v.sizes[dim]);
    if (given_.has("grad_w")) same_sizes("grad_w", v_name);
  }

  void grid_sampler_backward(size_t dims) const {
    const auto &input = tensor("input", dims), &grid = tensor("grid", dims);
    auto expected = input.sizes;
    std::copy_n(grid.sizes.begin() + 1, dims - 2, expected.begin() + 2);
    sizes("grad_output", expected);
  }

  // As large as `scale` makes the input, or the nearest pixel of the last is outside.
  void upsample() const {
    static constexpr const char* kScales[] = {"scales_d", "scales_h", "scales_w"};
    auto from = given_.integers("input_size");
    if (from.empty()) from = tensor("self", 3).sizes;
    const auto to = given_.integers("output_size");
    if (from.size() != to.size() + 2)
      refuse(fmt::format("argument 'output_size' of {}: expected {} numbers, got {}", op_, from.size() - 2,
                         to.size()));
    for (size_t d = 0; d < to.size(); ++d) {
      const auto* name = to.size() == 1 ? "scales" : kScales[d + 3 - to.size()];
      const auto scale = given_.real(name);
      const auto expected = scale.value_or(0) * static_cast<double>(from[d + 2]);
      if (scale && !(std::abs(expected - static_cast<double>(to[d])) <= 1))
        refuse(fmt::format("argument '{}' of {}: {} makes {} of {}, the output has {}", name, op_, *scale,
                           expected, from[d + 2], to[d]));
    }
  }

  // Every place of the result knows which place of a plane of `self` it came from.
  void max_pool_backward() const {
    same_sizes("indices", "grad_output");
    pool_backward();
  }
  void pool_backward() const {
    const auto &gradient = tensor("grad_output"), &self = tensor("self");
    const auto planes = self.sizes.size() - plane_dims();
    if (self.sizes.size() < plane_dims() || gradient.sizes.size() != self.sizes.size() ||
        !std::equal(self.sizes.begin(), self.sizes.begin() + static_cast<int64_t>(planes),
                    gradient.sizes.begin()))
      refuse(fmt::format("argument 'grad_output' of {}: expected the batch and the channels of {}, got {}",
                         op_, fmt::join(self.sizes, "x"), fmt::join(gradient.sizes, "x")));
  }
  size_t plane_dims() const { return op_.find("3d") != op_.npos ? 3 : 2; }

  void unfold_backward() const {
    auto expected = given_.integers("input_sizes");
    const auto dims = static_cast<int64_t>(expected.size());
    const auto size = given_.integer("size").value_or(0), step = given_.integer("step").value_or(0);
    auto dim = given_.integer("dim").value_or(0);
    if (dim < 0) dim += dims;
    if (dim < 0 || dim >= dims || size < 1 || step < 1 || size > expected[dim])
      refuse(fmt::format("{}: there is no window of {} every {} in dimension {} of {}", op_, size, step, dim,
                         fmt::join(expected, "x")));
    expected[dim] = (expected[dim] - size) / step + 1;
    expected.push_back(size);
    sizes("grad_in", expected);
  }

  // A list of just so many numbers.
  void items(const char* name, size_t expected) const {
    if (given_.items(name) != expected)
      refuse(fmt::format("argument '{}' of {}: expected {} numbers, got {}", name, op_, expected,
                         given_.items(name)));
  }

  void fourier() const {
    const auto dims = given_.integers("dim");
    const auto count = static_cast<int64_t>(tensor("self").sizes.size());
    for (const auto dim : dims)
      if (dim < 0 || dim >= count || std::ranges::count(dims, dim) != 1)
        refuse(fmt::format("argument 'dim' of {}: expected dimensions from 0 to {}, each once, got {}", op_,
                           count - 1, fmt::join(dims, ", ")));
  }

  // Distances of P points from R others, in batches that spread over each other.
  void cdist_backward() const {
    const auto &x1 = tensor("x1", 2), &x2 = tensor("x2", 2);
    const size_t dims = std::max(x1.sizes.size(), x2.sizes.size());
    const auto size_of = [&](const Value& x, size_t d) {
      return d + x.sizes.size() < dims ? int64_t{1} : x.sizes[d + x.sizes.size() - dims];
    };
    std::vector<int64_t> expected;
    bool fit = x1.sizes.back() == x2.sizes.back();
    for (size_t d = 0; d + 2 < dims; ++d) {
      const auto a = size_of(x1, d), b = size_of(x2, d);
      fit = fit && (a == b || a == 1 || b == 1);
      expected.push_back(a == 1 ? b : a);
    }
    if (!fit)
      refuse(fmt::format("{}: the sizes {} and {} do not fit together", op_, fmt::join(x1.sizes, "x"),
                         fmt::join(x2.sizes, "x")));
    expected.push_back(size_of(x1, dims - 2));
    expected.push_back(size_of(x2, dims - 2));
    sizes("grad", expected);
    sizes("cdist", expected);
  }

  void attention() const {
    const auto &query = tensor("query", 4), &key = tensor("key", 4), &value = tensor("value", 4);
    const auto fit = [&](const Value& other) {
      return other.sizes.size() == 4 && other.sizes[0] == query.sizes[0] && other.sizes[1] > 0 &&
             query.sizes[1] % other.sizes[1] == 0 && other.sizes[3] == query.sizes[3];
    };
    if (query.sizes.size() != 4 || !fit(key) || key.sizes != value.sizes)
      refuse(fmt::format("{}: the sizes {}, {} and {} do not fit together", op_, fmt::join(query.sizes, "x"),
                         fmt::join(key.sizes, "x"), fmt::join(value.sizes, "x")));
    const auto* mask = given_.tensor("attn_mask");
    if (!mask) return;
    const std::vector<int64_t> whole = {query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]};
    bool fits = mask->sizes.size() <= 4;
    for (size_t d = 0; fits && d < mask->sizes.size(); ++d)
      fits = mask->sizes[d] == 1 || mask->sizes[d] == whole[4 - mask->sizes.size() + d];
    if (!fits)
      refuse(fmt::format("argument 'attn_mask' of {}: {} does not spread over {}", op_,
                         fmt::join(mask->sizes, "x"), fmt::join(whole, "x")));
  }

 private:
  std::string_view op_;
  const GivenArguments& given_;
};

bool is_max_pool_backward(std::string_view op) {
  return op.ends_with("_backward") && op.find("max_pool") != op.npos;
}

}  // namespace

void check_sizes(std::string_view op, const GivenArguments& given) {
  const Checks checks(op, given);
  if (op.find("batch_norm") != op.npos && op != "batch_norm") return checks.batch_norm();
  if (op == "native_layer_norm_backward" || op == "_fused_rms_norm_backward")
    return checks.layer_norm_backward();
  if (op == "native_group_norm_backward") return checks.same_sizes("grad_out", "input");
  if (op == "_weight_norm_interface") return checks.weight_norm("v", "g");
  if (op == "_weight_norm_interface_backward") return checks.weight_norm("saved_v", "saved_g");
  if (op == "grid_sampler_2d_backward") return checks.grid_sampler_backward(4);
  if (op == "grid_sampler_3d_backward") return checks.grid_sampler_backward(5);
  if (op.find("upsample_") != op.npos && given.has("output_size") && !given.has("scale_factors"))
    return checks.upsample();
  if (op.starts_with("fractional_max_pool")) {
    const size_t dims = op.find("3d") != op.npos ? 3 : 2;
    checks.items("kernel_size", dims), checks.items("output_size", dims);
  }
  if (is_max_pool_backward(op)) return checks.max_pool_backward();
  if (op.starts_with("_adaptive_avg_pool") && op.ends_with("_backward")) return checks.pool_backward();
  if (op == "_softmax_backward_data" || op == "_log_softmax_backward_data")
    return checks.same_sizes("output", "grad_output");
  if (op == "_prelu_kernel_backward") return checks.same_sizes("grad_output", "self");
  if (op == "_cdist_backward") return checks.cdist_backward();
  if (op == "unfold_backward") return checks.unfold_backward();
  if (op == "_scaled_dot_product_flash_attention_for_cpu") return checks.attention();
  if (op.find("reflection_pad") != op.npos || op.find("replication_pad") != op.npos)
    return checks.items("padding", op.find("1d") != op.npos ? 2 : op.find("2d") != op.npos ? 4 : 6);
  if (op.starts_with("_fft_")) return checks.fourier();
  if (op == "_foreach_copy" && given.items("self") != given.items("src"))
    refuse(fmt::format("{}: expected as many sources as targets", op));
  if (op == "_stack" && given.items("tensors") == 0) refuse("_stack: expected at least one tensor");
  if (op == "_scaled_mm" &&
      (checks.tensor("self").sizes.size() != 2 || checks.tensor("mat2").sizes.size() != 2))
    refuse("_scaled_mm: expected two matrices");
  if (op == "_transform_bias_rescale_qkv") {
    if (given.integer("num_heads").value_or(0) < 1) refuse("_transform_bias_rescale_qkv: expected a head");
    return checks.counts({"qkv_bias"}, checks.tensor("qkv", 1).sizes.back());
  }
}

std::optional<ElementBounds> element_bounds(std::string_view op, const GivenArguments& given) {
  const auto within = [&](const char* name, double last) {
    return ElementBounds{given.index_of(name), name, 0, last};
  };
  const Checks checks(op, given);
  if (is_max_pool_backward(op)) {
    const auto& sizes = checks.tensor("self").sizes;
    const auto plane = product(std::span(sizes).last(std::min(sizes.size(), checks.plane_dims())));
    return within("indices", static_cast<double>(plane - 1));
  }
  if (op == "fractional_max_pool2d" || op == "fractional_max_pool3d") return within("random_samples", 1);
  if (op == "embedding_dense_backward")
    return within("indices", static_cast<double>(given.integer("num_weights").value_or(0) - 1));
  if (op == "nll_loss_backward" || op == "nll_loss2d_backward") {
    const auto& self = checks.tensor("self", 1);
    const auto classes = self.sizes.size() == 1 ? self.sizes[0] : self.sizes[1];
    auto out = within("target", static_cast<double>(classes - 1));
    out.or_else = given.integer("ignore_index");
    return out;
  }
  return std::nullopt;
}

void check_numbers(const ElementBounds& within, const torch::jit::Stack& stack) {
  auto numbers = stack.at(within.argument).toTensor();
  if (!numbers.defined() || !numbers.is_cpu() || numbers.numel() == 0) return;
  if (within.or_else) numbers = numbers.masked_select(numbers.ne(*within.or_else));
  if (numbers.numel() == 0) return;
  const auto [least, most] = at::aminmax(numbers);
  const double first = least.to(at::kDouble).item<double>(), last = most.to(at::kDouble).item<double>();
  if (first >= within.first && last <= within.last) return;  // a NaN is neither
  throw Failed(Failure::Kind::kRaised,
               fmt::format("argument '{}': expected numbers from {} to {}, got {} to {}", within.name,
                           within.first, within.last, first, last));
}

}  // namespace nereid::replay
