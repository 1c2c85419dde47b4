#include "nereid/trace/cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "nereid/trace/op_table.h"

namespace nereid::trace {
namespace {

// Shapes of one call's arguments and results, by position.
class Shapes {
 public:
  Shapes(const Trace& trace, const Call& call)
      : trace_(trace), call_(call), results_(tensors_in(call.result)) {}

  // The first tensor of an argument; null where it is none.
  const Value* argument(size_t position) const {
    if (position >= call_.args.size()) return nullptr;
    const auto tensors = tensors_in(call_.args[position]);
    return tensors.empty() ? nullptr : &value(tensors[0]);
  }
  std::vector<const Value*> arguments(size_t position) const {
    std::vector<const Value*> found;
    if (position < call_.args.size())
      for (const ValueId id : tensors_in(call_.args[position])) found.push_back(&value(id));
    return found;
  }
  const Value* result() const { return results_.empty() ? nullptr : &value(results_[0]); }
  double result_elements() const { return result() != nullptr ? elements(*result()) : 0; }
  double input_elements() const { return argument(0) != nullptr ? elements(*argument(0)) : 0; }
  bool flag(size_t position) const {
    if (position >= call_.args.size()) return false;
    const auto* flag = std::get_if<bool>(&call_.args[position].node);
    return flag != nullptr && *flag;
  }
  std::vector<int64_t> integers(size_t position) const {
    std::vector<int64_t> found;
    if (position >= call_.args.size()) return found;
    if (const auto* one = std::get_if<int64_t>(&call_.args[position].node)) found.push_back(*one);
    if (const auto* list = std::get_if<List>(&call_.args[position].node))
      for (const Arg& item : list->items)
        if (const auto* number = std::get_if<int64_t>(&item.node)) found.push_back(*number);
    return found;
  }
  static double elements(const Value& value) { return static_cast<double>(element_count(value)); }
  static double last_size(const Value& value) {
    return value.sizes.empty() ? 1 : static_cast<double>(value.sizes.back());
  }

