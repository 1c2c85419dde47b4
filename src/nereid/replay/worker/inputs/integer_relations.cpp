#include <algorithm>
#include <optional>
#include <utility>

#include "nereid/replay/worker/inputs/integer_helpers.h"
#include "nereid/replay/worker/inputs/integer_inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

namespace {

// Ends, begins, or offsets of segments of these lengths.
bool follows_as_sums(const at::Tensor& lengths, const at::Tensor& y) {
  if (lengths.dim() != 1 || y.dim() != 1) return false;
  const auto sums = lengths.cumsum(0);
  if (y.numel() == lengths.numel()) return sums.equal(y) || sums.sub(lengths).equal(y);
  return y.numel() == lengths.numel() + 1 && y[0].item().toLong() == 0 &&
         sums.equal(y.narrow(0, 1, lengths.numel()));
}

}  // namespace

bool are_related(const at::Tensor& first, const at::Tensor& second) {
  const auto whole = [](const at::Tensor& t) { return t.to(at::kCPU, c10::kLong).contiguous(); };
  if (first.numel() > kMaxSearched || second.numel() > kMaxSearched || first.numel() < 2 ||
      second.numel() < 2)
    return false;
  const auto a = whole(first), b = whole(second);
  const auto constant = [](const at::Tensor& t) { return all_true(t.eq(t.reshape({-1})[0])); };
  if (constant(a) && a.dim() == 1 && a.numel() > 2 && a[0].item().toLong() > 1 && follows_as_sums(a, b))
    return true;  // equal lengths
  if (constant(a) || constant(b)) return false;
  const auto x = a.reshape({-1}), y = b.reshape({-1});
  if (a.sizes() == b.sizes() && (all_true(a.le(b)) || all_true(a.ge(b))))
    return true;  // begins and ends; equal ones
  if (a.dim() == 1 && b.dim() == 1) {
    if (follows_as_sums(x, y)) return true;
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
  return a.dim() == 1 && b.dim() == 2 && b.size(0) == a.size(0) && all_true(b.eq(0).logical_or(b.eq(1))) &&
         all_true(at::arange(b.size(1), kLong).lt(a.unsqueeze(1)).eq(b.ne(0)));
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

// The rule by which `b` follows from `a`; null where there is none.
const Rule* rule_between(const at::Tensor& a, const at::Tensor& b) {
  const bool line = a.dim() == 1;
  const bool places = line && b.dim() == 1 && b.numel() > 1 && a.min().item().toLong() >= 0 &&
                      a.max().item().toLong() < b.numel();
  for (const auto& rule : kRules) {
    const bool equal = &rule == std::begin(kRules), mask = &rule == std::end(kRules) - 1;
    if (!equal && !(line && (mask || b.dim() == 1))) continue;
    if (rule.of == Rule::Of::kPlaces && !places) continue;
    if (const auto made = rule.follow(a, b); made.sizes() == b.sizes() && made.equal(b)) return &rule;
  }
  return nullptr;
}

bool related(const at::Tensor& a, const at::Tensor& b) {
  if (are_related(a, b) || are_related(b, a)) return true;
  const auto looked = [](const at::Tensor& t) {
    return t.numel() > 1 && t.numel() <= kMaxSearched && t.dim() == 1 && !all_true(t.eq(t[0]));
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
    if (inputs_[i].use.are_lengths()) limits_.rows.push_back(inputs_[i].use.positions);
    const bool single = a.numel() == 1 && a.scalar_type() != c10::kBool;
    if (single) limits_.numbers.push_back(as_long(a).item().toLong());
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const auto& b = inputs_[j].tensor;
      if (i == j) continue;
      if (single && b.numel() > 1 && b.numel() <= kMaxSearched && b.scalar_type() != c10::kBool)
        done_[i] = done_[i] || summarizes(limits_.numbers.back(), as_long(b));
      if (related(a, b)) related_[i].push_back(j);
    }
  }

  // Redraws an input from which all that are related to it follow.
  bool redraw_from(size_t i) {
    const auto& root = inputs_[i];
    const bool widens = kind_ == InputDistribution::kFlipped || kind_ == InputDistribution::kFar;
    if (widens && !related_[i].empty()) return false;
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
    limits.keeps_sum = sums;
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

}  // namespace nereid::replay
