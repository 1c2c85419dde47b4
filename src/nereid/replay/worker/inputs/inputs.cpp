#include "nereid/replay/worker/inputs/inputs.h"

#include <ATen/Context.h>

#include <cmath>
#include <functional>
#include <limits>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

struct Range {
  double low = 0, high = 0;
  bool never_negative() const { return low >= 0; }
  bool unit() const { return low >= 0 && high <= 1; }
};

constexpr int64_t kPart = int64_t{1} << 22;  // elements: what is made on the way is no larger

// Calls body(part, index of its first element in row-major order) for parts of the tensor.
void for_parts(const at::Tensor& tensor, const std::function<void(at::Tensor, int64_t)>& body,
               int64_t first = 0) {
  if (tensor.numel() <= kPart) return body(tensor, first);
  const auto row = tensor.numel() / tensor.size(0), rows = std::max<int64_t>(1, kPart / row);
  for (int64_t i = 0; i < tensor.size(0); i += rows) {
    const auto part = tensor.narrow(0, i, std::min(rows, tensor.size(0) - i));
    for_parts(row > kPart ? part.select(0, 0) : part, body, first + i * row);
  }
}

Range range_of(const at::Tensor& tensor) {
  std::vector<at::Tensor> lows, highs;  // of the parts: on a GPU the host waits once for all
  for_parts(tensor, [&](const at::Tensor& part, int64_t) {
    const auto [low, high] = part.to(c10::kFloat).aminmax();
    lows.push_back(low), highs.push_back(high);
  });
  return {at::stack(lows).min().item().toDouble(), at::stack(highs).max().item().toDouble()};
}

// The row-major indices of a part that begins at `first`.
at::Tensor indices(const at::Tensor& part, int64_t first) {
  return at::arange(first, first + part.numel(), part.options().dtype(c10::kLong)).view(part.sizes());
}

// The row, of so many elements, that each element of a part is in.
at::Tensor rows_of(const at::Tensor& part, int64_t first, int64_t width) {
  return indices(part, first).floor_divide_(width);
}

double rms_of(const at::Tensor& tensor) {
  double squares = 0;
  for_parts(tensor, [&](const at::Tensor& part, int64_t) {
    const auto numbers = part.to(c10::kFloat);
    squares += at::sum(numbers.mul(numbers), c10::kDouble).item().toDouble();
  });
  return std::sqrt(squares / static_cast<double>(tensor.numel()));
}

// True at every 64th element of `whole`, from a place that the generator chooses; at one at least.
struct SparseMask {
  SparseMask(const at::Tensor& whole, const at::Generator& generator)
      : period(std::min<int64_t>(whole.numel(), 64)),
        start(at::randint(period, {1}, generator, at::TensorOptions().dtype(c10::kLong)).item().toLong()) {}
  at::Tensor of(const at::Tensor& part, int64_t first) const {
    return indices(part, first).remainder(period).eq(start);
  }
  int64_t period, start;
};

at::Tensor one_hot_rows(const at::Tensor& part, int64_t first, int64_t width) {
  const auto index = indices(part, first);
  const auto row = index.floor_divide(width);
  return index.remainder(width).eq(row.mul(7).add(3).remainder(width));
}

}  // namespace

at::Generator generator_on(const at::Tensor& tensor, const at::Generator& generator) {
  if (tensor.is_cpu()) return generator;
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  auto made = at::globalContext().defaultGenerator(tensor.device()).clone();
  const auto seed = at::randint(kMost, {1}, generator, at::TensorOptions().dtype(c10::kLong)).item().toLong();
  made.set_current_seed(static_cast<uint64_t>(seed));
  return made;
}

namespace {

bool is_number_tensor(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) && c10::elementSize(tensor.scalar_type()) > 1 &&
         tensor.numel() > 0;
}

// What is drawn for each element of `like`, on its device; by its generator_on().
at::TensorOptions options_of(const at::Tensor& like, c10::ScalarType type) {
  return at::TensorOptions().dtype(type).device(like.device());
}
at::Tensor normal(const at::Tensor& like, const at::Generator& generator) {
  return at::randn(like.sizes(), generator, options_of(like, c10::kFloat));
}
at::Tensor up_or_down(const at::Tensor& like, const at::Generator& generator) {
  return at::randint(2, like.sizes(), generator, options_of(like, c10::kDouble)).mul_(2).sub_(1);
}

