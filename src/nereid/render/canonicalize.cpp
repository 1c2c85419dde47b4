#include "nereid/render/canonicalize.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nereid/render/subgraph_source.h"

namespace nereid::render {
namespace {

using trace::Arg;
using trace::Call;
using trace::ValueId;
using Dims = std::vector<int64_t>;

// Which argument holds the dimension, or several.
const std::map<std::string_view, size_t>& dimension_arguments() {
  static const std::map<std::string_view, size_t> kArguments = {
      {"aten::_softmax", 1},        {"aten::_log_softmax", 1}, {"aten::softmax.int", 1},
      {"aten::log_softmax.int", 1}, {"aten::cumsum", 1},       {"aten::cumprod", 1},
      {"aten::cummax", 1},          {"aten::cummin", 1},       {"aten::gather", 1},
      {"aten::index_select", 1},    {"aten::cat", 1},          {"aten::flip", 1}};
  return kArguments;
}

struct Reduction {
  size_t dims;           // the argument; `keepdim` is the next, or a keyword
  std::string_view all;  // the call that reduces all dimensions; empty: there is none
  bool list;             // of dimensions; else one number
};
const std::map<std::string_view, Reduction>& reductions() {
  static const std::map<std::string_view, Reduction> kReductions = {
      {"aten::amax", {1, "aten::amax", true}},
      {"aten::amin", {1, "aten::amin", true}},
      {"aten::sum.dim_IntList", {1, "aten::sum", true}},
      {"aten::mean.dim", {1, "aten::mean", true}},
      {"aten::logsumexp", {1, "", true}},
      {"aten::var.correction", {1, "aten::var.correction", true}},
      {"aten::linalg_vector_norm", {2, "aten::linalg_vector_norm", true}},
      {"aten::argmax", {1, "", false}},
      {"aten::argmin", {1, "", false}}};
  return kReductions;
}

struct Number {
  bool there = false;
  double is = 0;
};
Number number(const std::vector<Arg>& args, size_t at) {
  if (at >= args.size()) return {};
  if (const auto* whole = std::get_if<int64_t>(&args[at].node)) return {true, static_cast<double>(*whole)};
  if (const auto* real = std::get_if<double>(&args[at].node)) return {true, *real};
  return {};
}

Arg list_of(const Dims& dims) {
  trace::List list;
  for (const int64_t d : dims) list.items.push_back({d});
  return {std::move(list)};
}

bool is_none(const Arg& arg) { return std::holds_alternative<trace::None>(arg.node); }

class Canonicalizer {
 public:
  Canonicalizer(const trace::Trace& trace, const trace::Phase& forward) {
    result_.trace.values = trace.values;
    for (const auto& storage : trace.storages) {
      result_.trace.storages.push_back({.bytes = storage.bytes,
                                        .role = storage.role,
                                        .device = storage.device,
                                        .name = storage.name,
                                        .data = {}});
    }
    result_.forward = forward;
  }

  void add_canonical(const Call& call) {
    Call own = call;
    if (in_parts(own) || reduced(own) || with_number(own) || larger_first(own) || with_bias(own)) {
      result_.changed = true;
      return;
    }
    counted_from_the_front(own);
    add(std::move(own));
  }

  CanonicalSteps take() { return std::move(result_); }

 private:
  const trace::Value& value(ValueId id) const { return result_.trace.values[static_cast<size_t>(id)]; }

  static const trace::TensorRef* tensor(const Call& call, size_t at) {
    return at < call.args.size() ? std::get_if<trace::TensorRef>(&call.args[at].node) : nullptr;
  }

  void add(Call call) {
    result_.steps.push_back(result_.forward.steps.size());
    result_.forward.steps.emplace_back(std::move(call));
  }

  // A new value, contiguous, in a storage of its own (or a view's).
  Arg made(const Dims& sizes, trace::DType type, std::optional<trace::StorageId> storage = {}) {
    trace::Value v;
    v.dtype = type, v.sizes = sizes, v.strides.resize(sizes.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) v.strides[d] = stride;
    if (!storage) {
      result_.trace.storages.push_back({.bytes = stride * trace::element_bytes(type),
                                        .role = trace::Role::kTemporary,
                                        .device = {},
                                        .name = {},
                                        .data = {}});
      storage = static_cast<trace::StorageId>(result_.trace.storages.size() - 1);
    }
    v.storage = *storage;
    result_.trace.values.push_back(std::move(v));
    return {trace::TensorRef{static_cast<ValueId>(result_.trace.values.size() - 1)}};
  }

