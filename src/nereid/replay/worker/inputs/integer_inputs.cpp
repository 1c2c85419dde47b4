#include "nereid/replay/worker/inputs/integer_inputs.h"

#include <algorithm>
#include <optional>

#include "nereid/replay/worker/inputs/inputs.h"
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

Sample look_at(const at::Tensor& rows, const IntegerLimits& limits) {
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
  const auto is_one_of = [&](const std::vector<int64_t>& known) {
    return std::ranges::find(known, sum) != known.end();
  };
  if (s.low >= 0 && s.high > 1 && all(sums.eq(sum)) && (is_one_of(limits.sizes) || is_one_of(limits.numbers)))
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

// The smallest of `numbers` that is at least `least`, where there is one.
std::optional<int64_t> smallest_from(const std::vector<int64_t>& numbers, int64_t least) {
  std::optional<int64_t> found;
  for (const auto n : numbers)
    if (n >= least && (!found || n < *found)) found = n;
  return found;
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
    return sorted_rows(s.rows.size(0), columns, 0, use.bound - 1, true, generator);
  }
  if (columns < 3 || s.rows.size(0) > 1) {
    if (!all(first.eq(low)) || !all(last.eq(high))) return std::nullopt;  // ends of their own
    if (columns < 3) return std::nullopt;
  }
  const int64_t from = low / s.factor, to = high / s.factor, step = s.strict ? 1 : 0;
  const auto places = at::arange(columns, kLong).mul(step).expand({s.rows.size(0), columns});
  at::Tensor made = kind == InputDistribution::kLowest ? places.add(from)
                    : kind == InputDistribution::kHighest
                        ? places.sub(step * (columns - 1)).add(to)
                        : sorted_rows(s.rows.size(0), columns, from, to, s.strict, generator);
  made = made.mul(s.factor).clone();
  made.narrow(1, 0, 1).copy_(first), made.narrow(1, columns - 1, 1).copy_(last);
  const auto step_now = std::max<int64_t>(s.rows.diff(1, 1).max().item().toLong(), 1);
  const auto longest = smallest_from(limits.numbers, step_now);
  if (longest && *longest < high - low) shorten_steps(made, *longest / s.factor * s.factor);
  if (s.strict && !all(made.diff(1, 1).gt(0))) return std::nullopt;
  return made;
}

