#include "nereid/synth/sample/degeneracy.h"

#include <algorithm>
#include <cmath>

#include "nereid/synth/sample/value_statistics.h"

namespace nereid::synth {
namespace {

using ops::Rule;
using Value = ValueStatistics;

constexpr double kMinSpread = 1e-3;  // standard deviation over mean
constexpr double kSmallest = 1e-9, kSmallestResult = 1e-6, kLargest = 1e12;
constexpr double kSaturated = 0.9;  // of the elements
constexpr double kRarely =
    0.02;  // a reduction that differs from its bound for less of the inputs is constant

uint8_t axis_bit(int axis) { return static_cast<uint8_t>(1U << axis); }
uint8_t axes_from(int first, int rank) { return static_cast<uint8_t>((1U << rank) - (1U << first)); }
bool within(uint8_t axes, uint8_t of) { return axes != 0 && (axes & ~of) == 0; }

std::string_view flaw_of(const Value& value, bool last) {
  if (!std::isfinite(value.mean) || !std::isfinite(value.sd) || value.rms() > kLargest)
    return "near overflow";
  if (value.rms() < (last ? kSmallestResult : kSmallest)) return "vanishing";
  if (value.at_lowest + value.at_highest > kSaturated) return "saturated";
  if (value.sd < kMinSpread * std::abs(value.mean)) return "nearly constant";
  return {};
}

Value input_statistics(const Input& input) {
  Value made;
  switch (input.range) {
    case ops::Range::kPositive:
      made.mean = 1, made.sd = 0.2887, made.nonnegative = true;
      break;
    case ops::Range::kWeight:
      made.sd = 1 / std::sqrt(static_cast<double>(input.summed));
      break;
    case ops::Range::kProbability: {
      made.mean = 1.0 / input.shape.dims[input.shape.rank - 1U], made.sd = made.mean, made.nonnegative = true;
      made.fixed_sum = axis_bit(input.shape.rank - 1);
      break;
    }
    default:
      break;
  }
  return made;
}
Value without_facts(Value value) {
  value.forget(), value.same_as = -1;
  return value;
}
// A loss for each element: of a difference, or of a probability.
Value each_loss(std::string_view name, const Value& x, const Value& y) {
  const Value apart = {.mean = x.mean - y.mean, .sd = std::sqrt(x.sd * x.sd + y.sd * y.sd)};
  Value made = name.starts_with("bce")   ? x.through(softplus)
               : name.starts_with("mse") ? apart.through([](double d) { return d * d; })
                                         : apart.through([](double d) { return std::abs(d); });
  made.nonnegative = true;
  return made;
}

// One number, or one for each row, is added to elements that differ far less: rounding hides their
// differences.
bool is_lost_to_rounding(const ops::Applied& applied, size_t slot, const Value& broadcast, const Value& other,
                         double times) {
  return applied.operands[slot].elements() < applied.out.elements() && broadcast.rms() > times * other.sd;
}

int64_t applied_elements(const Step& step, size_t slot) { return step.applied.operands[slot].elements(); }

// A set of axes after others are gone.
uint8_t remaining_axes(uint8_t set, uint8_t gone) {
  uint8_t made = 0;
  int to = 0;
  for (int d = 0; d < ops::kMaxRank; ++d) {
    if ((gone & axis_bit(d)) != 0) continue;
    if ((set & axis_bit(d)) != 0) made |= axis_bit(to);
    ++to;
  }
  return made;
}

Value layer_output(const Value& x) {  // with weights of PyTorch's default, and no more bias than that
  Value made;
  made.sd = 0.6 * x.rms() + 0.01;
  return made;
}

Value contracted(const ops::Applied& applied, const Value& x, const Value& y) {
  if (applied.op->rule == Rule::kLinear) {
    Value made = layer_output(x);
    if ((x.fixed_sum & axis_bit(applied.out.rank - 1)) == 0) made.fixed_sum = x.fixed_sum;
    return made;
  }
  const double n = static_cast<double>(ops::contracted_length(applied));
  Value made = x.times(y);
  made.mean *= n, made.sd *= std::sqrt(n);
  return made;
}

Value rearranged(const ops::Applied& applied, const Value& x, const Value& y) {
  Value made = x;
  made.same_as = -1;
  const ops::Form& form = *applied.form;
  const auto moved = [&](auto where) {
    const auto move = [&](uint8_t axes) {
      uint8_t to = 0;
      for (int d = 0; d < ops::kMaxRank; ++d)
        if ((axes & axis_bit(d)) != 0) to |= where(d);
      return to;
    };
    made.fixed_sum = move(x.fixed_sum), made.fixed_square = move(x.fixed_square),
    made.fixed_exp = move(x.fixed_exp);
  };
  switch (applied.op->rule) {
    case Rule::kTranspose:
      moved([&](int d) { return axis_bit(d == form.dim ? form.dim2 : d == form.dim2 ? form.dim : d); });
      return made;
    case Rule::kPermute:
      moved([&](int d) {
        const auto* place = std::find(form.order.begin(), form.order.begin() + applied.out.rank, d);
        return axis_bit(static_cast<int>(place - form.order.begin()));
      });
      return made;
    case Rule::kView:
      moved([&](int d) {
        if (d < form.dim) return axis_bit(d);
        if (d > form.dim) return axis_bit(d + 1);
        return static_cast<uint8_t>(axis_bit(d) | axis_bit(d + 1));
      });
      return made;
    case Rule::kSlice:
      for (uint8_t* fixed : {&made.fixed_sum, &made.fixed_square, &made.fixed_exp})
        if ((*fixed & axis_bit(form.dim)) != 0) *fixed = 0;
      return made;
    case Rule::kFlatten:
    case Rule::kUnsqueeze:
    case Rule::kSqueeze:
      return without_facts(made);
    case Rule::kAxis:
      return made;        // flip
    case Rule::kRowNorm:  // halves change places, one of them negated
      return without_facts({.mean = 0, .sd = x.rms()});
    case Rule::kPad: {
      made = x.mixed_with({.mean = 0, .sd = 0, .nonnegative = true});
      if (x.nonnegative) made.at_lowest = 0.3;
      return made;
    }
    default:
      return x.mixed_with(y);  // cat, stack
  }
}

Value loss_value(const ops::Applied& applied, const Value& x, const Value& y) {
  const std::string_view name = applied.op->name;
  double n = 1;
  for (size_t i = 0; i < applied.form->inner; ++i) n *= applied.inner[i];
  const Value apart = {.mean = x.mean - y.mean, .sd = std::sqrt(x.sd * x.sd + y.sd * y.sd)};
  Value made;
  if (name == "cosine_similarity") {
    const double cosine = x.mean * y.mean / std::max(1e-30, x.rms() * y.rms());
    return {.mean = cosine, .sd = std::max(1e-6, (1 - cosine * cosine) / std::sqrt(n))};
  }
  if (name == "dot") {
    made = x.times(y);
    made.mean *= n, made.sd *= std::sqrt(n), made.forget(), made.same_as = -1;
    return made;
  }
  if (name.starts_with("mse")) {
    made = apart.through([](double d) { return d * d; });
  } else if (name.starts_with("smooth_l1") || name.starts_with("huber") || name.starts_with("l1")) {
    made = apart.through([](double d) { return std::abs(d) < 1 ? d * d / 2 : std::abs(d) - 0.5; });
  } else if (name.starts_with("bce")) {
    made = x.through(softplus);
  } else if (name == "cross_entropy") {
    made = {.mean = std::log(static_cast<double>(applied.inner[1])) + x.sd * x.sd / 2, .sd = x.sd + 1e-6};
    n = applied.inner[0];
  } else if (name == "triplet_margin_loss") {
    const double d = applied.inner[1];
    const double near = std::sqrt(d) * apart.rms(), far = std::sqrt(d) * std::sqrt(x.rms() * x.rms() + 1);
    made = Value{.mean = near - far + 1, .sd = apart.sd}.through([](double v) { return std::max(v, 0.0); });
    n = applied.inner[0];
  } else if (name ==
             "kl_div") {  // rows of probabilities, each about 1 / row; the mean is over the first axis
    const ops::Shape& shape = applied.operands[0];
    const double row = shape.dims[shape.rank - 1U], rows = n / row / shape.dims[0];
    made = {.mean = rows * (0.5 * (1 - 1 / row) - std::log(row) - x.mean),
            .sd = rows * (x.sd / std::sqrt(row) + 0.3)};
    n /= row;
  } else {  // hinge_embedding_loss
    made = {.mean = x.mean / 2 + std::max(0.0, 1 - x.mean) / 2, .sd = x.sd};
  }
  made.sd /= std::sqrt(n);
  if (name.ends_with("_sum")) made.mean *= n, made.sd *= n;
  return made;
}

class DegeneracyCheck {
 public:
  explicit DegeneracyCheck(const Program& program) : program_(program) {
    values_.resize(program.steps.size());
  }