  // x as a tensor of these sizes, into `result` where that is given.
  Arg viewed(const Arg& x, const Dims& sizes, const Call& of, const Arg* result = nullptr) {
    const auto& before = value(std::get<trace::TensorRef>(x.node).value);
    const Arg after = result != nullptr ? *result : made(sizes, before.dtype, before.storage);
    Call view{.op = "aten::view",
              .args = {x, list_of(sizes)},
              .kwargs = {},
              .result = after,
              .parts = {},
              .place = of.place};
    add(std::move(view));
    return after;
  }

  Arg filled(double x, const Dims& sizes) {
    const Arg arg = made(sizes, trace::DType::kF32);
    if (x > 0)
      result_.trace.storages.back().name =
          kPositive;  // what takes a root of it meets none below zero in its test, too
    result_.numbers.emplace_back(std::get<trace::TensorRef>(arg.node).value, x);
    return arg;
  }

  // Dimensions counted from the front, or nothing where these are no dimensions of the value.
  static std::optional<Dims> dims_of(const Arg& arg, size_t rank) {
    Dims dims;
    if (const auto* list = std::get_if<trace::List>(&arg.node)) {
      for (const auto& item : list->items) {
        const auto* d = std::get_if<int64_t>(&item.node);
        if (d == nullptr) return std::nullopt;
        dims.push_back(*d);
      }
    } else if (const auto* d = std::get_if<int64_t>(&arg.node)) {
      dims.push_back(*d);
    } else {
      return std::nullopt;
    }
    for (int64_t& d : dims) {
      if (d < 0) d += static_cast<int64_t>(rank);
      if (d < 0 || d >= static_cast<int64_t>(rank)) return std::nullopt;
    }
    return dims;
  }

  void counted_from_the_front(Call& call) {
    const auto found = dimension_arguments().find(call.op);
    if (found == dimension_arguments().end() || found->second >= call.args.size() || call.args.empty())
      return;
    const auto tensors = trace::tensors_in(call.args[0]);
    if (tensors.empty()) return;
    Arg& at = call.args[found->second];
    const auto dims = dims_of(at, value(tensors[0]).sizes.size());
    if (!dims || dims->empty()) return;
    const bool list = std::holds_alternative<trace::List>(at.node);
    const Arg after = list ? list_of(*dims) : Arg{dims->front()};
    const auto negative = [](const Arg& arg) {
      const auto* d = std::get_if<int64_t>(&arg.node);
      return d != nullptr && *d < 0;
    };
    result_.changed |=
        list ? std::ranges::any_of(std::get<trace::List>(at.node).items, negative) : negative(at);
    at = after;
  }

  // Decomposes an operator outside the sampler's catalogue into catalogue operators, each added as any call
  // is. False: not one of these.
  bool in_parts(const Call& call) {
    static const std::map<std::string_view, bool (Canonicalizer::*)(const Call&)> kParts = {
        {"aten::_prelu_kernel", &Canonicalizer::prelu},
        {"aten::glu", &Canonicalizer::gated},
        {"aten::huber_loss", &Canonicalizer::far_or_near},
        {"aten::smooth_l1_loss", &Canonicalizer::far_or_near},
        {"aten::mse_loss", &Canonicalizer::squares},
        {"aten::softplus", &Canonicalizer::softplus},
        {"aten::binary_cross_entropy_with_logits", &Canonicalizer::cross_entropy_of_logits},
        {"aten::std.correction", &Canonicalizer::variance},
        {"aten::var.correction", &Canonicalizer::variance},
        {"aten::max.dim", &Canonicalizer::extremum},
        {"aten::min.dim", &Canonicalizer::extremum},
        {"aten::masked_fill.Scalar", &Canonicalizer::chosen},
        {"aten::instance_norm", &Canonicalizer::weighed_after},
        {"aten::batch_norm", &Canonicalizer::by_running_statistics},
        {"aten::native_layer_norm", &Canonicalizer::with_weights},
        {"aten::rms_norm", &Canonicalizer::with_weights}};
    const auto found = kParts.find(call.op);
    const auto* x = tensor(call, 0);
    return found != kParts.end() && x != nullptr && value(x->value).dtype == trace::DType::kF32 &&
           !value(x->value).sizes.empty() && (this->*found->second)(call);
  }