// U(low, high).
at::Tensor uniform(const at::Tensor& like, double low, double high, const at::Generator& generator) {
  return at::rand(like.sizes(), generator, options_of(like, c10::kFloat)).mul_(high - low).add_(low);
}

constexpr double kZeros = 0.125;  // of kWide's elements, where numbers lie on both sides of zero
constexpr double kSteep = 4;      // times the range of inputs that are never negative, in kRamp

// One number: what is drawn for many would leave it where it was, or make it what no task means.
bool apply_to_one(at::Tensor tensor, InputDistribution kind, const Range& range) {
  const double was = range.low;
  const auto becomes = [&](double number) {
    if (number == was) return false;
    tensor.fill_(number);
    return true;
  };
  switch (kind) {
    case InputDistribution::kZeros:
      return becomes(0);
    case InputDistribution::kOnes:
    case InputDistribution::kOneHot:
      return becomes(was == 1 ? 2 : 1);
    case InputDistribution::kNegative:
    case InputDistribution::kFlipped:
      return becomes(kind == InputDistribution::kFlipped || !range.never_negative() ? -std::abs(was) : was);
    case InputDistribution::kTiny:
      return becomes(was / 16);
    case InputDistribution::kSmall:
      return becomes(was / 8);
    case InputDistribution::kHuge:
      return becomes(was == 0 ? 8 : was * 8);
    case InputDistribution::kRamp:
      return becomes(was == 0 ? 0.5 : was * 0.5);
    case InputDistribution::kOutliers:
      return becomes(was == 0 ? -1.5 : was * 1.5);
    case InputDistribution::kWide:
      return becomes(was == 0 ? 3 : was * 3);
    case InputDistribution::kLarge:
      return becomes(was == 0 ? 2.3 : was * 2.3);
    case InputDistribution::kShifted:
      return becomes(was + 0.7);
    default:
      return false;
  }
}

// One number for each row of a tensor, 2^U(low, high).
at::Tensor factors_of_rows(const at::Tensor& tensor, int64_t width, double low, double high,
                           const at::Generator& generator) {
  const auto options = at::TensorOptions().dtype(c10::kFloat);
  const auto made = at::rand({tensor.numel() / width}, generator, options);
  return made.mul_(high - low).add_(low).exp2_().to(tensor.device());
}
at::Tensor of_rows(const at::Tensor& numbers, const at::Tensor& part, int64_t first, int64_t width) {
  return numbers.index_select(0, rows_of(part, first, width).reshape({-1}))
      .view(part.sizes())
      .to(part.scalar_type());
}
int64_t width_of(const at::Tensor& tensor) { return tensor.dim() > 1 ? tensor.size(-1) : tensor.numel(); }

// Powers of two, of the rms: 6 and 12 times. Numbers between -4 and 4 are then above 1, and lose four bits.
constexpr double kLeastShift = 2.6, kMostShift = 3.6;

void scale_rows(at::Tensor tensor, const Range& range, bool half, const at::Generator& generator) {
  const auto width = width_of(tensor);
  const auto factors = factors_of_rows(tensor, width, 1, half ? 3 : 7, generator);
  const auto local = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    part.mul_(of_rows(factors, part, first, width));
    if (!range.never_negative()) return;
    const auto signs = uniform(part, -1, 1, local).sign_().to(part.scalar_type());
    part.copy_(at::where(rows_of(part, first, width).remainder_(2).eq(1), part.mul(signs), part));
  });
}

bool shift_rows(at::Tensor tensor, const at::Generator& generator) {
  const double scale = rms_of(tensor);
  if (!(scale > 0) || !std::isfinite(scale)) return false;
  const auto width = width_of(tensor);
  const auto shifts = factors_of_rows(tensor, width, kLeastShift, kMostShift, generator).mul_(scale);
  for_parts(tensor, [&](at::Tensor part, int64_t first) { part.add_(of_rows(shifts, part, first, width)); });
  return true;
}