  bool degenerate(std::string* why) {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      reason_.clear();
      Value made = of(program_.steps[i]);
      if (made.same_as < 0) made.same_as = static_cast<int>(i);
      if (reason_.empty())
        reason_ = flaw_of(made, i + 1 == program_.steps.size() || static_cast<int>(i) == program_.waiting);
      if (!reason_.empty()) {
        if (why != nullptr)
          *why = fmt::format("step {}, {}: {}", i, program_.steps[i].applied.op->name, reason_);
        return true;
      }
      values_[i] = made;
    }
    return false;
  }

 private:
  Value of(Ref ref) const {
    return ref.fresh ? input_statistics(program_.inputs[ref.index]) : values_[ref.index];
  }

  Value of(const Step& step) {
    const ops::Applied& applied = step.applied;
    const Value x = of(step.operands[0]);
    const Value y = step.operands.size() > 1 ? of(step.operands[1]) : Value{};
    switch (applied.op->lowering) {
      case ops::Lowering::kPointwise:
        return pointwise(step, x, y);
      case ops::Lowering::kReduction:
        return reduction(applied, x);
      case ops::Lowering::kScan:
        return scan(applied, x);
      case ops::Lowering::kContraction:
        return contracted(applied, x, y);
      case ops::Lowering::kConvolution:
        return layer_output(x);
      case ops::Lowering::kPooling:
        return pooling(applied, x);
      case ops::Lowering::kNormalisation:
        return normalised(applied, x);
      case ops::Lowering::kAttention:
        return attention(step, x, y);
      case ops::Lowering::kLayout:
        return rearranged(applied, x, y);
      case ops::Lowering::kGather: {
        Value made = applied.op->rule == Rule::kEmbedding ? Value{} : x;
        made.forget(), made.same_as = -1;
        return made;
      }
      case ops::Lowering::kLoss:
        return loss_value(applied, x, y);
      case ops::Lowering::kRecurrent:
        return {.mean = 0, .sd = 0.3};
    }
    return x;
  }