  const Dims& sizes_of(const Arg& arg) const {
    return value(std::get<trace::TensorRef>(arg.node).value).sizes;
  }
  // A part with a result of its own, or that of the whole.
  void part(std::string op, std::vector<Arg> args, Arg result, const Call& of) {
    add_canonical({.op = std::move(op),
                   .args = std::move(args),
                   .kwargs = {},
                   .result = std::move(result),
                   .parts = {},
                   .place = of.place});
  }
  Arg part(std::string op, std::vector<Arg> args, const Call& of) {
    Arg result = made(Dims(sizes_of(args[0])), trace::DType::kF32);
    part(std::move(op), std::move(args), result, of);
    return result;
  }
  Arg one(double x) { return filled(x, {1}); }
  // What has a number for each channel of x (its dimension 1), as x's broadcast reads it.
  Arg by_channels(const Arg& of, const Dims& x, const Call& call) {
    Dims sizes(x.size() - 1, 1);
    sizes[0] = x[1];
    return sizes_of(of) == sizes ? of : viewed(of, sizes, call);
  }

  // relu(x) + w (x - relu(x))
  bool prelu(const Call& call) {
    const auto& x = call.args[0];
    Arg w = call.args[1];
    if (trace::element_count(value(tensor(call, 1)->value)) == 1) w = viewed(w, {1}, call);
    const Arg above = part("aten::relu", {x}, call), below = part("aten::sub.Tensor", {x, above}, call);
    part("aten::add.Tensor", {above, part("aten::mul.Tensor", {below, w}, call)}, call.result, call);
    return true;
  }

  // The first half along a dimension times the second's sigmoid.
  bool gated(const Call& call) {
    const auto& x = value(tensor(call, 0)->value);
    const auto dims =
        call.args.size() > 1 ? dims_of(call.args[1], x.sizes.size()) : Dims{std::ssize(x.sizes) - 1};
    if (!dims || dims->size() != 1) return false;
    Dims sizes = x.sizes;
    auto& size = sizes[static_cast<size_t>(dims->front())];
    size /= 2;
    const auto storage = x.storage;
    const Arg first = made(sizes, trace::DType::kF32, storage),
              second = made(sizes, trace::DType::kF32, storage);
    trace::List halves;
    halves.items = {first, second};
    part("aten::split.Tensor", {call.args[0], {size}, {dims->front()}}, {std::move(halves)}, call);
    part("aten::mul.Tensor", {first, part("aten::sigmoid", {second}, call)}, call.result, call);
    return true;
  }

  // The mean, the sum, or what it is of: a loss's reduction (1, 2, 0).
  void as_reduced(const Arg& of, int64_t how, const std::function<void(Arg)>& each, const Call& call) {
    if (how == 0) return each(call.result);
    each(of);
    part(how == 1 ? "aten::mean" : "aten::sum", {of}, call.result, call);
  }
  static int64_t reduction_of(const Call& call, size_t at) {
    const auto* how = at < call.args.size() ? std::get_if<int64_t>(&call.args[at].node) : nullptr;
    return how == nullptr ? 1 : *how;
  }

  // m (|x - y| - m / 2), m = min(|x - y|, delta): Huber's loss, and beta times the smooth one. One that is
  // both, as the smooth one.
  bool far_or_near(const Call& call) {
    const int64_t how = reduction_of(call, 2);
    const Number delta_argument = number(call.args, 3);
    const double delta = delta_argument.there ? delta_argument.is : 1;
    const bool huber = call.op == "aten::huber_loss";
    if (delta <= 0 || (!huber && how == 1 && delta == 1)) return false;
    if (how == 1 && delta == 1) {
      part("aten::smooth_l1_loss", {call.args[0], call.args[1]}, call.result, call);
      return true;
    }
    const Arg away = part("aten::abs", {part("aten::sub.Tensor", {call.args[0], call.args[1]}, call)}, call);
    const Arg near = part("aten::minimum", {away, one(delta)}, call);
    const Arg left = part("aten::sub.Tensor", {away, part("aten::mul.Tensor", {near, one(0.5)}, call)}, call);
    const bool scaled = !huber && delta != 1;
    const Arg last = scaled ? part("aten::mul.Tensor", {near, one(1 / delta)}, call) : near;
    as_reduced(
        made(Dims(sizes_of(near)), trace::DType::kF32), how,
        [&](Arg each) { part("aten::mul.Tensor", {left, last}, std::move(each), call); }, call);
    return true;
  }

