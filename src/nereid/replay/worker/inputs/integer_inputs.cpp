#include "nereid/replay/worker/inputs/integer_inputs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/inputs/integer_helpers.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

std::pair<double, double> range_of_type(c10::ScalarType type) {
  switch (type) {
    case c10::kByte:
      return {0, 255};
    case c10::kChar:
      return {-128, 127};
    case c10::kShort:
      return {-0x1p15, 0x1p15 - 1};
    case c10::kInt:
      return {-0x1p31, 0x1p31 - 1};
    default:
      return {-0x1p53, 0x1p53};
  }
}

// Rows of numbers that mean something: what is negative among others that are not marks a place, and stays.
struct Sample {
  at::Tensor rows;  // i64[rows, columns]
  int64_t low = 0, high = 0;
  bool sorted = false, descending = false, strict = false;  // in every row
  bool distinct = false, all_distinct = false;              // in every row; in the whole tensor
  bool permutation = false;                                 // all_distinct, of 0 to n - 1
  int64_t factor = 1;                                       // common to all numbers of sorted rows
  std::optional<int64_t> sum = {};                          // of every row, where that is a size
  bool offsets = false;                                     // one row, from 0 to a size

  bool constant() const { return low == high; }
  int64_t columns() const { return rows.size(1); }
};

// A power of two, of at most 16: what alignment asks for.
int64_t common_factor(const at::Tensor& numbers) {
  int64_t factor = 16;
  while (factor > 1 && !all_true(numbers.remainder(factor).eq(0))) factor /= 2;
  return factor;
}

bool distinct_in_rows(const at::Tensor& rows) {
  if (rows.size(1) < 2) return true;
  const auto sorted = std::get<0>(rows.sort(1));
  return all_true(sorted.diff(1, 1).ne(0));
}

bool is_size(int64_t number, const IntegerLimits& limits) {
  return std::ranges::find(limits.sizes, number) != limits.sizes.end() ||
         std::ranges::find(limits.numbers, number) != limits.numbers.end();
}

Sample look_at(const at::Tensor& rows, const IntegerLimits& limits) {
  Sample s;
  s.rows = rows;
  const auto [low, high] = rows.aminmax();
  s.low = low.item().toLong(), s.high = high.item().toLong();
  // Equal counts: of less than four all kinds of numbers make a size.
  if (s.columns() > 3 && s.low > 1 && s.constant() && is_size(s.low * s.columns(), limits))
    s.sum = s.low * s.columns();
  if (s.columns() < 2 || s.constant()) {
    s.distinct = s.constant() && s.columns() == 1 && rows.size(0) > 1 ? false : s.columns() == 1;
    s.all_distinct = false;
    return s;
  }
  const auto steps = rows.diff(1, 1);
  s.sorted = all_true(steps.ge(0)), s.descending = !s.sorted && all_true(steps.le(0));
  s.strict = all_true(steps.ne(0)) && (s.sorted || s.descending);
  s.distinct = s.strict || distinct_in_rows(rows);
  s.all_distinct = s.distinct && (rows.size(0) == 1 || distinct_in_rows(rows.reshape({1, -1})));
  s.permutation = s.all_distinct && s.low == 0 && s.high == rows.numel() - 1;
  if (s.sorted || s.descending) s.factor = common_factor(rows);
  s.offsets = s.sorted && rows.size(0) == 1 && s.low == 0 && is_size(s.high, limits);
  const auto sums = rows.sum(1);
  const auto sum = sums.reshape({-1})[0].item().toLong();
  if (s.low >= 0 && s.high > 1 && all_true(sums.eq(sum)) && is_size(sum, limits)) s.sum = sum;
  return s;
}

// Sorted numbers of [low, high], `columns` to a row, as many different ones where `strict`.
at::Tensor sorted_rows(int64_t rows, int64_t columns, int64_t low, int64_t high, bool strict,
                       at::Generator generator) {
  const int64_t room = strict ? high - low - (columns - 1) : high - low;
  auto drawn = std::get<0>(at::randint(0, room + 1, {rows, columns}, generator, kLong).sort(1)).add(low);
  return strict ? drawn.add(at::arange(columns, kLong)) : drawn;
}