bool round_to_grid(at::Tensor tensor) {
  const double scale = rms_of(tensor);
  if (!(scale > 0) || !std::isfinite(scale)) return false;
  const double step = std::exp2(std::round(std::log2(scale / 2)));
  for_parts(tensor, [&](at::Tensor part, int64_t) { part.div_(step).round_().mul_(step); });
  return true;
}

}  // namespace

bool apply_distribution(at::Tensor tensor, InputDistribution kind, at::Generator generator, bool* widened) {
  if (!is_number_tensor(tensor) || kind == InputDistribution::kOwn || kind >= InputDistribution::kState)
    return false;
  const bool half = tensor.scalar_type() == c10::kHalf;
  const auto range = range_of(tensor);
  const bool leaves_unit = kind == InputDistribution::kHuge || kind == InputDistribution::kOutliers ||
                           kind == InputDistribution::kWide || kind == InputDistribution::kRamp ||
                           kind == InputDistribution::kShifted;
  const bool leaves_sign = kind == InputDistribution::kLarge && range.never_negative();
  if (widened)
    *widened |= kind == InputDistribution::kFlipped || leaves_sign || (leaves_unit && range.unit());
  if (tensor.numel() == 1) return apply_to_one(tensor, kind, range);
  switch (kind) {
    case InputDistribution::kZeros:
      tensor.zero_();
      return true;
    case InputDistribution::kOnes:
      tensor.fill_(1);
      return true;
    case InputDistribution::kNegative:
      if (range.never_negative()) return false;
      tensor.abs_().neg_();
      if (tensor.dim() > 1 && !half)
        for_parts(tensor, [&](at::Tensor part, int64_t first) {
          const auto odd = rows_of(part, first, tensor.size(-1)).remainder_(2).eq(1);
          part.copy_(at::where(odd, part.sub(1).mul_(0x1p7), part));
        });
      return true;
    case InputDistribution::kFlipped:
      if (!range.never_negative() || range.high == 0) return false;
      tensor.neg_();
      return true;
    case InputDistribution::kTiny:
      tensor.mul_(half ? 0x1p-6 : 0x1p-20);
      return true;
    case InputDistribution::kSmall:
      tensor.mul_(half ? 0x1p-3 : 0x1p-10);
      return true;
    case InputDistribution::kHuge:
      tensor.mul_(half ? 0x1p5 : 0x1p10);
      return true;
    case InputDistribution::kRamp: {
      // A probability is moderately above one here, where softmaxes and sums still show it.
      const double high = range.low + (range.high - range.low) * (range.never_negative() ? kSteep : 1);
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        const double step = (high - range.low) / static_cast<double>(tensor.numel() - 1);
        part.copy_(indices(part, first).to(c10::kDouble).mul_(step).add_(range.low).clamp_(range.low, high));
      });
      return true;
    }
    case InputDistribution::kOneHot:
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.copy_(one_hot_rows(part, first, tensor.size(-1)));
      });
      return true;
    case InputDistribution::kOutliers: {
      const SparseMask mask(tensor, generator);
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.copy_(at::where(mask.of(part, first), part.mul(half ? 0x1p4 : 0x1p8), part));
      });
      return true;
    }
    case InputDistribution::kWide: {
      const auto local = generator_on(tensor, generator);
      for_parts(tensor, [&](at::Tensor part, int64_t) {
        part.mul_(uniform(part, half ? -3 : -6, half ? 4 : 16, local).exp2_().to(part.scalar_type()));
        if (range.low < 0 && range.high > 0) part.masked_fill_(uniform(part, 0, 1, local).lt(kZeros), 0);
      });
      return true;
    }
    case InputDistribution::kLarge:
      return scale_rows(tensor, range, half, generator), true;
    case InputDistribution::kShifted:
      return shift_rows(tensor, generator);
    case InputDistribution::kGrid:
      return round_to_grid(tensor);
    case InputDistribution::kInfinities: {
      const SparseMask mask(tensor, generator);
      const auto infinity = at::scalar_tensor(std::numeric_limits<double>::infinity(), tensor.options());
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        const auto signs =
            range.never_negative() ? infinity : at::where(part.lt(0), infinity.neg(), infinity);
        part.copy_(at::where(mask.of(part, first), signs, part));
      });
      return true;
    }
    case InputDistribution::kNans: {
      const SparseMask mask(tensor, generator);
      for_parts(tensor, [&](at::Tensor part, int64_t first) {
        part.masked_fill_(mask.of(part, first), std::numeric_limits<double>::quiet_NaN());
      });
      return true;
    }
    default:
      return false;
  }
}