  // The squares of the differences, summed or one by one; their mean is in the catalogue.
  bool squares(const Call& call) {
    const int64_t how = reduction_of(call, 2);
    if (how == 1) return false;
    const Arg apart = part("aten::sub.Tensor", {call.args[0], call.args[1]}, call);
    as_reduced(
        made(Dims(sizes_of(apart)), trace::DType::kF32), how,
        [&](Arg each) { part("aten::pow.Tensor_Scalar", {apart, {int64_t{2}}}, std::move(each), call); },
        call);
    return true;
  }

  // Its slope is always said.
  bool softplus(const Call& call) {
    if (call.args.size() != 1) return false;
    part("aten::softplus", {call.args[0], {1.0}}, call.result, call);
    return true;
  }

  // softplus(x) - x y
  bool cross_entropy_of_logits(const Call& call) {
    for (size_t weight = 2; weight < 4 && weight < call.args.size(); ++weight)
      if (!is_none(call.args[weight])) return false;
    const Arg plus = part("aten::softplus", {call.args[0], {1.0}}, call),
              product = part("aten::mul.Tensor", {call.args[0], call.args[1]}, call);
    as_reduced(
        made(Dims(sizes_of(plus)), trace::DType::kF32), reduction_of(call, 4),
        [&](Arg each) { part("aten::sub.Tensor", {plus, product}, std::move(each), call); }, call);
    return true;
  }

  // A variance is corrected by one; a deviation is its root.
  bool variance(const Call& call) {
    const auto& x = value(tensor(call, 0)->value);
    const bool root = call.op == "aten::std.correction";
    const auto correction = std::ranges::find(call.kwargs, "correction", &std::pair<std::string, Arg>::first);
    const double by = correction == call.kwargs.end() || is_none(correction->second)
                          ? 1
                          : number({correction->second}, 0).is;
    if ((!root && by == 1) || call.args.size() < 2) return false;
    Dims dims(x.sizes.size());
    std::iota(dims.begin(), dims.end(), 0);
    if (!is_none(call.args[1])) {
      const auto some = dims_of(call.args[1], x.sizes.size());
      if (!some) return false;
      if (!some->empty()) dims = *some;
    }
    double count = 1;
    for (const int64_t d : dims) count *= static_cast<double>(x.sizes[static_cast<size_t>(d)]);
    if (by != 1 && (count <= 1 || count <= by)) return false;
    const auto& result = value(std::get<trace::TensorRef>(call.result.node).value);
    const Dims sizes = result.sizes;
    Call own = call;
    own.op = "aten::var.correction";
    std::erase_if(own.kwargs, [](const auto& item) { return item.first == "correction"; });
    own.kwargs.insert(own.kwargs.begin(), {"correction", {int64_t{1}}});
    own.result = made(sizes, trace::DType::kF32);
    const Arg corrected = own.result;
    add_canonical(std::move(own));
    const bool scaled = by != 1;
    const Arg scale = scaled ? one((count - 1) / (count - by)) : Arg();
    if (!root)
      part("aten::mul.Tensor", {corrected, scale}, call.result, call);
    else
      part("aten::sqrt", {scaled ? part("aten::mul.Tensor", {corrected, scale}, call) : corrected},
           call.result, call);
    return true;
  }

  // The values alone, where no step reads the indices.
  bool extremum(const Call& call) {
    const auto results = trace::tensors_in(call.result);
    if (results.size() != 2 || call.args.size() < 2) return false;
    const auto places = value(results[1]).storage;
    const auto reads = [&](ValueId id) { return value(id).storage == places; };
    for (const auto& step : result_.forward.steps)
      if (const auto* other = std::get_if<Call>(&step);
          other != nullptr && std::ranges::any_of(read_by(*other), reads))
        return false;
    if (std::ranges::any_of(trace::tensors_in(result_.forward.output), reads)) return false;
    Call own = call;
    own.op = call.op == "aten::max.dim" ? "aten::amax" : "aten::amin";
    own.args[1] = list_of({std::get<int64_t>(call.args[1].node)});
    own.result = {trace::TensorRef{results[0]}};
    add_canonical(std::move(own));
    return true;
  }

