#include "nereid/render/canonicalize.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "nereid/render/canonicalizer.h"
#include "nereid/render/subgraph_source.h"

namespace nereid::render {
namespace {

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

}  // namespace

Canonicalizer::Number Canonicalizer::number(const std::vector<Arg>& args, size_t at) {
  if (at >= args.size()) return {};
  if (const auto* whole = std::get_if<int64_t>(&args[at].node)) return {true, static_cast<double>(*whole)};
  if (const auto* real = std::get_if<double>(&args[at].node)) return {true, *real};
  return {};
}

trace::Arg Canonicalizer::list_of(const Dims& dims) {
  trace::List list;
  for (const int64_t d : dims) list.items.push_back({d});
  return {std::move(list)};
}

Canonicalizer::Canonicalizer(const trace::Trace& trace, const trace::Phase& forward) {
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

void Canonicalizer::add_canonical(const Call& call) {
  Call own = call;
  if (in_parts(own) || reduced(own) || with_number(own) || larger_first(own) || with_bias(own)) {
    result_.changed = true;
    return;
  }
  counted_from_the_front(own);
  add(std::move(own));
}

void Canonicalizer::add(Call call) {
  result_.steps.push_back(result_.forward.steps.size());
  result_.forward.steps.emplace_back(std::move(call));
}

trace::Arg Canonicalizer::made(const Dims& sizes, trace::DType type,
                               std::optional<trace::StorageId> storage) {
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
  return made(std::move(v));
}

trace::Arg Canonicalizer::made(trace::Value value) {
  result_.trace.values.push_back(std::move(value));
  return {trace::TensorRef{static_cast<ValueId>(result_.trace.values.size() - 1)}};
}

trace::Arg Canonicalizer::viewed(const Arg& x, const Dims& sizes, const Call& of, const Arg* result) {
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

trace::Arg Canonicalizer::filled(double x, const Dims& sizes) {
  const Arg arg = made(sizes, trace::DType::kF32);
  if (x > 0)
    result_.trace.storages.back().name =
        kPositive;  // what takes a root of it meets none below zero in its test, too
  result_.numbers.emplace_back(std::get<trace::TensorRef>(arg.node).value, x);
  return arg;
}

bool is_read(const CanonicalSteps& steps, trace::StorageId storage) {
  const auto reads = [&](trace::ValueId id) {
    return steps.trace.values[static_cast<size_t>(id)].storage == storage;
  };
  for (const auto& step : steps.forward.steps)
    if (const auto* call = std::get_if<trace::Call>(&step);
        call != nullptr && std::ranges::any_of(read_by(*call), reads))
      return true;
  return std::ranges::any_of(trace::tensors_in(steps.forward.output), reads);
}

std::optional<Canonicalizer::Dims> Canonicalizer::dims_of(const Arg& arg, size_t rank) {
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

void Canonicalizer::counted_from_the_front(Call& call) {
  const auto found = dimension_arguments().find(call.op);
  if (found == dimension_arguments().end() || found->second >= call.args.size() || call.args.empty()) return;
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

void Canonicalizer::part(std::string op, std::vector<Arg> args, Arg result, const Call& of) {
  add_canonical({.op = std::move(op),
                 .args = std::move(args),
                 .kwargs = {},
                 .result = std::move(result),
                 .parts = {},
                 .place = of.place});
}

trace::Arg Canonicalizer::part(std::string op, std::vector<Arg> args, const Call& of) {
  Arg result = made(Dims(sizes_of(args[0])), trace::DType::kF32);
  part(std::move(op), std::move(args), result, of);
  return result;
}

bool Canonicalizer::reduced(Call& call) {
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

bool Canonicalizer::with_number(const Call& call) {
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
  if (const auto found = kBinary.find(call.op); found != kBinary.end() && args.size() == 2 && second.there) {
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

bool Canonicalizer::larger_first(const Call& call) {
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

bool Canonicalizer::with_bias(const Call& call) {
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

CanonicalSteps canonical_steps(const trace::Trace& trace, const trace::Phase& forward,
                               const std::vector<size_t>& steps) {
  Canonicalizer canonicalizer(trace, forward);
  for (const size_t step : steps) canonicalizer.add_canonical(std::get<trace::Call>(forward.steps[step]));
  return canonicalizer.take();
}

}  // namespace nereid::render