namespace {

constexpr double kNextToNothing = 0x1p-8;  // of a parameter: what scales by it hides what it scales
constexpr double kSmallState = 0.25;       // in kState, what is smaller on average is brought to order one

// Of the elements that are not infinite.
struct StateRange : Range {
  double rms = 0;
  bool infinite = false, nan = false;
  bool constant() const { return low == high; }
};

StateRange state_range_of(const at::Tensor& tensor) {
  StateRange range;
  static_cast<Range&>(range) = range_of(tensor);
  range.nan = std::isnan(range.low) || std::isnan(range.high);
  range.infinite = !range.nan && (std::isinf(range.low) || std::isinf(range.high));
  if (range.nan) return range;
  double squares = 0, count = 0;
  range.low = std::numeric_limits<double>::infinity(), range.high = -range.low;
  for_parts(tensor, [&](const at::Tensor& part, int64_t) {
    auto numbers = part.to(c10::kFloat).reshape({-1});
    if (range.infinite) numbers = numbers.masked_select(at::isfinite(numbers));
    if (numbers.numel() == 0) return;
    const auto [low, high] = numbers.aminmax();
    range.low = std::min(range.low, low.item().toDouble()),
    range.high = std::max(range.high, high.item().toDouble());
    squares += at::sum(numbers.mul(numbers), c10::kDouble).item().toDouble();
    count += static_cast<double>(numbers.numel());
  });
  range.rms = count > 0 ? std::sqrt(squares / count) : 0;
  range.nan = count == 0;  // nothing to change
  return range;
}

void keep_infinities(at::Tensor part, const at::Tensor& made, const StateRange& range) {
  const auto numbers = made.to(part.scalar_type());
  part.copy_(range.infinite ? at::where(at::isfinite(part), numbers, part) : numbers);
}

// Within what the tensor's own elements keep to.
at::Tensor kept_within(at::Tensor made, const StateRange& range) {
  if (range.low >= 1) return made.clamp_min_(1);
  if (range.low >= -1 && range.high <= 1) return made.clamp_(range.never_negative() ? 0 : -1, 1);
  return made;
}

void make_constant(at::Tensor tensor, const StateRange& range, const at::Generator& generator) {
  const double number = std::abs(range.low) < kNextToNothing ? std::copysign(1.0, range.low) : range.low;
  const auto local = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto made =
        range.low == 0 ? normal(part, local).mul_(0.25) : uniform(part, 0.75, 1.25, local).mul_(number);
    keep_infinities(part, made, range);
  });
}

}  // namespace

bool perturb_constant(at::Tensor tensor, at::Generator generator) {
  if (!is_number_tensor(tensor)) return false;
  const auto range = state_range_of(tensor);
  if (range.nan || range.infinite || !range.constant()) return false;
  make_constant(tensor, range, generator);
  return true;
}

bool perturb(at::Tensor tensor, at::Generator generator) {
  if (!is_number_tensor(tensor)) return false;
  const auto range = state_range_of(tensor);
  if (range.nan) return false;
  if (range.constant()) return make_constant(tensor, range, generator), true;
  const double scale = range.rms < kNextToNothing ? 0.25 / range.rms : 1;
  const double most = range.never_negative() && range.high <= 1 && scale == 1 ? 1 : 1.25;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto own = part.to(c10::kFloat);
    const auto noise = normal(part, generator).mul_(0.25 * range.rms);
    auto made = at::where(own.eq(0), range.never_negative() ? noise.abs() : noise,
                          own.mul(uniform(part, 0.75, most, generator)));
    keep_infinities(part, kept_within(made.mul_(scale), range), range);
  });
  return true;
}

bool widen_state(at::Tensor tensor, bool any_sign, at::Generator generator) {
  if (!is_number_tensor(tensor)) return false;
  const auto range = state_range_of(tensor);
  if (range.nan) return false;
  const bool flips = any_sign || !range.never_negative();
  const double scale = range.rms > 0 && range.rms < kSmallState ? 1 / range.rms : 1;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    auto made = uniform(part, -2, 4, generator).exp2_();
    if (flips) made.mul_(uniform(part, -1, 1, generator).sign_());
    made.mul_(part.to(c10::kFloat)).mul_(scale);
    keep_infinities(part, flips && any_sign ? made : kept_within(made, range), range);
  });
  return true;
}