 private:
  const Value& value(ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }
  const Trace& trace_;
  const Call& call_;
  const std::vector<ValueId> results_;
};

struct Count {
  double flops = 0;
  bool exact = true;
};
constexpr Count kUnknown{0, false};

// out[..., m, n] = sum over k: 2 * elements(out) * k (flop_counter's mm_flop, bmm_flop, addmm_flop,
// baddbmm_flop).
Count contraction(const OpName& op, const Shapes& shapes) {
  const std::string_view name = op.name;
  const bool added = name == "addmm" || name == "baddbmm" || name == "addmv" || name == "_addmm_activation";
  if (name == "addbmm") {  // sums over the batch too
    const Value* batch = shapes.argument(1);
    if (batch == nullptr) return kUnknown;
    return {2 * shapes.result_elements() * Shapes::last_size(*batch) *
            static_cast<double>(batch->sizes.front())};
  }
  if (name == "bilinear" || name == "_trilinear") {  // out[n, o] = x1[n, i] W[o, i, j] x2[n, j]
    const Value *left = shapes.argument(0), *right = shapes.argument(1);
    if (left == nullptr || right == nullptr || name == "_trilinear") return kUnknown;
    return {shapes.result_elements() *
            (2 * Shapes::last_size(*left) * Shapes::last_size(*right) + 2 * Shapes::last_size(*right))};
  }
  if (name == "cdist" || name == "_cdist_forward") {  // subtract, multiply, add
    const Value* left = shapes.argument(0);
    return left == nullptr ? kUnknown : Count{3 * shapes.result_elements() * Shapes::last_size(*left)};
  }
  static constexpr std::string_view kLastOfFirst[] = {
      "mm",          "bmm",           "matmul",        "linear",         "mv",
      "dot",         "vdot",          "inner",         "_int_mm",        "_scaled_mm",
      "_grouped_mm", "linalg_vecdot", "linalg_matmul", "_euclidean_dist"};
  const bool known =
      added || std::find(std::begin(kLastOfFirst), std::end(kLastOfFirst), name) != std::end(kLastOfFirst);
  const Value* left = shapes.argument(added ? 1 : 0);
  if (!known || left == nullptr) return {2 * shapes.result_elements(), false};
  return {2 * shapes.result_elements() * Shapes::last_size(*left)};
}

// 2 * batch * positions * elements(weight), the weight being [out, in / groups, ...]; positions are the
// output's, or the input's where it is transposed (flop_counter's conv_flop_count).
Count convolution(const OpName& op, const Shapes& shapes) {
  const Value *input = shapes.argument(0), *weight = shapes.argument(1), *output = shapes.result();
  if (op.name.find("backward") != op.name.npos || input == nullptr || weight == nullptr || output == nullptr)
    return {2 * shapes.result_elements(), false};
  const bool transposed = op.name.find("transpose") != op.name.npos ||
                          ((op.name == "convolution" || op.name == "_convolution") && shapes.flag(6));
  const Value& spatial = transposed ? *input : *output;
  const size_t dims = weight->sizes.size() - std::min<size_t>(weight->sizes.size(), 2);
  if (spatial.sizes.size() < dims) return kUnknown;
  double positions = 1;
  for (size_t d = spatial.sizes.size() - dims; d < spatial.sizes.size(); ++d)
    positions *= static_cast<double>(spatial.sizes[d]);
  const bool batched = spatial.sizes.size() > dims + 1;
  const double batch = batched ? static_cast<double>(spatial.sizes[0]) : 1;
  return {2 * batch * positions * Shapes::elements(*weight)};
}

// q [.., sq, d], k [.., sk, d], v [.., sk, dv]: two products (flop_counter's sdpa_flop_count); masks save
// nothing.
Count attention(const OpName& op, const Shapes& shapes) {
  const Value *q = shapes.argument(0), *k = shapes.argument(1), *v = shapes.argument(2);
  if (op.name.find("scaled_dot_product") == op.name.npos || op.name.find("backward") != op.name.npos ||
      q == nullptr || k == nullptr || v == nullptr || k->sizes.size() < 2)
    return {2 * shapes.result_elements(), false};
  const double keys = static_cast<double>(k->sizes[k->sizes.size() - 2]);
  const double queries = Shapes::elements(*q) / std::max(1.0, Shapes::last_size(*q));  // batch, heads, rows
  return {2 * queries * keys * (Shapes::last_size(*q) + Shapes::last_size(*v))};
}

// Every weight matrix meets every row of every step once; the cell's pointwise work is left out.
Count recurrent(const OpName& op, const Shapes& shapes) {
  const bool layer = op.name == "lstm" || op.name == "gru" || op.name == "rnn_tanh" || op.name == "rnn_relu";
  const bool cell = op.name == "lstm_cell" || op.name == "gru_cell" || op.name == "rnn_tanh_cell" ||
                    op.name == "rnn_relu_cell";
  const Value* input = shapes.argument(0);
  if ((!layer && !cell) || input == nullptr) return {2 * shapes.result_elements(), false};
  const double rows = Shapes::elements(*input) / std::max(1.0, Shapes::last_size(*input));
  double weights = 0;
  const size_t first = layer ? (op.overload == "data" ? 3 : 2) : 2;
  for (size_t position = first; position <= (layer ? first : 3); ++position)
    for (const Value* weight : shapes.arguments(position))
      if (weight->sizes.size() == 2) weights += Shapes::elements(*weight);
  return {2 * rows * weights};
}

// Operations per element of the input, for one pass of the textbook formula.
Count normalisation(const OpName& op, const Shapes& shapes) {
  const double n = shapes.input_elements();
  const std::string_view name = op.name;
  if (name.find("backward") != name.npos) return {10 * n, false};
  if (name.find("softmax") != name.npos) return {5 * n};   // max, subtract, exp, sum, divide
  if (name.find("rms_norm") != name.npos) return {4 * n};  // square, sum, scale, weight
  const bool trained = name == "batch_norm" || name == "native_batch_norm" || name == "cudnn_batch_norm";
  if (trained && !shapes.flag(5)) return {4 * n};  // subtract, scale, weight, bias
  return {8 * n};  // mean; subtract, square, sum; subtract, scale, weight, bias
}

Count reduction(const OpName& op, const Shapes& shapes) {
  const double n = std::max(shapes.input_elements(), shapes.result_elements());
  const std::string_view name = op.name;
  if (name.starts_with("var") || name.starts_with("std")) return {4 * n};  // mean; subtract, square, sum
  if (name == "norm" || name == "linalg_vector_norm" || name == "linalg_matrix_norm")
    return {2 * n};                                 // square, sum
  if (name.ends_with("logsumexp")) return {4 * n};  // max, subtract, exp, sum
  if (name == "mse_loss" || name == "l1_loss") return {3 * n};
  if (name.find("_loss") != name.npos || name == "kl_div" || name.starts_with("binary_cross"))
    return {5 * n, false};
  return {n};
}

Count pooling(const OpName& op, const Shapes& shapes) {
  const std::string_view name = op.name;
  if (name.starts_with("upsample_nearest") || name.starts_with("_upsample_nearest")) return {0};
  if (name.find("adaptive") != name.npos) return {shapes.input_elements()};
  if (name.find("_pool") != name.npos && name.find("backward") == name.npos &&
      name.find("unpool") == name.npos) {
    auto window = shapes.integers(1);  // one operation for each element of the window
    const size_t dims = name.find("1d") != name.npos ? 1 : name.find("3d") != name.npos ? 3 : 2;
    if (window.size() == 1) window.resize(dims, window[0]);
    double size = 1;
    for (const int64_t side : window) size *= static_cast<double>(side);
    return {size * shapes.result_elements()};
  }
  return {8 * shapes.result_elements(), false};
}

Count count(OpClass c, const OpName& op, const Shapes& shapes) {
  switch (c) {
    case OpClass::kContraction:
      return contraction(op, shapes);
    case OpClass::kConvolution:
      return convolution(op, shapes);
    case OpClass::kAttention:
      return attention(op, shapes);
    case OpClass::kRecurrent:
      return recurrent(op, shapes);
    case OpClass::kNormalisation:
      return normalisation(op, shapes);
    case OpClass::kReduction:
      return reduction(op, shapes);
    case OpClass::kScan:
      return {shapes.input_elements()};
    case OpClass::kPooling:
      return pooling(op, shapes);
    case OpClass::kPointwise:
      return {pointwise_operations(op.name) * shapes.result_elements()};
    case OpClass::kBookkeeping:
      return {std::max(shapes.input_elements(), shapes.result_elements())};
    case OpClass::kSort: {  // n comparisons for each halving
      const Value* input = shapes.argument(0);
      return input == nullptr
                 ? kUnknown
                 : Count{shapes.input_elements() * std::max(1.0, std::log2(Shapes::last_size(*input)))};
    }
    case OpClass::kOther:
      return {shapes.result_elements(), false};
    default:
      return {0};
  }
}

// The class whose formula counts: of a composite that is listed itself, its own, whatever its parts are.
OpClass counted_class(const Trace& trace, const Call& call) {
  if (writes_nothing(trace, call)) return OpClass::kView;
  return listed_class(call.op);
}

double distinct_bytes(const Trace& trace, const std::vector<Access>& accesses) {
  std::set<std::tuple<StorageId, int64_t, int64_t>> seen;
  double bytes = 0;
  for (const Access& access : accesses) {
    if (!seen.insert({access.storage, access.first, access.last}).second) continue;
    const double span = static_cast<double>(access.last - access.first);
    const Value& value = trace.values[static_cast<size_t>(access.value)];
    // A view with holes in it has fewer bytes than it spans, an expanded one more elements than bytes.
    double held = element_bytes(value.dtype);
    for (size_t d = 0; d < value.sizes.size(); ++d)
      if (value.strides[d] != 0 || value.sizes[d] == 0) held *= static_cast<double>(value.sizes[d]);
    bytes += std::min(span, held);
  }
  return bytes;
}

// A gather touches as many elements as it produces, not its whole table.
double bytes_of_gather(OpClass c, const Trace& trace, const Call& call, double read) {
  if (c != OpClass::kIndexing || call.args.empty()) return read;
  const auto tables = tensors_in(call.args[0]);
  const auto results = tensors_in(call.result);
  if (tables.empty() || results.empty() || split_name(call.op).in_place) return read;
  const auto bytes = [&](ValueId id) {
    const Value& value = trace.values[static_cast<size_t>(id)];
    return static_cast<double>(element_count(value) * element_bytes(value.dtype));
  };
  return read - std::max(0.0, bytes(tables[0]) - bytes(results[0]));
}

}  // namespace

// 1 where nothing is listed.
double pointwise_operations(std::string_view name) {
  struct Row {
    std::string_view name;
    double operations;
  };
  static constexpr Row kRows[] = {{"addcmul", 3},     {"addcdiv", 3},       {"lerp", 3},
                                  {"clamp", 2},       {"hardtanh", 2},      {"relu6", 2},
                                  {"sigmoid", 3},  // exp, add, divide
                                  {"silu", 4},        {"gelu", 5},          {"mish", 5},
                                  {"softplus", 4},    {"elu", 4},           {"selu", 5},
                                  {"celu", 4},        {"log_sigmoid", 4},   {"log_sigmoid_forward", 4},
                                  {"hardsigmoid", 4}, {"hardswish", 5},     {"leaky_relu", 2},
                                  {"glu", 4},         {"hardshrink", 2},    {"softshrink", 3},
                                  {"tanhshrink", 2},  {"logaddexp", 5},     {"xlogy", 2},
                                  {"hypot", 4},       {"_prelu_kernel", 2}, {"prelu", 2}};
  for (const Row& row : kRows)
    if (row.name == name) return row.operations;
  return name.find("_backward") != name.npos ? 3 : 1;
}

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops, bytes_read += other.bytes_read, bytes_written += other.bytes_written;
  exact &= other.exact;
  return *this;
}