  Value pointwise(const Step& step, const Value& x, const Value& y) {
    const std::string_view name = step.applied.op->name;
    switch (step.applied.op->rule) {
      case Rule::kBinary:
        return binary(step, x, y);
      case Rule::kSelect:
        return x.mixed_with(y);
      case Rule::kMasked:
        if (name == "where_larger") return without_facts(x.mixed_with(y));
        if (name != "keep_above" && !name.starts_with("masked_fill")) return each_loss(name, x, y);
        return x.mixed_with({.mean = 0, .sd = 0.5});
      case Rule::kTriangle: {
        Value made = x.mixed_with({.mean = 0, .sd = 0, .nonnegative = true});
        if (x.nonnegative) made.at_lowest = 0.5;
        return made;
      }
      case Rule::kSlice:
        if (name != "glu") return x.times(x.after("silu"));
        return without_facts(x.after(name));
      case Rule::kRotary:
        return without_facts(x);
      case Rule::kBatchNorm:
        return without_facts(x.after(name));
      default:
        return name == "prelu" && !x.nonnegative ? without_facts(x.after(name)) : x.after(name);
    }
  }
  Value binary(const Step& step, const Value& x, const Value& y) {
    const std::string_view name = step.applied.op->name;
    const bool decides = name == "maximum" || name == "minimum";
    // Inputs may be uniform, which reach a third of what products of two normal ones do.
    const bool one_number = applied_elements(step, 0) == 1 || applied_elements(step, 1) == 1;
    const double times = decides ? (one_number ? 1.2 : 4) : 1 / kMinSpread;
    if (name != "mul" && name != "div" &&
        (is_lost_to_rounding(step.applied, 0, x, y, times) ||
         is_lost_to_rounding(step.applied, 1, y, x, times)))
      reason_ = "of which one operand drowns the other";
    const bool same = x.same_as >= 0 && x.same_as == y.same_as;
    if (same && (name == "sub" || name == "div")) reason_ = "of a value and itself";
    Value made;
    if (name == "mul") return x.times(y);
    if (name == "div") return x.times(y.through([](double v) { return 1 / std::max(v, 1e-30); }));
    if (name == "maximum" || name == "minimum") {
      made = x.mixed_with(y);
      const double sign = name == "maximum" ? 1 : -1, spread = std::sqrt(x.sd * x.sd + y.sd * y.sd);
      const double apart = std::abs(x.mean - y.mean);
      made.mean = (x.mean + y.mean + sign * std::max(apart, 0.8 * spread)) / 2;
      if (apart > 2 * spread) reason_ = "of which one operand is always the one";
      made.sd = 0.8 * std::max(x.sd, y.sd);
      made.nonnegative = sign > 0 ? x.nonnegative || y.nonnegative : x.nonnegative && y.nonnegative;
      return made;
    }
    const double sign = name == "sub" ? -1 : 1, scale = name == "lerp" ? 0.5 : 1;
    made.mean = scale * (x.mean + sign * y.mean), made.sd = scale * std::sqrt(x.sd * x.sd + y.sd * y.sd);
    made.nonnegative = sign > 0 && x.nonnegative && y.nonnegative;
    return made;
  }