std::vector<double> other_values(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  if (!c10::isFloatingType(type) || c10::elementSize(type) < 2 || tensor.numel() == 0) return {};
  const auto range = range_of(tensor);
  const double width = range.high - range.low, most = largest_finite(dtype_of(type)) / 4;
  if (!(width > 0) || !(std::abs(range.low) + std::abs(range.high) < most)) return {};
  if (range.unit()) return {range.high, range.low};
  return {range.high + width, range.never_negative() ? 0 : range.low - width};
}

void move_half_ulp(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (!c10::isFloatingType(tensor.scalar_type()) || c10::elementSize(tensor.scalar_type()) < 2) return;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    part.mul_(up_or_down(part, generator).mul_(epsilon(was) / 2).add_(1).to(part.scalar_type()));
  });
}

void round_by_chance(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (tensor.scalar_type() != c10::kDouble) return;
  const auto type = scalar_type(was);
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(type).to(c10::kDouble);
    const auto kept = rounded.eq(part).logical_or(rounded.isfinite().logical_not());
    const auto moved = up_or_down(part, generator).mul_(epsilon(was) / 2).add_(1).mul_(part);
    part.copy_(at::where(kept, part, moved.to(type).to(c10::kDouble)));
  });
}

void move_exponents(at::Tensor made, const at::Tensor& numbers, bool logarithm, trace::DType was,
                    at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || made.sizes() != numbers.sizes()) return;
  generator = generator_on(made, generator);
  const auto moved = up_or_down(made, generator).mul_(epsilon(was) / 2).mul_(numbers.nan_to_num(0, 0, 0));
  logarithm ? made.add_(moved) : made.mul_(moved.exp_());
}

void move_up_or_down(at::Tensor made, const at::Tensor& by, at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || (by.dim() > 0 && made.sizes() != by.sizes())) return;
  generator = generator_on(made, generator);
  made.add_(up_or_down(made, generator).mul_(by.nan_to_num(0, 0, 0)));
}

void move_sums(at::Tensor made, double terms, trace::DType was, at::Generator generator) {
  if (made.scalar_type() != c10::kDouble || made.numel() == 0) return;
  generator = generator_on(made, generator);
  const auto squared = made.nan_to_num(0, 0, 0).square_();
  const auto size = (made.dim() > 1 ? squared.mean(-1, true) : squared.mean()).sqrt();
  made.add_(up_or_down(made, generator).mul_(epsilon(was) / 2 * std::sqrt(terms)).mul_(size));
}

void vanish_with_squares(at::Tensor made, trace::DType was) {
  if (made.scalar_type() != c10::kDouble) return;
  const double least =
      was == trace::DType::kF64 ? 0x1p-501 : 0x1p-53;  // 2^10 times the root of the least normal
  made.masked_fill_(made.abs().lt(least), 0);
}

void mark_overflow(at::Tensor tensor, trace::DType was) {
  if (tensor.scalar_type() != c10::kDouble) return;
  constexpr double kNearly = 0x1p-6;
  const double most = largest_finite(was);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto size = part.abs();
    part.masked_fill_(size.gt(most * (1 - kNearly)).logical_and_(size.lt(most * (1 + kNearly))),
                      std::numeric_limits<double>::quiet_NaN());
  });
}

void add_rounding_noise(at::Tensor tensor, trace::DType was, at::Generator generator) {
  if (tensor.scalar_type() != c10::kDouble) return;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto rounded = part.to(scalar_type(was)).to(c10::kDouble);
    const auto kept = rounded.eq(part).logical_or(rounded.isfinite().logical_not());
    const auto power = part.contiguous().view(c10::kLong).bitwise_and(0x7FF0000000000000).view(c10::kDouble);
    const auto noise = at::rand(part.sizes(), generator, options_of(part, c10::kDouble)).sub_(0.5);
    part.add_(at::where(kept, 0.0, noise.mul_(epsilon(was)).mul_(power)));
  });
}

}  // namespace nereid::replay