Cost cost_of(const Trace& trace, const Call& call) {
  const OpClass c = counted_class(trace, call);
  const StepAccess access = access_of(trace, call);
  const Count counted = count(c, split_name(call.op), Shapes(trace, call));
  return {.flops = counted.flops,
          .bytes_read = std::max(0.0, bytes_of_gather(c, trace, call, distinct_bytes(trace, access.reads))),
          .bytes_written = distinct_bytes(trace, access.writes),
          .exact = counted.exact};
}

Cost bounded_cost(const Trace& trace, const Launch& launch, const KernelUses& uses) {
  Launch first;
  first.alternatives.push_back(launch.alternatives.front());
  const StepAccess access = access_of(trace, first, uses);
  return {.flops = 0,
          .bytes_read = distinct_bytes(trace, access.reads),
          .bytes_written = distinct_bytes(trace, access.writes),
          .exact = false};
}

std::vector<StepCost> costs_of(const Trace& trace, const Phase& phase, const LaunchCosts& launch_costs) {
  const OpFacts facts(trace);
  std::vector<StepCost> costs;
  for (const Step& step : phase.steps) {
    if (const auto* call = std::get_if<Call>(&step)) {
      costs.push_back({.cost = cost_of(trace, *call), .op_class = facts.classify(*call), .launch = false});
      continue;
    }
    const auto& launch = std::get<Launch>(step);
    Cost cost =
        launch_costs ? launch_costs(trace, launch.alternatives.front()) : bounded_cost(trace, launch, {});
    for (const Call& before : launch.alternatives.front().before) cost += cost_of(trace, before);
    costs.push_back({.cost = cost, .op_class = OpClass::kOther, .launch = true});
  }
  return costs;
}

Cost Totals::all() const {
  Cost sum = free_calls;
  sum += other_calls;
  sum += launches;
  return sum;
}

Totals totals_of(const std::vector<StepCost>& costs) {
  Totals totals;
  for (const StepCost& step : costs) {
    (step.launch ? totals.launch_count : totals.calls)++;
    (step.launch              ? totals.launches
     : is_free(step.op_class) ? totals.free_calls
                              : totals.other_calls) += step.cost;
  }
  return totals;
}

}  // namespace nereid::trace