  // One of two, by the mask: the number as a tensor.
  bool chosen(const Call& call) {
    const Number with = number(call.args, 2);
    if (!with.there) return false;
    const Dims sizes = sizes_of(call.args[0]);
    part("aten::where.self", {call.args[1], filled(with.is, sizes), call.args[0]}, call.result, call);
    return true;
  }

  // An instance norm without weights, then these.
  bool weighed_after(const Call& call) {
    if (call.args.size() < 3 || is_none(call.args[1]) || is_none(call.args[2])) return false;
    const Dims sizes = sizes_of(call.args[0]);
    auto args = call.args;
    args[1] = args[2] = {trace::None{}};
    const Arg norm = part("aten::instance_norm", std::move(args), call);
    const Arg scaled = part("aten::mul.Tensor", {norm, by_channels(call.args[1], sizes, call)}, call);
    part("aten::add.Tensor", {scaled, by_channels(call.args[2], sizes, call)}, call.result, call);
    return true;
  }

  // (x - mean) / sqrt(variance + epsilon), then the weights.
  bool by_running_statistics(const Call& call) {
    const auto* by_input = call.args.size() < 8 ? nullptr : std::get_if<bool>(&call.args[5].node);
    const Dims sizes = sizes_of(call.args[0]);
    if (by_input == nullptr || *by_input || tensor(call, 3) == nullptr || tensor(call, 4) == nullptr ||
        sizes.size() < 2)
      return false;
    const Arg root = part(
        "aten::rsqrt", {part("aten::add.Tensor", {call.args[4], one(number(call.args, 7).is)}, call)}, call);
    const Arg apart = part("aten::sub.Tensor", {call.args[0], by_channels(call.args[3], sizes, call)}, call);
    const bool weights = tensor(call, 1) != nullptr, bias = tensor(call, 2) != nullptr;
    const Arg scale = weights ? part("aten::mul.Tensor", {root, call.args[1]}, call) : root;
    const Arg scaled = bias ? made(sizes, trace::DType::kF32) : call.result;
    part("aten::mul.Tensor", {apart, by_channels(scale, sizes, call)}, scaled, call);
    if (bias) part("aten::add.Tensor", {scaled, by_channels(call.args[2], sizes, call)}, call.result, call);
    return true;
  }

  // Weights of ones and a bias of zeros, where a norm of rows has none.
  bool with_weights(const Call& call) {
    const auto dims = call.args.size() < 3 ? nullptr : std::get_if<trace::List>(&call.args[1].node);
    if (dims == nullptr) return false;
    Dims sizes;
    for (const auto& item : dims->items) {
      const auto* size = std::get_if<int64_t>(&item.node);
      if (size == nullptr) return false;
      sizes.push_back(*size);
    }
    Call own = call;
    const bool biased = call.op == "aten::native_layer_norm";
    if (!is_none(own.args[2]) && (!biased || own.args.size() < 4 || !is_none(own.args[3]))) return false;
    if (is_none(own.args[2])) own.args[2] = filled(1, sizes);
    if (biased && own.args.size() > 3 && is_none(own.args[3])) own.args[3] = filled(0, sizes);
    add(std::move(own));
    return true;
  }

