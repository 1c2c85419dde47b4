#include "nereid/replay/worker/inputs/inputs.h"

#include <cmath>
#include <limits>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

struct Range {
  double low = 0, high = 0;
  bool never_negative() const { return low >= 0; }
  bool unit() const { return low >= 0 && high <= 1; }
};

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

// Calls change(flat): the elements in row-major order, of which it may take any by views.
template <typename F>
void in_row_major(const at::Tensor& tensor, F change) {
  const auto whole = tensor.contiguous();
  change(whole.view({-1}));
  if (!whole.is_same(tensor)) tensor.copy_(whole);
}

// Every 64th element, from a place that the generator chooses; one at least.
at::Tensor sparse(const at::Tensor& flat, const at::Generator& generator) {
  const auto period = std::min<int64_t>(flat.numel(), 64);
  const auto options = at::TensorOptions().dtype(c10::kLong);
  return flat.slice(0, at::randint(period, {1}, generator, options).item().toLong(), std::nullopt, period);
}

void make_one_hot_rows(const at::Tensor& flat, int64_t width) {
  const auto row = at::arange(flat.numel() / width, flat.options().dtype(c10::kLong));
  flat.zero_().index_fill_(0, row.mul(width).add_(row.mul(7).add_(3).remainder_(width)), 1);
}

bool is_number_tensor(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) && c10::elementSize(tensor.scalar_type()) > 1 &&
         tensor.numel() > 0;
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
// Changes a part by what each of its rows has: change(part, numbers of its elements), both of one shape or
// one that broadcasts. `numbers` has one for each row of the tensor.
template <typename F>
void for_rows(const at::Tensor& numbers, at::Tensor part, int64_t first, int64_t width, F change) {
  const int64_t rows = part.numel() / width;
  if (part.is_contiguous() && first % width == 0 && rows * width == part.numel())
    return change(part.view({rows, width}), numbers.narrow(0, first / width, rows).unsqueeze(1));
  if (first / width == (first + part.numel() - 1) / width)
    return change(part, numbers.narrow(0, first / width, 1));
  change(part, numbers.index_select(0, rows_of(part, first, width).reshape({-1})).view(part.sizes()));
}
int64_t width_of(const at::Tensor& tensor) { return tensor.dim() > 1 ? tensor.size(-1) : tensor.numel(); }

// Powers of two, of the rms: 6 and 12 times. Numbers between -4 and 4 are then above 1, and lose four bits.
constexpr double kMinShift = 2.6, kMaxShift = 3.6;

void scale_rows(at::Tensor tensor, const Range& range, bool half, const at::Generator& generator) {
  const auto width = width_of(tensor);
  const auto factors = factors_of_rows(tensor, width, 1, half ? 3 : 7, generator);
  const auto local = generator_on(tensor, generator);
  const auto odd = at::arange(factors.numel(), factors.options().dtype(c10::kLong)).remainder_(2).eq(1);
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    for_rows(factors, part, first, width,
             [](at::Tensor of, const at::Tensor& by) { of.mul_(by.to(of.scalar_type())); });
    if (!range.never_negative()) return;
    for_rows(odd, part, first, width, [&](at::Tensor of, const at::Tensor& signed_rows) {
      const auto signs = uniform(of, -1, 1, local).sign_().to(of.scalar_type());
      of.copy_(at::where(signed_rows, of.mul(signs), of));
    });
  });
}

bool shift_rows(at::Tensor tensor, const at::Generator& generator) {
  const double scale = rms_of(tensor);
  if (!(scale > 0) || !std::isfinite(scale)) return false;
  const auto width = width_of(tensor);
  const auto shifts = factors_of_rows(tensor, width, kMinShift, kMaxShift, generator).mul_(scale);
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    for_rows(shifts, part, first, width,
             [](at::Tensor of, const at::Tensor& by) { of.add_(by.to(of.scalar_type())); });
  });
  return true;
}

