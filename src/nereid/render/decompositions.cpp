// Operators outside the sampler's catalogue as operators of it.
#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "nereid/render/canonicalizer.h"
#include "nereid/render/decompositions_arithmetic.h"
#include "nereid/render/subgraph_source.h"

namespace nereid::render {

bool Canonicalizer::in_parts(const Call& call) {
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
  if (x == nullptr || value(x->value).dtype != trace::DType::kF32 || value(x->value).sizes.empty())
    return false;
  return found != kParts.end() ? (this->*found->second)(call) : decompose_arithmetic(*this, call);
}

trace::Arg Canonicalizer::by_channels(const Arg& of, const Dims& x, const Call& call) {
  Dims sizes(x.size() - 1, 1);
  sizes[0] = x[1];
  return sizes_of(of) == sizes ? of : viewed(of, sizes, call);
}

bool Canonicalizer::prelu(const Call& call) {
  const auto& x = call.args[0];
  Arg w = call.args[1];
  if (trace::element_count(value(tensor(call, 1)->value)) == 1) w = viewed(w, {1}, call);
  const Arg above = part("aten::relu", {x}, call), below = part("aten::sub.Tensor", {x, above}, call);
  part("aten::add.Tensor", {above, part("aten::mul.Tensor", {below, w}, call)}, call.result, call);
  return true;
}

bool Canonicalizer::gated(const Call& call) {
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

void Canonicalizer::as_reduced(const Arg& of, int64_t how, const std::function<void(Arg)>& each,
                               const Call& call) {
  if (how == 0) return each(call.result);
  each(of);
  part(how == 1 ? "aten::mean" : "aten::sum", {of}, call.result, call);
}

int64_t Canonicalizer::reduction_of(const Call& call, size_t at) {
  const auto* how = at < call.args.size() ? std::get_if<int64_t>(&call.args[at].node) : nullptr;
  return how == nullptr ? 1 : *how;
}

bool Canonicalizer::far_or_near(const Call& call) {
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

bool Canonicalizer::squares(const Call& call) {
  const int64_t how = reduction_of(call, 2);
  if (how == 1) return false;
  const Arg apart = part("aten::sub.Tensor", {call.args[0], call.args[1]}, call);
  as_reduced(
      made(Dims(sizes_of(apart)), trace::DType::kF32), how,
      [&](Arg each) { part("aten::pow.Tensor_Scalar", {apart, {int64_t{2}}}, std::move(each), call); }, call);
  return true;
}

bool Canonicalizer::softplus(const Call& call) {
  if (call.args.size() != 1) return false;
  part("aten::softplus", {call.args[0], {1.0}}, call.result, call);
  return true;
}

bool Canonicalizer::cross_entropy_of_logits(const Call& call) {
  for (size_t weight = 2; weight < 4 && weight < call.args.size(); ++weight)
    if (!is_none(call.args[weight])) return false;
  const Arg plus = part("aten::softplus", {call.args[0], {1.0}}, call),
            product = part("aten::mul.Tensor", {call.args[0], call.args[1]}, call);
  as_reduced(
      made(Dims(sizes_of(plus)), trace::DType::kF32), reduction_of(call, 4),
      [&](Arg each) { part("aten::sub.Tensor", {plus, product}, std::move(each), call); }, call);
  return true;
}

bool Canonicalizer::variance(const Call& call) {
  const auto& x = value(tensor(call, 0)->value);
  const bool root = call.op == "aten::std.correction";
  const auto correction = std::ranges::find(call.kwargs, "correction", &std::pair<std::string, Arg>::first);
  const double by =
      correction == call.kwargs.end() || is_none(correction->second) ? 1 : number({correction->second}, 0).is;
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
  add_canonical(own);
  const bool scaled = by != 1;
  const Arg scale = scaled ? one((count - 1) / (count - by)) : Arg();
  if (!root)
    part("aten::mul.Tensor", {corrected, scale}, call.result, call);
  else
    part("aten::sqrt", {scaled ? part("aten::mul.Tensor", {corrected, scale}, call) : corrected}, call.result,
         call);
  return true;
}

bool Canonicalizer::extremum(const Call& call) {
  const auto results = trace::tensors_in(call.result);
  if (results.size() != 2 || call.args.size() < 2) return false;
  if (is_read(result_, value(results[1]).storage)) return false;
  Call own = call;
  own.op = call.op == "aten::max.dim" ? "aten::amax" : "aten::amin";
  own.args[1] = list_of({std::get<int64_t>(call.args[1].node)});
  own.result = {trace::TensorRef{results[0]}};
  add_canonical(own);
  return true;
}

bool Canonicalizer::chosen(const Call& call) {
  const Number with = number(call.args, 2);
  if (!with.there) return false;
  const Dims sizes = sizes_of(call.args[0]);
  part("aten::where.self", {call.args[1], filled(with.is, sizes), call.args[0]}, call.result, call);
  return true;
}

bool Canonicalizer::weighed_after(const Call& call) {
  if (call.args.size() < 3 || is_none(call.args[1]) || is_none(call.args[2])) return false;
  const Dims sizes = sizes_of(call.args[0]);
  auto args = call.args;
  args[1] = args[2] = {trace::None{}};
  const Arg norm = part("aten::instance_norm", std::move(args), call);
  const Arg scaled = part("aten::mul.Tensor", {norm, by_channels(call.args[1], sizes, call)}, call);
  part("aten::add.Tensor", {scaled, by_channels(call.args[2], sizes, call)}, call.result, call);
  return true;
}

bool Canonicalizer::by_running_statistics(const Call& call) {
  const auto* by_input = call.args.size() < 8 ? nullptr : std::get_if<bool>(&call.args[5].node);
  const Dims sizes = sizes_of(call.args[0]);
  if (by_input == nullptr || *by_input || tensor(call, 3) == nullptr || tensor(call, 4) == nullptr ||
      sizes.size() < 2)
    return false;
  const Arg root = part("aten::rsqrt",
                        {part("aten::add.Tensor", {call.args[4], one(number(call.args, 7).is)}, call)}, call);
  const Arg apart = part("aten::sub.Tensor", {call.args[0], by_channels(call.args[3], sizes, call)}, call);
  const bool weights = tensor(call, 1) != nullptr, bias = tensor(call, 2) != nullptr;
  const Arg scale = weights ? part("aten::mul.Tensor", {root, call.args[1]}, call) : root;
  const Arg scaled = bias ? made(sizes, trace::DType::kF32) : call.result;
  part("aten::mul.Tensor", {apart, by_channels(scale, sizes, call)}, scaled, call);
  if (bias) part("aten::add.Tensor", {scaled, by_channels(call.args[2], sizes, call)}, call.result, call);
  return true;
}

bool Canonicalizer::with_weights(const Call& call) {
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

}  // namespace nereid::render