// Counts that add up to a size: some of one goes to another.
std::optional<at::Tensor> redraw_counts(const Sample& s, InputDistribution kind, at::Generator generator) {
  if (kind != InputDistribution::kRedrawn || s.columns() < 2) return std::nullopt;
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
Domain domain_of(const Sample& s, const IntegerUse& use, const IntegerLimits& limits) {
  if (use.indexes() && !use.obscure && s.low >= 0 && s.high < use.bound) {
    const auto most = smallest_from(limits.numbers, std::max<int64_t>(s.high, 1));
    return {0, std::min(use.bound - 1, most ? std::max(*most - 1, s.high) : use.bound - 1)};
  }
  const bool free = !use.obscure && !use.indexes();
  if (s.low >= 0 && s.high <= 1 && (free || !s.constant())) return {0, 1};  // flags, masks
  if (s.constant() && free && s.low > 1) return {1, s.low};                 // lengths, counts, times
  return {s.low, s.high};
}

std::optional<at::Tensor> redraw_rows(const Sample& s, InputDistribution kind, const IntegerUse& use,
                                      const IntegerLimits& limits, at::Generator generator) {
  const bool flags = s.low == 0 && s.high == 1 && !use.indexes() && !use.obscure;
  if (s.descending && !flags && !s.permutation) {
    Sample turned = s;
    turned.rows = s.rows.flip(1), turned.descending = false, turned.sorted = true;
    const auto made = redraw_sorted(turned, kind, use, limits, generator);
    return made ? std::optional(made->flip(1)) : std::nullopt;
  }
  if (s.sorted && !flags) return redraw_sorted(s, kind, use, limits, generator);
  if (s.sum && !flags) return redraw_counts(s, kind, generator);
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
  auto made = at::randint(low, high + 1, s.rows.sizes(), generator, kLong);
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
  else if (tensor.is_cpu())
    tensor.copy_(at::randint(2, tensor.sizes(), generator, kLong));
  else
    tensor.random_(0, 2, generator_on(tensor, generator));
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
  if (all(steps.ge(0)) || all(steps.le(0))) return false;
  const auto sums = some.sum(1, false, c10::kLong).to(at::kCPU);
  if (!all(sums.eq(sums[0]))) return true;
  const auto sum = sums[0].item().toLong();
  const auto is_one_of = [sum](const std::vector<int64_t>& known) {
    return std::ranges::find(known, sum) != known.end();
  };
  return !is_one_of(limits.sizes) && !is_one_of(limits.numbers);
}

// A large tensor without structure is drawn anew where it lies. Nullopt: it has to be looked at as a whole.
std::optional<bool> redraw_unstructured(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                                        const IntegerLimits& limits, const at::Generator& generator) {
  if (tensor.numel() <= kMostLooked || !tensor.is_contiguous()) return std::nullopt;
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

}  // namespace

bool redraw_integers(at::Tensor tensor, InputDistribution kind, const IntegerUse& use,
                     const IntegerLimits& limits, at::Generator generator) {
  const auto type = tensor.scalar_type();
  if (!c10::isIntegralType(type, true) || tensor.numel() == 0) return false;
  if (type == c10::kBool) return redraw_truths(tensor, kind, generator);
  if (const auto drawn = redraw_unstructured(tensor, kind, use, limits, generator)) return *drawn;
  const bool looked = tensor.numel() <= kMostLooked;
  const auto own = tensor.to(at::kCPU, c10::kLong);
  const auto flat =
      own.reshape({tensor.dim() < 2 ? 1 : tensor.numel() / std::max<int64_t>(tensor.size(-1), 1), -1});
  const auto marks = flat.lt(0);
  const bool marked = marks.any().item().toBool() && !all(marks);
  if (!looked && marked) return false;
  Sample sample = look_at(marked ? flat.clamp_min(0) : flat, limits);
  if (marked) {  // values among marks have no order
    sample = Sample{};
    sample.rows = flat, sample.high = flat.max().item().toLong();
    sample.low = flat.masked_select(flat.ge(0)).min().item().toLong();
  }
  const auto made = redraw_rows(sample, kind, use, limits, generator);
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

namespace {

// How one input follows from another; `sample` has the other's shape, and its numbers so far.
struct Rule {
  enum class Of { kNumbers, kSums, kPlaces } of{};  // kPlaces: what is counted are indices into the other
  at::Tensor (*follow)(const at::Tensor& from, const at::Tensor& sample);
};
const Rule kRules[] = {
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return x; }},
    {Rule::Of::kSums, [](const at::Tensor& x, const at::Tensor&) { return x.cumsum(0); }},
    {Rule::Of::kSums, [](const at::Tensor& x, const at::Tensor&) { return x.cumsum(0).sub(x); }},
    {Rule::Of::kSums,
     [](const at::Tensor& x, const at::Tensor&) { return at::cat({at::zeros({1}, kLong), x.cumsum(0)}); }},
    {Rule::Of::kNumbers,  // ends of begins
     [](const at::Tensor& x, const at::Tensor& y) { return at::cat({x.slice(0, 1), y.slice(0, -1)}); }},
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return x.slice(0, 1); }},
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return x.slice(0, 0, -1); }},
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return x.diff(); }},
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return x.argsort(0, false); }},
    {Rule::Of::kNumbers, [](const at::Tensor& x, const at::Tensor&) { return std::get<0>(x.sort()); }},
    {Rule::Of::kPlaces, [](const at::Tensor& x, const at::Tensor& y) { return x.bincount({}, y.numel()); }},
    {Rule::Of::kPlaces,
     [](const at::Tensor& x, const at::Tensor& y) {
       return at::cat({at::zeros({1}, kLong), x.bincount({}, y.numel() - 1).cumsum(0)});
     }},
    {Rule::Of::kNumbers,  // a mask of lengths
     [](const at::Tensor& x, const at::Tensor& y) {
       return y.dim() == 2 ? at::arange(y.size(1), kLong).lt(x.unsqueeze(1)).to(c10::kLong) : x;
     }},
};

at::Tensor as_long(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, c10::kLong, false, true).contiguous();
}

// The rule by which `b` follows from `a`; null where there is none.
const Rule* rule_between(const at::Tensor& a, const at::Tensor& b) {
  const bool line = a.dim() == 1;
  const bool places = line && b.dim() == 1 && b.numel() > 1 && a.min().item().toLong() >= 0 &&
                      a.max().item().toLong() < b.numel();
  for (const auto& rule : kRules) {
    if ((!line && &rule != kRules) || (rule.of == Rule::Of::kPlaces && !places)) continue;
    if (const auto made = rule.follow(a, b); made.sizes() == b.sizes() && made.equal(b)) return &rule;
  }
  return nullptr;
}