  Value reduction(const ops::Applied& applied, const Value& x) {
    const ops::Form& form = *applied.form;
    const int rank = applied.operands[0].rank;
    uint8_t axes = form.all ? axes_from(0, rank) : axis_bit(form.dim);
    for (const int further : {form.dim2, form.dim3})
      if (further >= 0) axes |= axis_bit(further);
    double n = 1;
    for (size_t i = 0; i < form.inner; ++i) n *= applied.inner[i];
    const std::string_view name = applied.op->name;
    const bool squares = name.ends_with("_square"), of_each = squares || name.ends_with("_abs");
    Value made = of_each
                     ? reduced(name.substr(0, name.find('_')), x.after(squares ? "square" : "abs"), axes, n)
                     : reduced(name, x, axes, n);
    if (form.keep) made.forget();  // axes do not move up
    return made;
  }

  Value reduced(std::string_view name, const Value& x, uint8_t axes, double n) {
    Value made;
    const double relative = 1 / std::sqrt(2 * n);
    if (name == "sum" || name == "mean") {
      if (within(x.fixed_sum, axes)) reason_ = "of what is fixed";
      const double scale = name == "sum" ? n : 1;
      made.mean = scale * x.mean, made.sd = scale * x.sd / std::sqrt(n), made.nonnegative = x.nonnegative;
      made.fixed_sum = remaining_axes(static_cast<uint8_t>(x.fixed_sum & ~axes), axes);
    } else if (name.starts_with("max") || name.starts_with("min") || name.starts_with("arg")) {
      const bool highest = name.starts_with("max") || name == "argmax";
      return extreme(x, n, highest, name.starts_with("arg"));
    } else if (name.starts_with("var") || name.starts_with("std")) {
      if (within(x.fixed_square, axes) && within(x.fixed_sum, axes)) reason_ = "of what is fixed";
      const bool root = name.starts_with("std");
      made.mean = root ? x.sd : x.sd * x.sd, made.sd = made.mean * (root ? 1 : 2) * relative,
      made.nonnegative = true;
    } else if (name == "norm") {
      if (within(x.fixed_square, axes)) reason_ = "of what is fixed";
      made.mean = std::sqrt(n) * x.rms(), made.nonnegative = true;
      const double squares =
          std::sqrt(2 * std::pow(x.sd, 4) + 4 * x.mean * x.mean * x.sd * x.sd);  // of one square
      made.sd = squares / (2 * x.rms());
    } else {  // logsumexp
      if (within(x.fixed_exp, axes)) reason_ = "of what is fixed";
      const double s = std::min(x.sd, 5.0);
      made.mean = std::log(n) + x.mean + std::min(s * s / 2, s * std::sqrt(2 * std::log(n)));
      made.sd = std::min(x.sd, std::sqrt(std::expm1(s * s) / n));
    }
    return made;
  }