bool round_to_grid(at::Tensor tensor) {
  const double scale = rms_of(tensor);
  if (!(scale > 0) || !std::isfinite(scale)) return false;
  const double step = std::exp2(std::round(std::log2(scale / 2)));
  for_parts(tensor, [&](at::Tensor part, int64_t) { part.div_(step).round_().mul_(step); });
  return true;
}

constexpr double kFarAway = 0x1p40, kFarAwayInHalf = 0x1p13, kMaxInHalf = 60000;
constexpr double kBeyondSquares = 0x1p30;  // times kFarAway
constexpr double kSpreadWhereBounded = 0.25;

// Below zero in the first half of the first dimension, or as a whole: all of a row, of a window, of a column.
// Numbers that stand for minus infinity, but those next to the largest of all, are nearer to zero; squares,
// and sums of them, are finite. Where a forward works on each element alone, every fourth row (of a vector,
// element) is 2^30 times as large: squares overflow, and what takes none (hypot) is finite.
bool fill_far(at::Tensor tensor, const Range& range, const DistributionContext& context) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high)) return false;
  const bool half = tensor.scalar_type() == c10::kHalf;
  const bool halves = !context.whole && tensor.dim() > 1 && tensor.size(0) > 1;
  const int64_t below = range.never_negative() || !context.first ? 0
                        : halves ? (tensor.size(0) + 1) / 2 * (tensor.numel() / tensor.size(0))
                                 : tensor.numel();
  const double most = std::max(std::abs(range.low), std::abs(range.high));
  const double spread = !context.bounded ? 1 : most > 0 ? kSpreadWhereBounded / most : 0;
  const double times = context.bounded.value_or(1) * (half ? kFarAwayInHalf : kFarAway);
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    const auto size = part.to(c10::kFloat).abs().mul_(spread).add_(half && !context.bounded ? 1.5 : 1);
    size.mul_(times);
    if (half) size.clamp_max_(kMaxInHalf);
    if (context.beyond_squares && !context.bounded && !half) {
      const auto large = rows_of(part, first, tensor.numel() / tensor.size(0)).remainder_(4).eq(3);
      size.copy_(at::where(large, size.mul(kBeyondSquares), size));
    }
    const bool all = first + part.numel() <= below, none = first >= below;
    part.copy_(all ? size.neg_() : none ? size : at::where(indices(part, first).lt(below), size.neg(), size));
  });
  return true;
}

// Multiples of 2^-21, up to 2^-12 to either side: all of a row round to one number of 11 bits.
bool put_close(at::Tensor tensor, const Range& range, const std::vector<double>& bounds,
               const at::Generator& generator) {
  constexpr int64_t kSteps = 512, kRow = 64;
  constexpr double kStep = 0x1p-21;
  const double scale = rms_of(tensor);
  if (c10::elementSize(tensor.scalar_type()) < 4 || !(scale > 0) || !std::isfinite(scale)) return false;
  std::vector<double> bases = {1.25 * std::exp2(std::round(std::log2(scale)))};
  if (bases[0] > range.high) bases[0] /= 2;
  for (const double bound : bounds)
    if (bound != 0 && bound >= range.low && bound <= range.high) bases.push_back(bound);
  const auto options = at::TensorOptions().dtype(c10::kFloat);
  const auto of_base =
      at::tensor(at::ArrayRef<double>(bases), options.dtype(c10::kDouble)).to(tensor.device());
  const auto width = tensor.dim() > 1 ? tensor.size(-1) : std::min(kRow, tensor.numel());
  const auto local = generator_on(tensor, generator);
  const auto count = static_cast<int64_t>(bases.size());
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    const auto row = rows_of(part, first, width);
    const auto which = row.floor_divide(2).remainder_(count);
    auto base = of_base.index_select(0, which.reshape({-1})).view(part.sizes());
    if (range.low < -bases[0])
      base = at::where(which.eq(0).logical_and_(row.remainder(2).eq(1)), base.neg(), base);
    const auto steps = at::randint(-kSteps, kSteps + 1, part.sizes(), local, options_of(part, c10::kDouble));
    part.copy_(base.to(c10::kDouble).mul_(steps.mul_(kStep).add_(1)));
  });
  return true;
}

