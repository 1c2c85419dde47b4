#include "nereid/replay/worker/trial/exponents.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "nereid/replay/structure.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::ValueId;

constexpr std::string_view kOfDifferences[] = {
    "softmax",       "_softmax", "log_softmax", "_log_softmax",       "logsumexp", "logcumsumexp",
    "_logcumsumexp", "softmin",  "logaddexp",   "cross_entropy_loss", "logaddexp2"};
constexpr std::string_view kExponentials[] = {"exp", "exp2", "expm1", "sigmoid"};
constexpr std::string_view kDifferences[] = {"sub", "rsub", "add", "subtract"};
constexpr std::string_view kMoves[] = {
    "view",      "reshape", "_to_copy", "to",    "clone",  "contiguous",  "transpose", "permute",
    "unsqueeze", "squeeze", "expand",   "slice", "select", "masked_fill", "where",     "_unsafe_view",
    "detach",    "alias",   "flatten",  "neg",   "copy",   "t",           "tril",      "triu"};
constexpr std::string_view kAttention = "scaled_dot_product_attention";

// Times log2(e) it is below 2^31: half an ulp is 64 there, and its power of two far from overflow. In fp16
// half an ulp of 2^28 is 8. The least of a row is beyond -1e9.
constexpr double kMostExponent = 0x1.5p30, kMostExponentInHalf = 0x1.5p27;

bool listed_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<ValueId> floats_in(const trace::Trace& trace, const trace::Call& call) {
  std::vector<ValueId> found;
  for (const auto& arg : call.args)
    for (const auto id : trace::tensors_in(arg))
      if (trace::is_floating(trace.values[id].dtype)) found.push_back(id);
  return found;
}

double scale_of_scores(const trace::Call& call, const at::Tensor& query) {
  for (const auto& [name, arg] : call.kwargs)
    if (const auto* number = name == "scale" ? std::get_if<double>(&arg.node) : nullptr)
      return std::abs(*number);
  if (call.args.size() > 6)
    if (const auto* number = std::get_if<double>(&call.args[6].node)) return std::abs(*number);
  return 1 / std::sqrt(static_cast<double>(query.size(-1)));
}

double longest_row(const at::Tensor& rows) {
  return std::sqrt(rows.to(c10::kDouble).nan_to_num(0, 0, 0).square().sum(-1).max().item().toDouble());
}

// The largest number that an exponential works on, with the inputs times so much. Of attention's scores a
// bound: the lengths of query and key.
double largest_exponent(TrialForward& forward, Float64Reference& recomputed,
                        const std::set<std::pair<int, ValueId>>& operands,
                        const std::set<trace::StorageId>& inputs, double factor) {
  double most = 0;
  std::map<int, double> queries;
  const auto& steps = judged_forward(recomputed.trace())->steps;
  const auto see = [&](int step, ValueId id, const at::Tensor& operand) {
    if (!operands.contains({step, id}) || operand.numel() == 0) return operand;
    const auto& call = std::get<trace::Call>(steps[static_cast<size_t>(step)]);
    if (trace::split_name(call.op).name != kAttention) {
      most = std::max(most, largest_size(operand));
      return operand;
    }
    const auto is = [&](size_t i) {
      return call.args.size() > i && trace::tensors_in(call.args[i]) == std::vector{id};
    };
    if (is(0)) queries[step] = longest_row(operand) * scale_of_scores(call, operand);
    if (is(1)) most = std::max(most, queries[step] * longest_row(operand));
    return operand;
  };
  recomputed.run(forward.own(), forward.options, {}, {.exchange = see, .scale = factor, .scaled = inputs});
  return most;
}

}  // namespace

std::set<std::pair<int, ValueId>> exponent_operands(const trace::Trace& trace) {
  std::set<std::pair<int, ValueId>> found;
  std::map<ValueId, int> made_by;
  const auto& steps = judged_forward(trace)->steps;
  const std::function<void(ValueId)> follow = [&](ValueId id) {
    const auto made = made_by.find(id);
    if (made == made_by.end()) return;
    const int step = made->second;
    const auto& call = std::get<trace::Call>(steps[static_cast<size_t>(step)]);
    const auto name = trace::split_name(call.op).name;
    const bool difference = listed_among(kDifferences, name);
    if (!difference && !listed_among(kMoves, name)) return;
    made_by.erase(made);  // once is enough
    for (const auto operand : floats_in(trace, call)) {
      if (difference) found.insert({step, operand});
      follow(operand);
    }
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* call = std::get_if<trace::Call>(&steps[i]);
    if (call == nullptr) continue;
    const auto name = trace::split_name(call->op).name;
    const bool of_differences = listed_among(kOfDifferences, name) || name == kAttention;
    if (of_differences || listed_among(kExponentials, name))
      for (const auto operand : floats_in(trace, *call)) {
        if (of_differences) found.insert({static_cast<int>(i), operand});
        follow(operand);
      }
    for (const auto id : trace::tensors_in(call->result)) made_by[id] = static_cast<int>(i);
  }
  return found;
}

std::optional<double> factor_for_exponents(TrialForward& forward, const std::set<trace::StorageId>& inputs) {
  constexpr int kTries = 4;
  constexpr double kFirstStep = -20, kNear = 0.02, kLeastSlope = 0.25;  // powers of two
  if (forward.frugal) return std::nullopt;
  auto* recomputed = forward.references.in_float64();
  if (recomputed == nullptr) return std::nullopt;
  const auto operands = exponent_operands(recomputed->trace());
  const auto& values = forward.trace().values;
  const bool half = std::ranges::any_of(
      values, [](const trace::Value& value) { return value.dtype == trace::DType::kF16; });
  const double most = std::log2(half ? kMostExponentInHalf : kMostExponent);
  const auto measured = [&](double power) {
    return std::log2(largest_exponent(forward, *recomputed, operands, inputs, std::exp2(power)));
  };
  double before = 0, at_before = measured(before);
  if (at_before <= most) return 1;
  double power = kFirstStep, at = measured(power);
  for (int tried = 0; tried < kTries && (at > most || at < most - kNear); ++tried) {
    const double slope = (at - at_before) / (power - before);
    if (!(slope > kLeastSlope) || !std::isfinite(slope)) return std::nullopt;
    before = power, at_before = at;
    power += (most - kNear / 2 - at) / slope;
    at = measured(power);
  }
  return at <= most ? std::optional(std::exp2(power)) : std::nullopt;
}

}  // namespace nereid::replay
