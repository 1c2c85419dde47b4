#include "nereid/replay/worker/compare/index_outputs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::ValueId;

struct MakerKind {
  std::string_view name;
  size_t result;     // which of its results the places are
  int dim, largest;  // positions of these arguments; -1: there is none
  bool one;
};
constexpr MakerKind kMakers[] = {{"argmax", 0, 1, -1, true},  {"argmin", 0, 1, -1, true},
                                 {"max", 1, 1, -1, true},     {"min", 1, 1, -1, true},
                                 {"topk", 1, 2, 3, false},    {"sort", 1, 1, 2, false},
                                 {"argsort", 0, 1, 2, false}, {"kthvalue", 1, 2, -1, true},
                                 {"median", 1, 1, -1, true},  {"nanmedian", 1, 1, -1, true}};
constexpr std::string_view kCopies[] = {"to",      "_to_copy", "clone",   "contiguous", "reshape",
                                        "flatten", "type_as",  "squeeze", "int",        "long"};

const trace::Arg* argument(const trace::Call& call, int position, std::string_view name) {
  for (const auto& [key, value] : call.kwargs)
    if (key == name) return &value;
  if (position < 0 || static_cast<size_t>(position) >= call.args.size()) return nullptr;
  return &call.args[static_cast<size_t>(position)];
}
template <typename T>
std::optional<T> number(const trace::Arg* arg) {
  if (arg == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<T>(&arg->node)) return *value;
  return std::nullopt;
}

const trace::Phase* judged_phase(const trace::Trace& trace) {
  const trace::Phase* judged = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) judged = &phase;
  return judged;
}

// Numbers that were booleans: their greatest comes many times in a row, and it is the first place that says
// something (the first token that ends a text).
bool are_flags(const trace::Trace& trace, ValueId operand) {
  const auto value = [&](ValueId v) -> const trace::Value& { return trace.values[static_cast<size_t>(v)]; };
  const trace::Call* source = nullptr;
  for (const auto& step : judged_phase(trace)->steps)
    if (const auto* call = std::get_if<trace::Call>(&step))
      for (const auto result : trace::tensors_in(call->result))
        if (value(result).storage == value(operand).storage && !source) source = call;
  if (!source || std::ranges::find(kCopies, trace::split_name(source->op).name) == std::end(kCopies) ||
      source->args.empty())
    return false;
  const auto from = trace::tensors_in(source->args[0]);
  return from.size() == 1 && value(from[0]).dtype == trace::DType::kBool;
}

std::optional<IndexMaker> maker_of(const trace::Trace& trace, const trace::Call& call, int step) {
  const auto name = trace::split_name(call.op);
  const auto* kind = std::ranges::find(kMakers, name.name, &MakerKind::name);
  const auto results = trace::tensors_in(call.result);
  if (kind == std::end(kMakers) || kind->result >= results.size() || call.args.empty()) return std::nullopt;
  const auto operands = trace::tensors_in(call.args[0]);
  if (operands.size() != 1) return std::nullopt;
  const auto result = results[kind->result];
  if (!trace::is_integral(trace.values[static_cast<size_t>(result)].dtype)) return std::nullopt;
  const bool stable_overload = call.op.ends_with(".stable");  // (self, *, stable, dim, descending)
  const int shift = stable_overload && call.args.size() > 1 ? 1 : 0;
  IndexMaker maker{.step = step, .operand = operands[0], .result = result, .one = kind->one};
  maker.dim = number<int64_t>(argument(call, kind->dim + shift, "dim"));
  if (!maker.dim && name.name != "argmax" && name.name != "argmin") maker.dim = -1;
  maker.stable = number<bool>(argument(call, stable_overload ? 1 : -1, "stable")).value_or(false);
  const bool one_extreme = maker.one && name.name.find("median") == name.name.npos && name.name != "kthvalue";
  maker.stable |= one_extreme && are_flags(trace, maker.operand);
  if (name.name == "topk") {
    maker.open_order = !number<bool>(argument(call, 4, "sorted")).value_or(true);
    maker.values = results[0];
  }
  const char* largest = name.name == "topk" ? "largest" : "descending";
  maker.largest = name.name == "argmax" || name.name == "max" ||
                  number<bool>(argument(call, kind->largest + shift, largest)).value_or(name.name == "topk");
  return maker;
}