bool related(const at::Tensor& a, const at::Tensor& b) {
  if (hang_together(a, b) || hang_together(b, a)) return true;
  const auto looked = [](const at::Tensor& t) {
    return t.numel() > 1 && t.numel() <= kMostLooked && t.dim() == 1 && !all(t.eq(t[0]));
  };
  if (!looked(a) || !looked(b)) return false;
  const auto x = as_long(a), y = as_long(b);
  return rule_between(x, y) != nullptr || rule_between(y, x) != nullptr;
}

// A single number that says something of the other tensor.
bool summarizes(int64_t number, const at::Tensor& other) {
  const auto flat = other.reshape({-1});
  const auto highest = flat.max().item().toLong();
  return number == highest || number == highest + 1 || number == flat.sum().item().toLong() ||
         number == flat[-1].item().toLong() || number == flat.diff().max().item().toLong() ||
         number == flat.numel() || number == flat.numel() - 1;
}

// Inputs of one call, of which some say something of others.
class Together {
 public:
  Together(const std::vector<IntegerInput>& inputs, InputDistribution kind, IntegerLimits limits,
           at::Generator generator)
      : inputs_(inputs),
        kind_(kind),
        limits_(std::move(limits)),
        generator_(std::move(generator)),
        related_(inputs.size()),
        done_(inputs.size()) {}

  bool redraw() {
    for (size_t i = 0; i < inputs_.size(); ++i) relate(i);
    bool any = false;
    for (size_t i = 0; i < inputs_.size(); ++i) any |= !done_[i] && redraw_from(i);
    return any;
  }

 private:
  void relate(size_t i) {
    const auto& a = inputs_[i].tensor;
    done_[i] = inputs_[i].fixed || a.numel() == 0;
    const bool single = a.numel() == 1 && a.scalar_type() != c10::kBool;
    if (single) limits_.numbers.push_back(as_long(a).item().toLong());
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const auto& b = inputs_[j].tensor;
      if (i == j) continue;
      if (single && b.numel() > 1 && b.numel() <= kMostLooked && b.scalar_type() != c10::kBool)
        done_[i] = done_[i] || summarizes(limits_.numbers.back(), as_long(b));
      if (related(a, b)) related_[i].push_back(j);
    }
  }

  // Redraws an input from which all that are related to it follow.
  bool redraw_from(size_t i) {
    const auto& root = inputs_[i];
    if (related_[i].empty())
      return done_[i] = redraw_integers(root.tensor, kind_, root.use, limits_, generator_);
    const auto before = as_long(root.tensor);
    std::vector<std::pair<size_t, const Rule*>> followers;
    bool sums = false;
    for (const size_t j : related_[i]) {
      const bool bound = done_[j] || reaches_beyond(j, i);
      const auto* rule = bound ? nullptr : rule_between(before, as_long(inputs_[j].tensor));
      if (rule == nullptr) return false;
      followers.emplace_back(j, rule), sums |= rule->of == Rule::Of::kSums;
    }
    auto limits = limits_;
    const auto total = before.sum();
    if (sums) limits.sizes.push_back(total.item().toLong());
    if (!redraw_integers(root.tensor, kind_, root.use, limits, generator_)) return false;
    const auto now = as_long(root.tensor);
    if (sums && !now.sum().equal(total)) {  // what they add up to would end elsewhere
      root.tensor.copy_(before);
      return false;
    }
    for (const auto& [j, rule] : followers) {
      inputs_[j].tensor.copy_(rule->follow(now, as_long(inputs_[j].tensor)));
      done_[j] = true;
    }
    return done_[i] = true;
  }

  // `j` is related to something that `i` is not.
  bool reaches_beyond(size_t j, size_t i) const {
    return std::ranges::any_of(related_[j], [&](size_t other) {
      return other != i && std::ranges::find(related_[i], other) == related_[i].end();
    });
  }

  const std::vector<IntegerInput>& inputs_;
  const InputDistribution kind_;
  IntegerLimits limits_;
  at::Generator generator_;
  std::vector<std::vector<size_t>> related_;
  std::vector<bool> done_;  // redrawn, or to stay
};

}  // namespace

bool redraw_together(const std::vector<IntegerInput>& inputs, InputDistribution kind, IntegerLimits limits,
                     at::Generator generator) {
  return Together(inputs, kind, std::move(limits), std::move(generator)).redraw();
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