  // A reduction over several dimensions, with `keepdim`, or over one counted from the end.
  bool reduced(Call& call) {
    const auto found = reductions().find(call.op);
    const auto* input = tensor(call, 0);
    if (found == reductions().end() || input == nullptr || trace::tensors_in(call.result).size() != 1)
      return false;
    const auto& [at, all, list] = found->second;
    const trace::Value x = value(input->value);
    if (at >= call.args.size() || is_none(call.args[at])) return false;
    auto dims = dims_of(call.args[at], x.sizes.size());
    if (!dims || dims->empty()) return false;
    bool keeps = false, negative = false;
    const auto taken = [&](const Arg& arg) {
      const auto* flag = std::get_if<bool>(&arg.node);
      keeps |= flag != nullptr && *flag;
    };
    if (call.args.size() > at + 1) taken(call.args[at + 1]);
    for (const auto& [name, arg] : call.kwargs)
      if (name == "keepdim") taken(arg);
    for (const auto& item :
         list ? std::get<trace::List>(call.args[at].node).items : std::vector<Arg>{call.args[at]})
      negative |= std::get<int64_t>(item.node) < 0;
    if (dims->size() == 1 && !keeps && !negative) return false;
    std::ranges::sort(*dims);
    if (std::ranges::adjacent_find(*dims) != dims->end()) return false;
    const bool adjacent = dims->back() - dims->front() == std::ssize(*dims) - 1;
    const bool whole = dims->size() == x.sizes.size() && !all.empty();
    if (!whole && dims->size() > 1 && (!adjacent || !is_contiguous(x))) return false;

    Arg from = call.args[0];
    const auto first = static_cast<size_t>(dims->front());
    if (whole) {
      call.op = all;
      call.args.resize(at);
    } else {
      Dims sizes = x.sizes;
      if (dims->size() > 1) {
        sizes.erase(sizes.begin() + dims->front() + 1, sizes.begin() + dims->back() + 1);
        sizes[first] = 1;
        for (const int64_t d : *dims) sizes[first] *= x.sizes[static_cast<size_t>(d)];
        from = viewed(from, sizes, call);
      }
      call.args.resize(at + 1);
      call.args[at] = list ? list_of({static_cast<int64_t>(first)}) : Arg{static_cast<int64_t>(first)};
    }
    call.args[0] = from;
    std::erase_if(call.kwargs, [&](const auto& item) {
      return item.first == "keepdim" ||
             (whole && item.first == "correction" && number({item.second}, 0).is == 1);
    });
    if (!keeps) {
      add(std::move(call));
      return true;
    }
    Dims left;
    for (size_t d = 0; d < x.sizes.size(); ++d)
      if (std::ranges::find(*dims, static_cast<int64_t>(d)) == dims->end()) left.push_back(x.sizes[d]);
    const Arg result = call.result;
    const auto& kept = value(std::get<trace::TensorRef>(result.node).value);
    const Dims sizes = kept.sizes;
    const auto type = kept.dtype;
    const auto storage = kept.storage;
    call.result = made(left, type, storage);
    const Call place = call;
    add(std::move(call));
    viewed(place.result, sizes, place, &result);
    return true;
  }

  // A number as an operand: a tensor of one element.
  bool with_number(const Call& call) {
    const auto* x = tensor(call, 0);
    if (x == nullptr || value(x->value).dtype != trace::DType::kF32 || value(x->value).sizes.empty() ||
        !call.kwargs.empty())
      return false;
    const auto rewrite = [&](std::string op, Arg of, double operand, Arg result) {
      const Arg with = filled(operand, {1});
      add({.op = std::move(op),
           .args = {std::move(of), with},
           .kwargs = {},
           .result = std::move(result),
           .parts = {},
           .place = call.place});
    };
    const auto& args = call.args;
    const Number second = number(args, 1);
    const auto& sizes = value(x->value).sizes;
    static const std::map<std::string_view, std::string_view> kBinary = {
        {"aten::add.Tensor", "aten::add.Tensor"}, {"aten::sub.Tensor", "aten::sub.Tensor"},
        {"aten::mul.Tensor", "aten::mul.Tensor"}, {"aten::div.Tensor", "aten::div.Tensor"},
        {"aten::add.Scalar", "aten::add.Tensor"}, {"aten::sub.Scalar", "aten::sub.Tensor"},
        {"aten::mul.Scalar", "aten::mul.Tensor"}, {"aten::div.Scalar", "aten::div.Tensor"},
        {"aten::clamp_min", "aten::maximum"},     {"aten::clamp_max", "aten::minimum"}};
    if (const auto found = kBinary.find(call.op);
        found != kBinary.end() && args.size() == 2 && second.there) {
      rewrite(std::string(found->second), args[0], second.is, call.result);
      return true;
    }
    if (call.op == "aten::neg" && args.size() == 1) {
      rewrite("aten::mul.Tensor", args[0], -1, call.result);
      return true;
    }
    if (call.op == "aten::rsub.Scalar" && args.size() == 2 && second.there) {
      const Dims own = sizes;
      const Arg negative = made(own, trace::DType::kF32);
      rewrite("aten::mul.Tensor", args[0], -1, negative);
      rewrite("aten::add.Tensor", negative, second.is, call.result);
      return true;
    }
    if (call.op != "aten::clamp" || args.size() < 2) return false;
    const Number upper = number(args, 2);
    if (second.there != upper.there) {
      rewrite(second.there ? "aten::maximum" : "aten::minimum", args[0], second.there ? second.is : upper.is,
              call.result);
      return true;
    }
    const bool whole = std::holds_alternative<int64_t>(args[1].node) ||
                       (args.size() > 2 && std::holds_alternative<int64_t>(args[2].node));
    if (!second.there || !whole) return false;
    Call clamp = call;
    for (auto& arg : clamp.args)
      if (const auto* bound = std::get_if<int64_t>(&arg.node)) arg.node = static_cast<double>(*bound);
    add(std::move(clamp));
    return true;
  }