// [rows, size] of the operand, and the same order of rows for what has one number of each, or several.
at::Tensor as_rows(const at::Tensor& tensor, const IndexMaker& maker) {
  if (!maker.dim || tensor.dim() == 0) return tensor.reshape({1, -1});
  const auto last = tensor.movedim(*maker.dim, -1);
  return last.reshape({-1, last.size(-1)});
}

at::Tensor over(at::Tensor flat, const trace::Value& value) {
  return flat.as_strided(value.sizes, value.strides, value.offset);
}

int64_t extent(const trace::Value& value) {
  int64_t last = value.offset;
  for (size_t d = 0; d < value.sizes.size(); ++d)
    last += std::max<int64_t>(value.sizes[d] - 1, 0) * value.strides[d];
  return last + 1;
}

// The number of its row at each element of the maker's result.
at::Tensor row_numbers(const trace::Value& result, const IndexMaker& maker, int64_t rows,
                       const at::TensorOptions& options) {
  if (!maker.dim || rows == 1) return at::zeros(result.sizes, options);
  int64_t size = 1;
  for (const auto s : result.sizes) size *= s;
  const auto numbers = at::arange(rows, options);
  if (size == rows) return numbers.reshape(result.sizes);  // one for each, kept as a dimension or not
  const auto rank = static_cast<int64_t>(result.sizes.size());
  const auto dim = *maker.dim < 0 ? *maker.dim + rank : *maker.dim;
  auto others = result.sizes;
  others[static_cast<size_t>(dim)] = 1;
  return numbers.reshape(others).expand(result.sizes);
}

}  // namespace

std::vector<IndexMaker> index_makers(const trace::Trace& trace) {
  std::vector<IndexMaker> makers;
  const auto* judged = judged_phase(trace);
  for (size_t i = 0; judged && i < judged->steps.size(); ++i)
    if (const auto* call = std::get_if<trace::Call>(&judged->steps[i]))
      if (auto maker = maker_of(trace, *call, static_cast<int>(i))) makers.push_back(*maker);
  return makers;
}

bool uses_places(const trace::Trace& trace, const std::vector<IndexMaker>& makers) {
  const auto* judged = judged_phase(trace);
  const auto storage_of = [&](ValueId value) { return trace.values[static_cast<size_t>(value)].storage; };
  const auto reads = [&](const trace::Arg& arg, const IndexMaker& maker) {
    return std::ranges::any_of(trace::tensors_in(arg),
                               [&](ValueId v) { return storage_of(v) == storage_of(maker.result); });
  };
  return std::ranges::any_of(makers, [&](const IndexMaker& maker) {
    if (reads(judged->output, maker)) return true;
    return std::ranges::any_of(judged->steps, [&](const trace::Step& step) {
      const auto* call = std::get_if<trace::Call>(&step);
      return !call || std::ranges::any_of(call->args, [&](const auto& arg) { return reads(arg, maker); }) ||
             std::ranges::any_of(call->kwargs, [&](const auto& arg) { return reads(arg.second, maker); });
    });
  });
}

