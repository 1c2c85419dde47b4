#include "nereid/replay/deciding_state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "nereid/replay/integer_uses.h"
#include "nereid/replay/structure.h"
#include "nereid/trace/access.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

constexpr std::string_view kDecidingOps[] = {
    "eq",         "ne",         "lt",         "le",         "gt",
    "ge",         "isin",       "clamp",      "clamp_min",  "clamp_max",
    "hardtanh",   "threshold",  "maximum",    "minimum",    "fmax",
    "fmin",       "max",        "min",        "amax",       "amin",
    "aminmax",    "bucketize",  "round",      "floor",      "ceil",
    "trunc",      "sign",       "relu",       "relu6",      "leaky_relu",
    "elu",        "celu",       "selu",       "softplus",   "hardsigmoid",
    "hardswish",  "heaviside",  "hardshrink", "argmax",     "argmin",
    "softshrink", "nan_to_num", "isfinite",   "isnan",      "isinf",
    "remainder",  "fmod",       "signbit",    "logsigmoid", "log_sigmoid_forward"};
constexpr size_t kMostBounds = 4;
constexpr double kMostBound = 1e12;  // what is larger stands for infinity
constexpr int kWithoutBounds = 5, kAtEachBound = 3, kMostTrials = 32;
constexpr int64_t kFewElements = 64;  // of which a draw does not show all choices

bool is_number(const trace::Trace& trace, ValueId value) {
  const auto type = trace.values[static_cast<size_t>(value)].dtype;
  if (!trace::is_integral(type) || type == trace::DType::kBool) return false;
  const auto use = use_of(trace, value);
  return use.numbers_alone() || (use.compared_alone && !use.indexes() && !use.obscure);
}

// Which state each storage derives from; nothing where it derives from anything else, too.
class Origins {
 public:
  explicit Origins(const trace::Trace& trace) : trace_(trace) {
    for (const auto& state : trace.state)
      if ((state.parameter || state.persistent) &&
          (trace::is_floating(value(state.value).dtype) || is_number(trace, state.value)))
        of_[value(state.value).storage] = std::set{state.value};
    for (const auto input : trace::tensors_in(judged_forward(trace)->inputs))
      of_[value(input).storage] = std::nullopt;
  }

  // Of what the call reads; then of what it writes.
  std::optional<std::set<ValueId>> take(const trace::Call& call) {
    const auto access = trace::access_of(trace_, call);
    std::optional<std::set<ValueId>> found = std::set<ValueId>{};
    if (access.random) found.reset();
    for (const auto& read : access.reads) join(found, read.storage);
    auto written = found;
    for (const auto& write : access.writes)
      if (!write.covers) join(written, write.storage);
    for (const auto& write : access.writes) of_[write.storage] = written;
    for (const auto storage : access.made) of_[storage] = written;
    return found;
  }

 private:
  const trace::Value& value(ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }
  void join(std::optional<std::set<ValueId>>& found, StorageId storage) const {
    const auto known = of_.find(storage);
    if (!found || known == of_.end()) return;  // constants
    if (known->second)
      found->insert(known->second->begin(), known->second->end());
    else
      found.reset();
  }

  const trace::Trace& trace_;
  std::map<StorageId, std::optional<std::set<ValueId>>> of_;
};

void add_bounds(const trace::Call& call, std::vector<double>& bounds) {
  const auto one = [&](const trace::Arg& arg) {
    std::optional<double> number;
    if (const auto* real = std::get_if<double>(&arg.node)) number = *real;
    if (const auto* whole = std::get_if<int64_t>(&arg.node)) number = static_cast<double>(*whole);
    if (number && *number != 0 && std::abs(*number) <= kMostBound && bounds.size() < kMostBounds &&
        std::ranges::find(bounds, *number) == bounds.end())
      bounds.push_back(*number);
  };
  for (const auto& arg : call.args) one(arg);
  for (const auto& [name, arg] : call.kwargs) one(arg);
}

}  // namespace

int DecidingState::choices() const { return kWithoutBounds + kAtEachBound * static_cast<int>(bounds.size()); }

DecidingState deciding_state(const trace::Trace& trace) {
  DecidingState found;
  Origins origins(trace);
  std::set<ValueId> deciding;
  for (const auto& step : judged_forward(trace)->steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return {};  // a reference that launches kernels: what they do is not known
    const auto state = origins.take(*call);
    const auto name = trace::split_name(call->op).name;
    if (!state || state->empty() || std::ranges::find(kDecidingOps, name) == std::end(kDecidingOps)) continue;
    deciding.insert(state->begin(), state->end());
    add_bounds(*call, found.bounds);
  }
  int64_t least = kFewElements;
  for (const auto& state : trace.state) {
    if (!deciding.contains(state.value)) continue;
    const bool whole = trace::is_integral(trace.values[static_cast<size_t>(state.value)].dtype);
    const bool near = whole && !use_of(trace, state.value).numbers_alone();
    if (near && found.bounds.empty()) continue;
    found.values.push_back(state.value);
    found.near_bounds.push_back(near);
    const auto count = trace::element_count(trace.values[static_cast<size_t>(state.value)]);
    least = std::clamp<int64_t>(count, 1, least);
  }
  if (found.values.empty()) return {};
  // Every element has its own choice. Of several tensors every other one stays near what it is.
  const auto few = static_cast<int>(least);
  const int draws = least < kFewElements ? (found.choices() + few - 1) / few : 1;
  found.trials = std::min(kMostTrials, draws * (found.values.size() > 1 ? 2 : 1));
  return found;
}

bool counts_batches(const trace::State& state) { return state.name.ends_with("num_batches_tracked"); }

int first_at_bounds() { return kWithoutBounds; }

Side side_of(const DecidingState& state, int choice, double by_chance) {
  switch (choice) {
    case 0:
      return {.times = std::exp2(5 + 5 * by_chance), .at_least_one = true};
    case 1:
      return {.times = -std::exp2(5 + 5 * by_chance), .at_least_one = true};
    case 2:
      return {};
    case 3:
      return {.times = 0x1p-10};
    case 4:
      return {.times = -1.25 - by_chance};
    default:
      break;
  }
  const double near = 1 + (1 + by_chance) / 64;
  const double bound = state.bounds.at(static_cast<size_t>((choice - kWithoutBounds) / kAtEachBound));
  const int side = (choice - kWithoutBounds) % kAtEachBound;
  return {.plus = side == 0 ? bound * near : side == 1 ? bound / near : bound};
}

}  // namespace nereid::replay
