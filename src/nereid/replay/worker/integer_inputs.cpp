#include "nereid/replay/worker/integer_inputs.h"

#include <algorithm>
#include <optional>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr int64_t kMostLooked = int64_t{1} << 22;  // elements: a larger tensor's structure is not looked for

const auto kLong = at::TensorOptions().dtype(c10::kLong);

bool all(const at::Tensor& truths) { return truths.all().item().toBool(); }

// Rows of numbers that mean something: what is negative among others that are not marks a place, and stays.
struct Sample {
  at::Tensor rows;  // i64[rows, columns]
  int64_t low = 0, high = 0;
  bool sorted = false, descending = false, strict = false;  // in every row
  bool distinct = false, all_distinct = false;              // in every row; in the whole tensor
  bool permutation = false;                                 // all_distinct, of 0 to n - 1
  int64_t factor = 1;                                       // common to all numbers of sorted rows
  std::optional<int64_t> sum = {};                          // of every row, where that is a size

  bool constant() const { return low == high; }
  int64_t columns() const { return rows.size(1); }
};

// A power of two, of at most 16: what alignment asks for.
int64_t common_factor(const at::Tensor& numbers) {
  int64_t factor = 16;
  while (factor > 1 && !all(numbers.remainder(factor).eq(0))) factor /= 2;
  return factor;
}

bool distinct_in_rows(const at::Tensor& rows) {
  if (rows.size(1) < 2) return true;
  const auto sorted = std::get<0>(rows.sort(1));
  return all(sorted.diff(1, 1).ne(0));
}