std::optional<IndexOutput> index_output(const trace::Trace& trace, const std::vector<IndexMaker>& makers,
                                        ValueId output) {
  const auto* judged = judged_phase(trace);
  const auto storage_of = [&](ValueId value) { return trace.values[static_cast<size_t>(value)].storage; };
  std::vector<std::pair<ValueId, ValueId>> copies;
  ValueId at = output;
  for (int hops = 0; hops < 16; ++hops) {
    const auto storage = storage_of(at);
    for (const auto& maker : makers)
      if (storage_of(maker.result) == storage) {
        std::ranges::reverse(copies);
        return IndexOutput{maker, copies};
      }
    const trace::Call* source = nullptr;
    ValueId made = -1, from = -1;
    for (const auto& step : judged->steps) {
      const auto* call = std::get_if<trace::Call>(&step);
      if (!call) return std::nullopt;
      const auto operands = call->args.empty() ? std::vector<ValueId>() : trace::tensors_in(call->args[0]);
      const bool reads = std::ranges::any_of(operands, [&](ValueId v) { return storage_of(v) == storage; });
      if (reads && trace::split_name(call->op).in_place) return std::nullopt;  // it is changed where it is
      for (const auto result : trace::tensors_in(call->result))
        if (!reads && storage_of(result) == storage && operands.size() == 1)
          source = call, made = result, from = operands[0];
    }
    if (!source || std::ranges::find(kCopies, trace::split_name(source->op).name) == std::end(kCopies))
      return std::nullopt;
    copies.emplace_back(from, made);
    at = from;
  }
  return std::nullopt;
}

Places::Places(const IndexOutput& output, const trace::Trace& trace, ValueId id, const at::Tensor& values)
    : maker_(output.maker), values_(as_rows(values, output.maker).contiguous()) {
  const auto value = [&](ValueId v) -> const trace::Value& { return trace.values[static_cast<size_t>(v)]; };
  const auto options = values.options().dtype(c10::kLong);
  tolerance_ = at::zeros({values_.size(0)}, values_.options());
  auto flat = at::zeros({extent(value(maker_.result))}, options);
  over(flat, value(maker_.result)).copy_(row_numbers(value(maker_.result), maker_, values_.size(0), options));
  const auto covers = [&](const trace::Value& v) {
    if (extent(v) <= flat.numel()) return;
    flat = at::cat({flat, at::zeros({extent(v) - flat.numel()}, options)});
  };
  for (const auto& [from, to] : output.copies) {
    covers(value(from));
    const auto moved = over(flat, value(from)).reshape(value(to).sizes);
    flat = at::zeros({extent(value(to))}, options);
    over(flat, value(to)).copy_(moved);
  }
  covers(value(id));
  rows_ = over(flat, value(id)).reshape({-1}).contiguous();
}

void Places::widen(const at::Tensor& values, double factor, double epsilon) {
  const auto other = as_rows(values, maker_).to(c10::kDouble);
  const auto error =
      at::where(other.isfinite().logical_and(values_.isfinite()), other.sub(values_).abs(), 0.0);
  const auto largest = error.amax(1);
  if (largest.max().item().toDouble() == 0) return;  // exact: only equals are equal
  const auto size = at::where(values_.isfinite(), values_, 0.0).square().mean(1).sqrt();
  // A row of a few values may be exact by luck: what rows err by as a rule, relative to their size, is every
  // row's.
  const auto usual = at::where(size.gt(0), largest.div(size), 0.0).square().mean().sqrt();
  tolerance_ = at::maximum(tolerance_, at::maximum(largest, size.mul(usual)).mul(factor));
  tolerance_ = at::maximum(tolerance_, size.mul(epsilon));
}

at::Tensor Places::wrong(const at::Tensor& got, const at::Tensor& want, bool odd_inputs) const {
  const auto size = values_.size(1);
  const auto chosen = got.to(c10::kLong), wanted = want.to(c10::kLong).clamp(0, size - 1);
  const auto inside = chosen.ge(0).logical_and(chosen.lt(size));
  const auto base = rows_.mul(size);
  const auto place = base.add(chosen.clamp(0, size - 1));
  const auto all = values_.reshape({-1});
  const auto found = all.index_select(0, place), best = all.index_select(0, base.add(wanted));
  const auto allowed = tolerance_.index_select(0, rows_);
  auto right = found.eq(best).logical_or(found.sub(best).abs().le(allowed)).logical_and(inside);
  if (maker_.stable) right = right.logical_and(chosen.eq(wanted).logical_or(found.ne(best)));
  auto open = best.isnan();
  if (odd_inputs) open = open.logical_or(values_.isfinite().all(1).logical_not().index_select(0, rows_));
  right = right.logical_or(open);
  if (maker_.one || place.numel() < 2) return right.logical_not();
  const auto [ordered, order] = place.sort();
  const auto twice = ordered.slice(0, 1).eq(ordered.slice(0, 0, -1));
  auto repeated = at::zeros_like(right);
  repeated.index_copy_(0, order.slice(0, 1), twice);
  return right.logical_not().logical_or(repeated.logical_and(open.logical_not()));
}