  // Of two tensors the larger one first; what the smaller one has in several dimensions, all of the larger
  // one's last, as one.
  bool larger_first(const Call& call) {
    static const std::set<std::string_view> kBinary = {"aten::add.Tensor", "aten::mul.Tensor",
                                                       "aten::maximum",    "aten::minimum",
                                                       "aten::sub.Tensor", "aten::div.Tensor"};
    const auto *a = tensor(call, 0), *b = tensor(call, 1);
    if (!kBinary.contains(call.op) || a == nullptr || b == nullptr || call.args.size() != 2 ||
        !call.kwargs.empty())
      return false;
    Call own = call;
    bool other = false;
    if (trace::element_count(value(a->value)) < trace::element_count(value(b->value)) &&
        call.op != "aten::sub.Tensor" && call.op != "aten::div.Tensor") {
      std::swap(own.args[0], own.args[1]), std::swap(a, b);
      other = true;
    }
    const trace::Value large = value(a->value), small = value(b->value);
    const auto& result = value(std::get<trace::TensorRef>(call.result.node).value);
    const bool last = small.sizes.size() > 1 && small.sizes.size() < large.sizes.size() &&
                      std::equal(small.sizes.rbegin(), small.sizes.rend(), large.sizes.rbegin());
    if (last && result.sizes == large.sizes && is_contiguous(large) && is_contiguous(small)) {
      const int64_t inner = trace::element_count(small),
                    outer = inner == 0 ? 0 : trace::element_count(large) / inner;
      const Arg to = call.result;
      const Dims sizes = result.sizes;
      own.args = {viewed(own.args[0], {outer, inner}, call), viewed(own.args[1], {inner}, call)};
      own.result = made({outer, inner}, result.dtype, result.storage);
      const Arg between = own.result;
      add(std::move(own));
      viewed(between, sizes, call, &to);
      return true;
    }
    if (other) add(std::move(own));
    return other;
  }

  // A bias of zeros, where there is none.
  bool with_bias(const Call& call) {
    const auto *x = tensor(call, 0), *weight = tensor(call, 1);
    const bool linear = call.op == "aten::linear";
    if ((!linear && call.op != "aten::convolution") || x == nullptr || weight == nullptr ||
        value(x->value).dtype != trace::DType::kF32 || value(weight->value).sizes.empty())
      return false;
    if (call.args.size() > 2 ? !is_none(call.args[2]) : !linear) return false;
    const auto* turned = call.args.size() > 8 ? std::get_if<bool>(&call.args[6].node) : nullptr;
    const auto* groups = call.args.size() > 8 ? std::get_if<int64_t>(&call.args[8].node) : nullptr;
    if (!linear && (turned == nullptr || groups == nullptr)) return false;
    Call own = call;
    if (own.args.size() < 3) own.args.emplace_back();
    const auto& sizes = value(weight->value).sizes;
    own.args[2] = filled(0, {!linear && *turned ? sizes.at(1) * *groups : sizes[0]});
    add(std::move(own));
    return true;
  }

  CanonicalSteps result_{};
};

}  // namespace

CanonicalSteps canonical_steps(const trace::Trace& trace, const trace::Phase& forward,
                               const std::vector<size_t>& steps) {
  Canonicalizer canonicalizer(trace, forward);
  for (const size_t step : steps) canonicalizer.add_canonical(std::get<Call>(forward.steps[step]));
  return canonicalizer.take();
}

}  // namespace nereid::render