Sample look_at(const at::Tensor& rows, const std::vector<int64_t>& sizes) {
  Sample s;
  s.rows = rows;
  const auto [low, high] = rows.aminmax();
  s.low = low.item().toLong(), s.high = high.item().toLong();
  if (s.columns() < 2 || s.constant()) {
    s.distinct = s.constant() && s.columns() == 1 && rows.size(0) > 1 ? false : s.columns() == 1;
    s.all_distinct = false;
    return s;
  }
  const auto steps = rows.diff(1, 1);
  s.sorted = all(steps.ge(0)), s.descending = !s.sorted && all(steps.le(0));
  s.strict = all(steps.ne(0)) && (s.sorted || s.descending);
  s.distinct = s.strict || distinct_in_rows(rows);
  s.all_distinct = s.distinct && (rows.size(0) == 1 || distinct_in_rows(rows.reshape({1, -1})));
  s.permutation = s.all_distinct && s.low == 0 && s.high == rows.numel() - 1;
  if (s.sorted || s.descending) s.factor = common_factor(rows);
  const auto sums = rows.sum(1);
  const auto sum = sums.reshape({-1})[0].item().toLong();
  if (s.low >= 0 && s.high > 1 && all(sums.eq(sum)) && std::ranges::find(sizes, sum) != sizes.end())
    s.sum = sum;
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

// Between the ends, which stay: they are what offsets begin and end with.
std::optional<at::Tensor> redraw_sorted(const Sample& s, InputKind kind, const IntegerUse& use,
                                        at::Generator generator) {
  const int64_t columns = s.columns();
  const auto first = s.rows.narrow(1, 0, 1), last = s.rows.narrow(1, columns - 1, 1);
  const int64_t low = first.min().item().toLong(), high = last.max().item().toLong();
  // Rows of one run of numbers (positions): there is room only beyond it.
  if (s.strict && high - low == columns - 1) {
    if (!use.indexes() || use.obscure || use.bound <= s.high + 1 || s.low < 0) return std::nullopt;
    if (kind == InputKind::kLowest) return std::nullopt;
    if (kind == InputKind::kHighest) return s.rows.add(use.bound - 1 - s.high);
    return sorted_rows(s.rows.size(0), columns, 0, use.bound - 1, true, generator);
  }
  if (columns < 3 || s.rows.size(0) > 1) {
    if (!all(first.eq(low)) || !all(last.eq(high))) return std::nullopt;  // ends of their own
    if (columns < 3) return std::nullopt;
  }
  const int64_t from = low / s.factor, to = high / s.factor, step = s.strict ? 1 : 0;
  const auto places = at::arange(columns, kLong).mul(step).expand({s.rows.size(0), columns});
  at::Tensor made = kind == InputKind::kLowest ? places.add(from)
                    : kind == InputKind::kHighest
                        ? places.sub(step * (columns - 1)).add(to)
                        : sorted_rows(s.rows.size(0), columns, from, to, s.strict, generator);
  made = made.mul(s.factor).clone();
  made.narrow(1, 0, 1).copy_(first), made.narrow(1, columns - 1, 1).copy_(last);
  if (s.strict && !all(made.diff(1, 1).gt(0))) return std::nullopt;
  return made;
}

// Counts that add up to a size: some of one goes to another.
std::optional<at::Tensor> redraw_counts(const Sample& s, InputKind kind, at::Generator generator) {
  if (kind != InputKind::kRedrawn || s.columns() < 2) return std::nullopt;
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

struct Domain {
  int64_t low, high;
};
Domain domain_of(const Sample& s, const IntegerUse& use) {
  if (use.indexes() && !use.obscure && s.low >= 0 && s.high < use.bound) return {0, use.bound - 1};
  const bool free = !use.obscure && !use.indexes();
  if (s.low >= 0 && s.high <= 1 && (free || !s.constant())) return {0, 1};  // flags, masks
  if (s.constant() && free && s.low > 1) return {1, s.low};                 // lengths, counts, times
  return {s.low, s.high};
}

std::optional<at::Tensor> redraw_rows(const Sample& s, InputKind kind, const IntegerUse& use,
                                      at::Generator generator) {
  const bool flags = s.low == 0 && s.high == 1 && !use.indexes() && !use.obscure;
  if (s.descending && !flags && !s.permutation) {
    Sample turned = s;
    turned.rows = s.rows.flip(1), turned.descending = false, turned.sorted = true;
    const auto made = redraw_sorted(turned, kind, use, generator);
    return made ? std::optional(made->flip(1)) : std::nullopt;
  }
  if (s.sorted && !flags) return redraw_sorted(s, kind, use, generator);
  if (s.sum && !flags) return redraw_counts(s, kind, generator);
  const auto [low, high] = domain_of(s, use);
  const int64_t rows = s.rows.size(0), columns = s.columns();
  if (s.distinct && columns > 1 && !flags) {
    const bool whole = s.all_distinct && rows > 1;
    const int64_t r = whole ? 1 : rows, c = whole ? rows * columns : columns;
    const int64_t to = s.permutation ? s.high : high, from = s.permutation ? 0 : low;
    if (to - from < c - 1) return std::nullopt;
    const auto places = at::arange(c, kLong).expand({r, c});
    const auto made = kind == InputKind::kLowest ? places.add(from)
                      : kind == InputKind::kHighest
                          ? places.neg().add(to)
                          : shuffled_in_rows(sorted_rows(r, c, from, to, true, generator), generator);
    return made.reshape({rows, columns});
  }
  if (low == high) return std::nullopt;
  if (kind == InputKind::kLowest) return at::full_like(s.rows, low);
  if (kind == InputKind::kHighest) return at::full_like(s.rows, high);
  auto made = at::randint(low, high + 1, s.rows.sizes(), generator, kLong);
  if (made.numel() == 1 && made.equal(s.rows)) made = at::full_like(made, s.low > low ? low : high);
  return made;
}

bool redraw_truths(at::Tensor tensor, InputKind kind, at::Generator generator) {
  const auto before = tensor.clone();
  if (kind == InputKind::kLowest)
    tensor.zero_();
  else if (kind == InputKind::kHighest)
    tensor.fill_(1);
  else if (tensor.numel() == 1)
    tensor.logical_not_();
  else
    tensor.copy_(at::randint(2, tensor.sizes(), generator, kLong));
  return !tensor.equal(before);
}

}  // namespace

bool redraw_integers(at::Tensor tensor, InputKind kind, const IntegerUse& use,
                     const std::vector<int64_t>& sizes, at::Generator generator) {
  const auto type = tensor.scalar_type();
  if (!c10::isIntegralType(type, true) || tensor.numel() == 0) return false;
  if (type == c10::kBool) return redraw_truths(tensor, kind, generator);
  const bool looked = tensor.numel() <= kMostLooked;
  const auto own = tensor.to(at::kCPU, c10::kLong);
  const auto flat =
      own.reshape({tensor.dim() < 2 ? 1 : tensor.numel() / std::max<int64_t>(tensor.size(-1), 1), -1});
  const auto marks = flat.lt(0);
  const bool marked = marks.any().item().toBool() && !all(marks);
  if (!looked && marked) return false;
  Sample sample = look_at(marked ? flat.clamp_min(0) : flat, sizes);
  if (marked) {  // what stands beside marks has no order
    sample = Sample{};
    sample.rows = flat, sample.high = flat.max().item().toLong();
    sample.low = flat.masked_select(flat.ge(0)).min().item().toLong();
  }
  const auto made = redraw_rows(sample, kind, use, generator);
  if (!made) return false;
  const auto kept = marked ? at::where(marks, flat, *made) : *made;
  if (kept.equal(flat)) return false;
  tensor.copy_(kept.reshape(own.sizes()));
  return true;
}

bool hang_together(const at::Tensor& first, const at::Tensor& second) {
  const auto whole = [](const at::Tensor& t) { return t.to(at::kCPU, c10::kLong).contiguous(); };
  if (first.numel() > kMostLooked || second.numel() > kMostLooked || first.numel() < 2 || second.numel() < 2)
    return false;
  const auto a = whole(first), b = whole(second);
  const auto constant = [](const at::Tensor& t) { return all(t.eq(t.reshape({-1})[0])); };
  if (constant(a) || constant(b)) return false;
  const auto x = a.reshape({-1}), y = b.reshape({-1});
  if (a.sizes() == b.sizes() && (all(a.le(b)) || all(a.ge(b)))) return true;  // begins and ends; equal ones
  if (a.dim() == 1 && b.dim() == 1) {
    const auto sums = x.cumsum(0);
    if (y.numel() == x.numel() && (sums.equal(y) || sums.sub(x).equal(y))) return true;
    if (y.numel() == x.numel() + 1 && y[0].item().toLong() == 0 && sums.equal(y.narrow(0, 1, x.numel())))
      return true;
    if (y.numel() == x.numel() && (x.argsort(0, false).equal(y) || std::get<0>(x.sort()).equal(y)))
      return true;
  }
  if (x.min().item().toLong() >= 0 && x.max().item().toLong() < y.numel() + 1 && b.dim() == 1) {
    const auto counts = x.bincount({}, y.numel());
    if (counts.numel() == y.numel() && counts.equal(y)) return true;
    if (counts.numel() + 1 == y.numel() && counts.cumsum(0).equal(y.narrow(0, 1, counts.numel())))
      return true;
  }
  // Lengths and the mask that they make.
  return a.dim() == 1 && b.dim() == 2 && b.size(0) == a.size(0) &&
         all(at::arange(b.size(1), kLong).lt(a.unsqueeze(1)).eq(b.ne(0)));
}

bool is_banded(const at::Tensor& tensor) {
  auto t = tensor.detach();
  while (t.dim() > 2 && t.size(0) == 1) t = t.squeeze(0);
  if (t.dim() != 2 || t.size(0) < 2 || t.size(1) < 2) return false;
  const auto low = t.min(), high = t.max();
  if (!all(t.eq(low).logical_or(t.eq(high)))) return false;
  const auto rows = t.size(0), columns = t.size(1);
  return t.narrow(0, 0, rows - 1)
      .narrow(1, 0, columns - 1)
      .equal(t.narrow(0, 1, rows - 1).narrow(1, 1, columns - 1));
}

}  // namespace nereid::replay