namespace {
// What was chosen for each row, or of several in each, in the shape of the maker's result.
at::Tensor in_shape_of(const at::Tensor& result, const IndexMaker& maker, const at::Tensor& chosen) {
  if (!maker.dim || result.dim() == 0 || result.numel() == chosen.size(0))
    return chosen.reshape(result.sizes());
  auto sizes = result.movedim(*maker.dim, -1).sizes().vec();
  return chosen.reshape(sizes).movedim(-1, *maker.dim);
}
}  // namespace

at::Tensor other_choice(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& result,
                        int choice, at::Generator generator) {
  const auto rows = as_rows(values, maker);
  const auto back = [&](const at::Tensor& chosen) { return in_shape_of(result, maker, chosen); };
  if (maker.one) {
    const auto best = rows.gather(1, result.reshape({-1, 1}));
    const auto equal = rows.eq(best);
    const auto nth = equal.sum(1, true).clamp_min(1);
    const auto which = at::full_like(nth, choice).remainder(nth).add(1);
    return back(equal.cumsum(1).eq(which).logical_and(equal).to(c10::kByte).argmax(1));
  }
  const auto order =
      at::randperm(rows.size(1), generator, at::TensorOptions().dtype(c10::kLong)).to(rows.device());
  const auto mixed =
      std::get<1>(rows.index_select(1, order).sort(std::optional<bool>(true), 1, maker.largest));
  const auto places = order.index_select(0, mixed.reshape({-1})).reshape(mixed.sizes());
  return back(places.narrow(1, 0, as_rows(result, maker).size(1)));
}

at::Tensor order_of_values(const IndexMaker& maker, const at::Tensor& found) {
  const auto dim = maker.dim.value_or(-1);
  return found.argsort(true, dim, maker.largest).argsort(dim, false);
}

at::Tensor order_of_places(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& places) {
  const auto dim = maker.dim.value_or(-1);
  if (values.dim() == 0 || places.dim() != values.dim()) return {};
  const auto inside = places.to(c10::kLong).clamp(0, values.size(dim) - 1);
  return order_of_values(maker, values.gather(dim, inside));
}

at::Tensor in_order(const IndexMaker& maker, const at::Tensor& result, const at::Tensor& order) {
  return result.gather(maker.dim.value_or(-1), order);
}

bool has_ties(const IndexMaker& maker, const at::Tensor& values) {
  const auto rows = as_rows(values, maker);
  if (rows.size(1) < 2) return false;
  const auto sorted = std::get<0>(rows.sort(1));
  return sorted.slice(1, 1).eq(sorted.slice(1, 0, -1)).any().item().toBool();
}

at::Tensor choice_within(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& result,
                         double within, bool last) {
  const auto rows = as_rows(values, maker);
  const auto best = rows.gather(1, result.reshape({-1, 1}));
  auto near = rows.eq(best).logical_or_(rows.sub(best).abs_().le(best.abs().mul_(within)));
  if (last) near = near.flip(1);
  const auto place = near.to(c10::kByte).argmax(1);
  return in_shape_of(result, maker, last ? place.neg().add_(rows.size(1) - 1) : place);
}

bool has_near_ties(const IndexMaker& maker, const at::Tensor& values, double within) {
  const auto rows = as_rows(values, maker);
  if (rows.size(1) < 2) return false;
  const auto sorted = std::get<0>(rows.sort(1));
  const auto low = sorted.slice(1, 0, -1), high = sorted.slice(1, 1);
  return high.sub(low).le(at::maximum(low.abs(), high.abs()).mul_(within)).any().item().toBool();
}

}  // namespace nereid::replay