bool make_negative(at::Tensor tensor, const Range& range, bool half) {
  if (range.never_negative()) return false;
  tensor.abs_().neg_();
  if (tensor.dim() > 1 && !half)
    in_row_major(tensor, [&](const at::Tensor& flat) {
      flat.view({-1, tensor.size(-1)}).slice(0, 1, std::nullopt, 2).sub_(1).mul_(0x1p7);
    });
  return true;
}

// A probability is moderately above one here, where softmaxes and sums still show it.
void make_ramp(at::Tensor tensor, const Range& range) {
  const double high = range.low + (range.high - range.low) * (range.never_negative() ? kSteep : 1);
  const double step = (high - range.low) / static_cast<double>(tensor.numel() - 1);
  for_parts(tensor, [&](at::Tensor part, int64_t first) {
    const auto place =
        at::arange(first, first + part.numel(), options_of(part, c10::kDouble)).view(part.sizes());
    part.copy_(place.mul_(step).add_(range.low).clamp_(range.low, high));
  });
}

void scale_elements(at::Tensor tensor, const Range& range, bool half, const at::Generator& generator) {
  const auto local = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    part.mul_(uniform(part, half ? -3 : -6, half ? 4 : 16, local).exp2_().to(part.scalar_type()));
    if (range.low < 0 && range.high > 0) part.masked_fill_(uniform(part, 0, 1, local).lt(kZeros), 0);
  });
}

void make_infinities(const at::Tensor& numbers, const Range& range) {
  const auto infinity = at::scalar_tensor(std::numeric_limits<double>::infinity(), numbers.options());
  if (range.never_negative())
    numbers.fill_(infinity);
  else
    numbers.copy_(at::where(numbers.lt(0), infinity.neg(), infinity));
}

}  // namespace

namespace {

// Numbers of 8 bits have no arithmetic: they become what half-precision ones would, within their range.
bool apply_to_bytes(const at::Tensor& tensor, InputDistribution kind, const at::Generator& generator,
                    bool* widened, const DistributionContext& context) {
  const auto type = tensor.scalar_type();
  const bool odd = kind == InputDistribution::kInfinities || kind == InputDistribution::kNans ||
                   kind == InputDistribution::kFar || kind == InputDistribution::kClose;
  if (odd || (type != c10::kFloat8_e4m3fn && type != c10::kFloat8_e5m2) || tensor.numel() < 2) return false;
  const double most = type == c10::kFloat8_e5m2 ? 57344 : 448;
  const auto wider = tensor.to(c10::kFloat).to(c10::kHalf);
  if (!apply_distribution(wider, kind, generator, widened, context)) return false;
  const auto made = wider.to(c10::kFloat).clamp_(-most, most);
  const double largest = made.abs().max().item().toDouble();
  if (kind == InputDistribution::kHuge && largest > 0) made.mul_(most / largest);  // all there is room for
  tensor.copy_(made.to(type));
  return true;
}

}  // namespace