at::Tensor shuffled_in_rows(const at::Tensor& rows, at::Generator generator) {
  const auto order =
      at::rand(rows.sizes(), generator, at::TensorOptions().dtype(c10::kFloat)).argsort(1, false);
  return rows.gather(1, order);
}

// The smallest of `numbers` that is at least `least`, where there is one.
std::optional<int64_t> smallest_from(const std::vector<int64_t>& numbers, int64_t least) {
  std::optional<int64_t> found;
  for (const auto n : numbers)
    if (n >= least && (!found || n < *found)) found = n;
  return found;
}

std::optional<int64_t> least_of(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// Makes no step of sorted rows longer than `longest`; their ends allow that, and stay.
void shorten_steps(at::Tensor& rows, int64_t longest) {
  rows = rows.contiguous();
  const int64_t columns = rows.size(1);
  for (int64_t r = 0; r < rows.size(0); ++r) {
    auto* x = rows.mutable_data_ptr<int64_t>() + r * columns;
    for (int64_t i = 1; i + 1 < columns; ++i)
      x[i] = std::min(std::max(x[i], x[columns - 1] - (columns - 1 - i) * longest), x[i - 1] + longest);
  }
}

// Between the ends, which stay: they are what offsets begin and end with.
std::optional<at::Tensor> redraw_sorted(const Sample& s, InputDistribution kind, const IntegerUse& use,
                                        const IntegerLimits& limits, at::Generator generator) {
  const int64_t columns = s.columns();
  const auto first = s.rows.narrow(1, 0, 1), last = s.rows.narrow(1, columns - 1, 1);
  const int64_t low = first.min().item().toLong(), high = last.max().item().toLong();
  // Rows of one run of numbers (positions): there is room only beyond it.
  if (s.strict && high - low == columns - 1) {
    if (!use.indexes() || use.obscure || use.bound <= s.high + 1 || s.low < 0) return std::nullopt;
    if (kind == InputDistribution::kLowest) return std::nullopt;
    if (kind == InputDistribution::kHighest) return s.rows.add(use.bound - 1 - s.high);
    return sorted_rows(s.rows.size(0), columns, use.least, use.bound - 1, true, generator);
  }
  if (columns < 3 || s.rows.size(0) > 1) {
    if (!all_true(first.eq(low)) || !all_true(last.eq(high))) return std::nullopt;  // ends of their own
    if (columns < 3) return std::nullopt;
  }
  // Of segments, all but the first and the last may be empty.
  const bool empties = s.strict && s.offsets && kind == InputDistribution::kHighest;
  const int64_t from = low / s.factor, to = high / s.factor - (empties ? 1 : 0),
                step = s.strict && !empties ? 1 : 0;
  const auto places = at::arange(columns, kLong).mul(step).expand({s.rows.size(0), columns});
  at::Tensor made = kind == InputDistribution::kLowest ? places.add(from)
                    : kind == InputDistribution::kHighest
                        ? places.sub(step * (columns - 1)).add(to)
                        : sorted_rows(s.rows.size(0), columns, from, to, s.strict, generator);
  made = made.mul(s.factor).clone();
  made.narrow(1, 0, 1).copy_(first), made.narrow(1, columns - 1, 1).copy_(last);
  const auto step_now = std::max<int64_t>(s.rows.diff(1, 1).max().item().toLong(), 1);
  const auto longest =
      least_of(smallest_from(limits.numbers, step_now), smallest_from(limits.rows, step_now));
  if (longest && *longest < high - low) shorten_steps(made, *longest / s.factor * s.factor);
  if (s.strict && !empties && !all_true(made.diff(1, 1).gt(0))) return std::nullopt;
  return made;
}

// The most that one of so many counts may be.
int64_t max_per_count(const Sample& s, const IntegerLimits& limits) {
  const auto high = std::max<int64_t>(s.high, 1);
  const auto limit = least_of(smallest_from(limits.numbers, high), smallest_from(limits.rows, high));
  int64_t most = std::min(*s.sum, limit.value_or(*s.sum));
  for (const auto& shape : limits.shapes)
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      if (shape[d] == s.columns() && shape[d + 1] >= s.high) most = std::min(most, shape[d + 1]);
  return most;
}

// The last count holds nearly everything, and the others are as small as may be; or the first does, and
// others but the last are nothing.
std::optional<at::Tensor> extreme_counts(const Sample& s, InputDistribution kind,
                                         const IntegerLimits& limits) {
  const bool first = kind == InputDistribution::kHighest;
  const int64_t most = max_per_count(s, limits), least = std::min<int64_t>(s.low, 1);
  auto made = at::full_like(s.rows, first ? 0 : least).contiguous();
  for (int64_t r = 0; r < made.size(0); ++r) {
    auto* counts = made.mutable_data_ptr<int64_t>() + r * s.columns();
    if (first) counts[s.columns() - 1] = least;
    int64_t left = *s.sum - (first ? least : least * s.columns());
    for (int64_t c = 0; c < s.columns() && left > 0; ++c) {
      auto& count = counts[first ? c : s.columns() - 1 - c];
      const int64_t more = std::min(left, most - count);
      count += more, left -= more;
    }
    if (left != 0) return std::nullopt;
  }
  return made;
}

// Counts that add up to a size: some of one goes to another.
std::optional<at::Tensor> redraw_counts(const Sample& s, InputDistribution kind, bool indexes,
                                        const IntegerLimits& limits, at::Generator generator) {
  if (s.columns() < 2) return std::nullopt;
  if (kind != InputDistribution::kRedrawn) return indexes ? std::nullopt : extreme_counts(s, kind, limits);
  auto made = shuffled_in_rows(s.rows, generator).clone();
  const int64_t pairs = s.columns() / 2;
  auto left = made.narrow(1, 0, pairs), right = made.narrow(1, pairs, pairs);
  const auto most =
      at::minimum(left.sub(std::min<int64_t>(s.low, 1)).clamp_min(0), right.neg().add(s.high).clamp_min(0));
  const auto share = at::rand(most.sizes(), generator, at::TensorOptions().dtype(c10::kDouble));
  auto moved = share.mul(most.add(1)).floor().to(c10::kLong);
  moved = at::minimum(moved, most);
  left.sub_(moved), right.add_(moved);
  return made;
}

// Of each row how many flags are set: half of them, about one, or all but about one.
at::Tensor shares_of_flags(int64_t rows, int64_t columns, at::Generator generator) {
  const double one = 1.0 / static_cast<double>(std::max<int64_t>(columns, 2));
  const auto options = at::TensorOptions().dtype(c10::kDouble);
  const auto kind = at::randint(4, {rows, 1}, generator, options);
  return at::full({rows, 1}, 0.5, options).masked_fill_(kind.eq(1), one).masked_fill_(kind.eq(2), 1 - one);
}

struct Domain {
  int64_t low, high;
};
Domain domain_of(const Sample& s, const IntegerUse& use, const IntegerLimits& limits) {
  const auto most = smallest_from(limits.numbers, std::max<int64_t>(s.high, 1));
  if (use.indexes() && !use.obscure && s.low >= use.least && s.high < use.bound) {
    // What is moved before it indexes (lengths - 1) counts; indices stay below a number of classes.
    const auto below = use.least > 0 || !most ? most : std::optional(*most - 1);
    return {use.least, std::min(use.bound - 1, below ? std::max(*below, s.high) : use.bound - 1)};
  }
  const bool free = !use.obscure && !use.indexes();
  if (s.low >= 0 && s.high <= 1 && (free || !s.constant())) return {0, 1};  // flags, masks
  if (use.are_lengths() && free && s.low >= 0 && !limits.keeps_sum)
    return {use.compared_alone ? 0 : std::min<int64_t>(s.low, 1),
            std::max(s.high, std::min(use.positions, most.value_or(use.positions)))};
  if (s.constant() && free && s.low > 1) return {1, s.low};  // counts, times
  return {s.low, s.high};
}

// Compared with positions, and nothing else: they need not add up to anything, nor begin or end anywhere.
// (Numbers that rise from zero, or to a size, are where segments begin or end.)
bool is_lengths(const Sample& s, const IntegerUse& use, const IntegerLimits& limits) {
  const bool ends = s.sorted && (s.low == 0 || is_size(s.high, limits));
  return use.are_lengths() && use.compared_alone && !use.indexes() && s.low >= 0 && !ends &&
         !limits.keeps_sum;
}

std::optional<at::Tensor> redraw_rows(const Sample& s, InputDistribution kind, const IntegerUse& use,
                                      const IntegerLimits& limits, at::Generator generator) {
  const bool flags = s.low == 0 && s.high == 1 && !use.indexes() && !use.obscure;
  // Positions of a row, from one to the next: what only reads at them, or computes with them, takes any.
  const bool run = s.strict && s.sorted && s.columns() > 3 && s.high - s.low == s.columns() - 1;
  if (run && kind == InputDistribution::kRedrawn && (use.gathers_alone() || use.numbers_alone())) {
    const auto [low, high] = domain_of(s, use, limits);
    return at::randint(low, high + 1, s.rows.sizes(), generator, kLong);
  }
  if ((s.sorted || s.descending) && !flags && !s.permutation && is_lengths(s, use, limits)) {
    // The lengths of a batch that is sorted by them: there is no end that they have to keep.
    const auto [low, high] = domain_of(s, use, limits);
    if (kind == InputDistribution::kLowest) return at::full_like(s.rows, low);
    if (kind == InputDistribution::kHighest) return at::full_like(s.rows, high);
    const auto made = sorted_rows(s.rows.size(0), s.columns(), low, high, false, generator);
    return s.descending ? made.flip(1) : made;
  }
  if (s.descending && !flags && !s.permutation) {
    Sample turned = s;
    turned.rows = s.rows.flip(1), turned.descending = false, turned.sorted = true;
    const auto made = redraw_sorted(turned, kind, use, limits, generator);
    return made ? std::optional(made->flip(1)) : std::nullopt;
  }
  if (s.sorted && !flags) return redraw_sorted(s, kind, use, limits, generator);
  if (s.sum && !flags && !is_lengths(s, use, limits) &&
      !(s.constant() && (kind == InputDistribution::kRedrawn || use.indexes())))
    return redraw_counts(s, kind, use.indexes(), limits, generator);
  const auto [low, high] = domain_of(s, use, limits);
  const int64_t rows = s.rows.size(0), columns = s.columns();
  if (s.distinct && columns > 1 && !flags) {
    const bool whole = s.all_distinct && rows > 1;
    const int64_t r = whole ? 1 : rows, c = whole ? rows * columns : columns;
    const int64_t to = s.permutation ? s.high : high, from = s.permutation ? 0 : low;
    if (to - from < c - 1) return std::nullopt;
    const auto places = at::arange(c, kLong).expand({r, c});
    const auto made = kind == InputDistribution::kLowest ? places.add(from)
                      : kind == InputDistribution::kHighest
                          ? places.neg().add(to)
                          : shuffled_in_rows(sorted_rows(r, c, from, to, true, generator), generator);
    return made.reshape({rows, columns});
  }
  if (low == high) return std::nullopt;
  if (kind == InputDistribution::kLowest) return at::full_like(s.rows, low);
  if (kind == InputDistribution::kHighest) return at::full_like(s.rows, high);
  auto made =
      flags ? at::rand(s.rows.sizes(), generator).lt(shares_of_flags(rows, columns, generator)).to(c10::kLong)
            : at::randint(low, high + 1, s.rows.sizes(), generator, kLong);
  if (made.numel() == 1 && made.equal(s.rows)) made = at::full_like(made, s.low > low ? low : high);
  return made;
}

bool redraw_truths(at::Tensor tensor, InputDistribution kind, at::Generator generator) {
  const auto before = tensor.clone();
  if (kind == InputDistribution::kLowest)
    tensor.zero_();
  else if (kind == InputDistribution::kHighest)
    tensor.fill_(1);
  else if (tensor.numel() == 1)
    tensor.logical_not_();
  else {
    const int64_t columns = tensor.dim() > 0 ? tensor.size(-1) : 1, rows = tensor.numel() / columns;
    auto sizes = tensor.sizes().vec();
    if (!sizes.empty()) sizes.back() = 1;
    const auto shares = shares_of_flags(rows, columns, generator).reshape(sizes).to(tensor.device());
    tensor.bernoulli_(shares.expand(tensor.sizes()), generator_on(tensor, generator));
  }
  return !tensor.equal(before);
}

// Of a large tensor: whether its first numbers, and the sums of its first rows, show that it has none of the
// structure that look_at() finds.
bool is_unstructured(const at::Tensor& rows, const IntegerLimits& limits) {
  constexpr int64_t kRows = 16, kColumns = 4096;
  const auto some = rows.narrow(0, 0, std::min(rows.size(0), kRows));
  const auto first = some.narrow(1, 0, std::min(rows.size(1), kColumns)).to(at::kCPU, c10::kLong);
  if (first.size(1) < 2 || distinct_in_rows(first)) return false;
  const auto steps = first.diff(1, 1);
  if (all_true(steps.ge(0)) || all_true(steps.le(0))) return false;
  const auto sums = some.sum(1, false, c10::kLong).to(at::kCPU);
  if (!all_true(sums.eq(sums[0]))) return true;
  const auto sum = sums[0].item().toLong();
  const auto is_one_of = [sum](const std::vector<int64_t>& known) {
    return std::ranges::find(known, sum) != known.end();
  };
  return !is_one_of(limits.sizes) && !is_one_of(limits.numbers);
}

// A large tensor without structure is drawn anew where it lies. Nullopt: it has to be looked at as a whole.
std::optional<bool> redraw_unstructured(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                                        const IntegerLimits& limits, const at::Generator& generator) {
  if (tensor.numel() <= kMaxSearched || !tensor.is_contiguous()) return std::nullopt;
  const auto rows = tensor.view({tensor.dim() < 2 ? 1 : tensor.numel() / tensor.size(-1), -1});
  const auto [low, high] = tensor.aminmax();
  Sample sample;
  sample.low = low.item().toLong(), sample.high = high.item().toLong();
  if (sample.constant() || sample.high < 0) return std::nullopt;
  if (sample.low < 0) return false;  // marks among numbers
  if (!is_unstructured(rows, limits)) return std::nullopt;
  const auto domain = domain_of(sample, use, limits);
  if (domain.low == domain.high) return false;
  if (kind == InputDistribution::kLowest)
    tensor.fill_(domain.low);
  else if (kind == InputDistribution::kHighest)
    tensor.fill_(domain.high);
  else
    tensor.random_(domain.low, domain.high + 1, generator_on(tensor, generator));
  return true;
}

// Rows of numbers near a quarter of the most that the type holds, each row of one sign.
at::Tensor near_limit_rows(const at::Tensor& own, double most, bool keeps_sign,
                           const at::Generator& generator) {
  constexpr double kLargest = 0x1p40;
  const auto size = at::rand(own.sizes(), generator, at::TensorOptions().dtype(c10::kDouble));
  auto numbers = size.mul(0.5).add(0.5).mul(std::min(most / 4, kLargest));
  const auto width = own.dim() < 2 ? std::max<int64_t>(own.numel() / 2, 1) : own.size(-1);
  const auto row = at::arange(own.numel(), kLong).floor_divide(width).view(own.sizes());
  return keeps_sign ? numbers : at::where(row.remainder(2).eq(1), numbers.neg(), numbers);
}

// Numbers that are computed with, without order or meaning among them: of either sign, and up to 64 times as
// large, within their type; in kFar near the ends of their type (2^38 to 2^40 at most), where the reference
// multiplies none with another. Samples within 16 numbers in a row are codes of four bits or less (quantised
// weights): others have no meaning.
bool widen_numbers(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                   const IntegerLimits& limits, at::Generator generator) {
  constexpr double kOctaves = 6;
  const auto type = tensor.scalar_type();
  const bool far = kind == InputDistribution::kFar;
  if (!use.numbers_alone() || type == c10::kBool || tensor.numel() < 2 || tensor.numel() > kMaxSearched ||
      (far && use.multiplied))
    return false;
  const auto own = as_long(tensor);
  const auto s = look_at(own.reshape({own.dim() < 2 ? 1 : own.numel() / own.size(-1), -1}), limits);
  constexpr int64_t kCodes = 16;
  if (s.constant() || s.sorted || s.descending || s.distinct || s.sum || s.high - s.low < kCodes)
    return false;
  const auto drawn = [&] {
    return at::rand(own.sizes(), generator, at::TensorOptions().dtype(c10::kDouble));
  };
  const auto larger = own.to(c10::kDouble).mul(drawn().mul(kOctaves).exp2());
  const auto [least, most] = range_of_type(type);
  const bool keeps_sign = least >= 0 || (use.reduced && s.low >= 0);
  const auto numbers = far          ? near_limit_rows(own, most, keeps_sign, generator)
                       : keeps_sign ? larger
                                    : at::where(drawn().lt(0.5), larger.neg(), larger);
  const auto made = numbers.round().clamp(least, most).to(c10::kLong);
  if (made.equal(own)) return false;
  tensor.copy_(made);
  return true;
}

}  // namespace