  Value extreme(const Value& x, double n, bool highest, bool index) {
    const double at_bound = highest ? x.at_highest : x.at_lowest;
    if (std::pow(1 - at_bound, n) < kRarely && !index) reason_ = "of many at their bound";
    if (index) return {.mean = n / 2, .sd = n / 3, .nonnegative = true};
    Value made;
    const double farther = std::sqrt(2 * std::log(std::max(n, 1.5)));
    made.mean = x.mean + (highest ? 1 : -1) * 0.8 * farther * x.sd;
    if (x.nonnegative && !highest) made.mean = std::max(made.mean, x.mean / n);
    made.sd = x.sd / (1 + 0.5 * farther);
    if (x.nonnegative && !highest) made.sd = std::min(made.sd, made.mean);
    made.nonnegative = x.nonnegative;
    made.at_highest = highest ? 1 - std::pow(1 - x.at_highest, n) : std::pow(x.at_highest, n);
    made.at_lowest = highest ? std::pow(x.at_lowest, n) : 1 - std::pow(1 - x.at_lowest, n);
    return made;
  }

  Value scan(const ops::Applied& applied, const Value& x) {
    const std::string_view name = applied.op->name;
    const double n = applied.out.dims[static_cast<size_t>(applied.form->dim)];
    Value made = x;
    made.forget(), made.same_as = -1;
    if (name.starts_with("cumsum")) {
      made.mean = x.mean * n / 2, made.sd = std::sqrt(x.sd * x.sd * n / 2 + n * n * x.mean * x.mean / 12);
      made.at_highest = made.at_lowest = 0;
    } else if (name == "cumprod") {
      if (n > 64) reason_ = "of so many factors";
      made.sd = std::pow(std::max(x.rms(), 1.0), std::min(n, 64.0)), made.at_highest = made.at_lowest = 0;
    } else {
      made = extreme(x, n / 2, name == "cummax", false);
    }
    return made;
  }