bool apply_distribution(at::Tensor tensor, InputDistribution kind, at::Generator generator, bool* widened,
                        const DistributionContext& context) {
  if (c10::isFloat8Type(tensor.scalar_type()) && kind != InputDistribution::kOwn &&
      kind < InputDistribution::kState)
    return apply_to_bytes(tensor, kind, generator, widened, context);
  if (!is_number_tensor(tensor) || kind == InputDistribution::kOwn || kind >= InputDistribution::kState)
    return false;
  const bool half = tensor.scalar_type() == c10::kHalf;
  const auto range = range_of(tensor);
  const bool leaves_unit = kind == InputDistribution::kHuge || kind == InputDistribution::kOutliers ||
                           kind == InputDistribution::kWide || kind == InputDistribution::kRamp ||
                           kind == InputDistribution::kShifted || kind == InputDistribution::kFar;
  const bool leaves_sign = kind == InputDistribution::kLarge && range.never_negative();
  if (widened)
    *widened |= kind == InputDistribution::kFlipped || leaves_sign || (leaves_unit && range.unit()) ||
                (kind == InputDistribution::kFar && tensor.numel() > 1);
  if (tensor.numel() == 1) return apply_to_one(tensor, kind, range);
  switch (kind) {
    case InputDistribution::kZeros:
      tensor.zero_();
      return true;
    case InputDistribution::kOnes:
      tensor.fill_(1);
      return true;
    case InputDistribution::kNegative:
      return make_negative(tensor, range, half);
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
    case InputDistribution::kRamp:
      return make_ramp(tensor, range), true;
    case InputDistribution::kOneHot:
      in_row_major(tensor, [&](const at::Tensor& flat) { make_one_hot_rows(flat, tensor.size(-1)); });
      return true;
    case InputDistribution::kOutliers:
      in_row_major(tensor,
                   [&](const at::Tensor& flat) { sparse(flat, generator).mul_(half ? 0x1p4 : 0x1p8); });
      return true;
    case InputDistribution::kWide:
      return scale_elements(tensor, range, half, generator), true;
    case InputDistribution::kLarge:
      return scale_rows(tensor, range, half, generator), true;
    case InputDistribution::kShifted:
      return shift_rows(tensor, generator);
    case InputDistribution::kGrid:
      return round_to_grid(tensor);
    case InputDistribution::kFar:
      return fill_far(tensor, range, context);
    case InputDistribution::kClose:
      return put_close(tensor, range, context.bounds, generator);
    case InputDistribution::kInfinities:
      in_row_major(tensor, [&](const at::Tensor& flat) { make_infinities(sparse(flat, generator), range); });
      return true;
    case InputDistribution::kNans:
      in_row_major(tensor, [&](const at::Tensor& flat) {
        sparse(flat, generator).fill_(std::numeric_limits<double>::quiet_NaN());
      });
      return true;
    default:
      return false;
  }
}

namespace {

constexpr double kSmallScale = 0x1p-8;  // of a parameter: what scales by it hides what it scales
constexpr double kSmallState = 0.25;    // in kState, what is smaller on average is brought to order one

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
  const double number = std::abs(range.low) < kSmallScale ? std::copysign(1.0, range.low) : range.low;
  const auto local = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto made =
        range.low == 0 ? normal(part, local).mul_(0.25) : uniform(part, 0.75, 1.25, local).mul_(number);
    keep_infinities(part, made, range);
  });
}

}  // namespace

double largest_size(const at::Tensor& tensor) {
  double most = 0;
  if (!is_number_tensor(tensor)) return most;
  for_parts(tensor, [&](const at::Tensor& part, int64_t) {
    most = std::max(most, part.to(c10::kDouble).abs().nan_to_num(0, 0, 0).max().item().toDouble());
  });
  return most;
}

void narrow(at::Tensor tensor, double most, int times) {
  if (times == 0 || !(most > 0) || !is_number_tensor(tensor)) return;
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    const auto size = part.to(c10::kDouble).abs();
    const auto narrowed = size.div(most).pow(std::ldexp(1, -times)).mul(most).copysign(part);
    part.copy_(at::where(size.gt(most).logical_and(size.isfinite()), narrowed.to(part.scalar_type()), part));
  });
}

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
  const double scale = range.rms < kSmallScale ? 0.25 / range.rms : 1;
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

bool widen_state(at::Tensor tensor, bool any_sign, at::Generator generator, bool as_trained) {
  if (!is_number_tensor(tensor)) return false;
  const auto range = state_range_of(tensor);
  if (range.nan) return false;
  const bool larger = as_trained && tensor.numel() == 1;
  const bool flips = !larger && (any_sign || !range.never_negative());
  const double scale = range.rms > 0 && range.rms < kSmallState ? 1 / range.rms : 1;
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t) {
    auto made = uniform(part, larger ? 1 : -2, 4, generator).exp2_();
    if (flips) made.mul_(uniform(part, -1, 1, generator).sign_());
    made.mul_(part.to(c10::kFloat)).mul_(scale);
    keep_infinities(part, any_sign ? made : kept_within(made, range), range);
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

}  // namespace nereid::replay