namespace {

// Marks stay where they are; where the forward itself asks for them, some leave their place, and some come.
at::Tensor marked_again(const at::Tensor& flat, const at::Tensor& made, InputDistribution kind,
                        const IntegerUse& use, at::Generator generator) {
  constexpr double kLeave = 0.5, kCome = 0.125;
  const auto marks = flat.lt(0);
  const int64_t mark = flat.min().item().toLong();
  const bool one = all_true(flat.eq(mark).logical_or(marks.logical_not()));
  if (kind != InputDistribution::kRedrawn || !one || !use.marks.contains(mark))
    return at::where(marks, flat, made);
  const auto drawn = at::rand(flat.sizes(), generator, at::TensorOptions().dtype(c10::kFloat));
  auto now = at::where(marks, drawn.ge(kLeave), drawn.lt(kCome));
  now.reshape({-1})[made.reshape({-1}).argmax()] = false;  // one place holds a number
  return at::where(now, at::full_like(flat, mark), made);
}

}  // namespace

bool redraw_integers(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                     const IntegerLimits& limits, at::Generator generator) {
  const auto type = tensor.scalar_type();
  if (!c10::isIntegralType(type, true) || tensor.numel() == 0) return false;
  if (kind == InputDistribution::kFlipped || kind == InputDistribution::kFar)
    return widen_numbers(tensor, kind, use, limits, generator);
  if (type == c10::kBool) return redraw_truths(tensor, kind, generator);
  if (const auto drawn = redraw_unstructured(tensor, kind, use, limits, generator)) return *drawn;
  const bool looked = tensor.numel() <= kMaxSearched;
  const auto own = tensor.to(at::kCPU, c10::kLong);
  const auto flat =
      own.reshape({tensor.dim() < 2 ? 1 : tensor.numel() / std::max<int64_t>(tensor.size(-1), 1), -1});
  const auto marks = flat.lt(0);
  const bool marked = marks.any().item().toBool() && !all_true(marks);
  if (!looked && marked) return false;
  Sample sample = look_at(marked ? flat.clamp_min(0) : flat, limits);
  if (marked) {  // values among marks have no order
    sample = Sample{};
    sample.rows = flat, sample.high = flat.max().item().toLong();
    sample.low = flat.masked_select(flat.ge(0)).min().item().toLong();
  }
  const auto made = redraw_rows(sample, kind, use, limits, generator);
  if (!made) return false;
  const auto kept = marked ? marked_again(flat, *made, kind, use, generator) : *made;
  if (kept.equal(flat)) return false;
  tensor.copy_(kept.reshape(own.sizes()));
  return true;
}

bool is_banded(const at::Tensor& tensor) {
  auto t = tensor.detach();
  while (t.dim() > 2 && t.size(0) == 1) t = t.squeeze(0);
  if (t.dim() != 2 || t.size(0) < 2 || t.size(1) < 2) return false;
  const auto low = t.min(), high = t.max();
  if (!all_true(t.eq(low).logical_or(t.eq(high)))) return false;
  const auto rows = t.size(0), columns = t.size(1);
  return t.narrow(0, 0, rows - 1)
      .narrow(1, 0, columns - 1)
      .equal(t.narrow(0, 1, rows - 1).narrow(1, 1, columns - 1));
}

}  // namespace nereid::replay