  Value pooling(const ops::Applied& applied, const Value& x) {
    const std::string_view name = applied.op->name;
    if (applied.op->rule == Rule::kGlobalPool)
      return reduced("mean", x, axes_from(2, 4), static_cast<double>(applied.inner[0]) * applied.inner[1]);
    double n = 1;
    for (size_t d = 0; d < static_cast<size_t>(ops::spatial_axes(applied)); ++d)
      n *= applied.window.kernel[d];
    if (name.starts_with("max")) return extreme(x, n, true, false);
    uint8_t covered = 0;  // axes that one window has all of
    for (int d = 2; d < applied.out.rank; ++d)
      if (applied.operands[0].dims[static_cast<size_t>(d)] <=
          applied.window.reach(static_cast<size_t>(d) - 2))
        covered |= axis_bit(d);
    if (within(x.fixed_sum, covered)) reason_ = "of what is fixed";
    Value made = x;
    made.forget(), made.same_as = -1;
    made.sd /= std::sqrt(n), made.at_highest = std::pow(x.at_highest, n),
                             made.at_lowest = std::pow(x.at_lowest, n);
    return made;
  }

  Value normalised(const ops::Applied& applied, const Value& x) {
    const std::string_view name = applied.op->name;
    const int rank = applied.out.rank;
    Value made;
    if (name.ends_with("softmax")) {
      const int dim = name.starts_with("causal") ? rank - 1 : applied.form->dim;
      const double n = applied.out.dims[static_cast<size_t>(dim)], s = std::min(x.sd, 4.0);
      if (name != "log_softmax") {
        made.mean = 1 / n, made.sd = made.mean * std::min(std::sqrt(n), std::sqrt(std::expm1(s * s)));
        made.nonnegative = true, made.fixed_sum = axis_bit(dim);
        if (x.sd > 20) made.at_lowest = 0.5;  // one element takes all
      } else {
        made.mean = -std::log(n) - s * s / 2, made.sd = x.sd;
        made.fixed_exp = axis_bit(dim);
      }
      return made;
    }
    if (name == "batch_norm_eval") return without_facts(x);
    uint8_t axes = axis_bit(rank - 1);
    if (name == "normalize") axes = axis_bit(applied.form->dim);
    if (name == "layer_norm_of_two") axes = axes_from(rank - 2, rank);
    if (name == "batch_norm") axes = static_cast<uint8_t>(axes_from(0, rank) & ~axis_bit(1));
    if (name.starts_with("instance_norm")) axes = axes_from(2, rank);
    if (name == "group_norm") axes = axes_from(1, rank);
    double n = 1;
    for (int d = 0; d < rank; ++d)
      if ((axes & axis_bit(d)) != 0) n *= applied.out.dims[static_cast<size_t>(d)];
    if (name == "group_norm") n /= ops::group_count(applied);
    if (name == "normalize") {  // of length one
      made.mean = x.mean / x.rms() / std::sqrt(n), made.sd = x.sd / x.rms() / std::sqrt(n),
      made.nonnegative = x.nonnegative;
      made.fixed_square = axes;
      return made;
    }
    if (n < 4 && !name.starts_with("rms_norm")) reason_ = "over so few elements";
    made.fixed_square = axes;
    if (name.starts_with("rms_norm")) {
      made.mean = x.mean / x.rms(), made.sd = x.sd / x.rms(), made.nonnegative = x.nonnegative;
      return made;
    }
    made.fixed_sum = axes;
    made.sd = x.sd / std::sqrt(x.sd * x.sd + 1e-5);
    return made;
  }

  Value attention(const Step& step, const Value& x, const Value& y) const {
    const bool masked = step.applied.op->rule == Rule::kMaskedAttention;
    const Value v = masked ? y : of(step.operands[2]);
    const double keys = step.applied.operands[1].dims[2], logits = std::min(3.0, x.rms() * y.rms());
    const double effective = std::max(1.0, keys / std::exp(logits * logits));
    return {.mean = v.mean, .sd = v.sd / std::sqrt(effective), .nonnegative = v.nonnegative};
  }

  const Program& program_;
  std::vector<Value> values_;
  std::string reason_;
};

}  // namespace

bool is_degenerate(const Program& program, std::string* why) {
  return DegeneracyCheck(program).degenerate(why);
}

}  // namespace nereid::synth
