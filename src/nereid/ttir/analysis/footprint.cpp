#include "nereid/ttir/analysis/footprint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace nereid::ttir::symbolic {
namespace {

constexpr int64_t kMaxBoxes = 20000, kMaxPartial = 4096, kMaxEnumerated = 64;

// ---- digits: quotients become variables

struct Problem {
  std::vector<AtomId> variables;
  std::vector<Expr> exprs;  // the address, if any, then the constraints
};

void find_innermost(const Atoms& atoms, const Expr& e, std::set<AtomId>& found) {
  for (const auto& [id, factor] : e.terms) {
    if (atoms[id].kind != AtomKind::kQuotient) continue;
    const Expr& inner = atoms[id].inner;
    const bool deeper = std::any_of(inner.terms.begin(), inner.terms.end(), [&](const auto& t) {
      return atoms[t.first].kind == AtomKind::kQuotient;
    });
    if (deeper)
      find_innermost(atoms, inner, found);
    else
      found.insert(id);
  }
}

// The values of e's terms without gaps: their number, or nothing.
std::optional<int64_t> dense_size(const Atoms& atoms, const Expr& e) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (const auto& [id, factor] : e.terms) steps.emplace_back(std::abs(factor), atoms[id].bounds.high + 1);
  std::sort(steps.begin(), steps.end());
  int64_t run = 1;
  for (const auto& [stride, size] : steps) {
    if (stride > run) return std::nullopt;
    run += stride * (size - 1);
  }
  return run;
}

// Replaces the quotients of one inner expression, and the variables that it is made of, by its digits.
class Digits {
 public:
  Digits(Atoms& atoms, const Expr& inner, std::vector<int64_t> divisors)
      : atoms_(atoms), inner_(inner), divisors_(std::move(divisors)) {
    std::sort(divisors_.begin(), divisors_.end());
    for (size_t k = 1; k < divisors_.size(); ++k)
      if (divisors_[k] % divisors_[k - 1] != 0)
        throw TooComplex{"quotients of one number by divisors that are no multiples"};
    const auto size = dense_size(atoms, inner);
    if (!size) throw TooComplex{"a quotient of numbers with gaps"};
    const int64_t low = atoms.bounds(inner).low;
    const int64_t last = divisors_.back();
    shift_ = floor_div(low, last) * last;  // inner = shift + w
    first_ = low - shift_;
    count_ = *size;
    Expr w = number(0);
    int64_t weight = 1;
    for (size_t k = 0; k <= divisors_.size(); ++k) {
      const int64_t next = k < divisors_.size() ? divisors_[k] : 0;
      const int64_t values = next != 0 ? next / weight : (first_ + count_ - 1) / weight + 1;
      const Expr digit = atoms.variable(AtomKind::kDigit, 0, values);
      for (const auto& [id, factor] : digit.terms) variables.push_back(id);
      w = plus(w, digit, weight);
      digits_.push_back(digit);
      weights_.push_back(weight);
      if (next != 0) weight = next;
    }
    value_ = plus(w, number(shift_));
    if (first_ > 0) constraints.push_back(plus(w, number(-first_)));
    if (atoms.bounds(w).high > first_ + count_ - 1)
      constraints.push_back(plus(number(first_ + count_ - 1), w, -1));
  }

  int64_t size() const { return count_; }

  Expr quotient(int64_t divisor) const {
    Expr q = number(shift_ / divisor);
    for (size_t k = 0; k < digits_.size(); ++k)
      if (weights_[k] >= divisor) q = plus(q, digits_[k], weights_[k] / divisor);
    return q;
  }
  bool owns(AtomId id) const {
    return std::any_of(inner_.terms.begin(), inner_.terms.end(),
                       [&](const auto& t) { return t.first == id; });
  }

  Expr rewritten(const Expr& e) {
    Expr sum = number(e.base);
    Expr mine;
    for (const auto& [id, factor] : e.terms) {
      const Atom atom = atoms_[id];
      if (atom.kind == AtomKind::kQuotient) {
        if (atom.inner == inner_)
          sum = plus(sum, quotient(atom.divisor), factor);
        else
          sum = plus(sum, atoms_.quotient(rewritten(atom.inner), atom.divisor), factor);
      } else if (owns(id)) {
        mine.terms.emplace_back(id, factor);
      } else {
        sum = plus(sum, Expr{0, {{id, 1}}}, factor);
      }
    }
    if (mine.terms.empty()) return sum;
    const int64_t m = mine.terms[0].second / inner_.terms[0].second;
    Expr whole = inner_;
    whole.base = 0;
    if (m == 0 || times(whole, m).terms != mine.terms) throw TooComplex{"a number used whole and in parts"};
    return plus(sum, plus(value_, number(-inner_.base)), m);
  }

  std::vector<AtomId> variables;
  Conjunction constraints;

 private:
  Atoms& atoms_;
  const Expr inner_;
  std::vector<int64_t> divisors_, weights_;
  std::vector<Expr> digits_;
  Expr value_;
  int64_t shift_ = 0, first_ = 0, count_ = 0;
};

// `counting`: each point must stay one point.
void replace_quotients(Atoms& atoms, Problem& p, bool counting) {
  for (int round = 0;; ++round) {
    if (round > 32) throw TooComplex{"too many quotients"};
    std::set<AtomId> quotients;
    for (const Expr& e : p.exprs) find_innermost(atoms, e, quotients);
    if (quotients.empty()) return;
    const Expr inner = atoms[*quotients.begin()].inner;
    std::vector<int64_t> divisors;
    for (const AtomId id : quotients)
      if (atoms[id].inner == inner) divisors.push_back(atoms[id].divisor);
    Digits digits(atoms, inner, divisors);
    if (counting) {
      double product = 1;
      for (const auto& [id, factor] : inner.terms) product *= static_cast<double>(atoms[id].bounds.high + 1);
      if (product != static_cast<double>(digits.size()))
        throw TooComplex{"a quotient of numbers that come twice"};
    }
    for (Expr& e : p.exprs) e = digits.rewritten(e);
    std::erase_if(p.variables, [&](AtomId id) { return digits.owns(id); });
    p.variables.insert(p.variables.end(), digits.variables.begin(), digits.variables.end());
    p.exprs.insert(p.exprs.end(), digits.constraints.begin(), digits.constraints.end());
  }
}

// ---- boxes

struct Linear {
  int64_t base = 0;
  std::vector<int64_t> factor;
};
struct Box {
  std::vector<int64_t> low, high;  // both included
};

Linear linear(const Expr& e, const std::vector<AtomId>& variables) {
  Linear l;
  l.base = e.base;
  l.factor.resize(variables.size());
  for (const auto& [id, factor] : e.terms) {
    const auto at = std::find(variables.begin(), variables.end(), id);
    if (at == variables.end()) throw TooComplex{"a variable of another place"};
    l.factor[static_cast<size_t>(at - variables.begin())] = factor;
  }
  return l;
}

Bounds bounds_of(const Linear& l, const Box& box, size_t without = SIZE_MAX) {
  Bounds b{l.base, l.base};
  for (size_t v = 0; v < l.factor.size(); ++v) {
    if (l.factor[v] == 0 || v == without) continue;
    const int64_t one = l.factor[v] * box.low[v], other = l.factor[v] * box.high[v];
    b.low += std::min(one, other);
    b.high += std::max(one, other);
  }
  return b;
}

// The values of v in the box for which factor * v + rest >= 0.
Bounds solutions(int64_t factor, int64_t rest, int64_t low, int64_t high) {
  if (factor > 0) return {std::max(low, -floor_div(rest, factor)), high};
  return {low, std::min(high, floor_div(rest, -factor))};
}

// Splits a box until each constraint holds everywhere in a part, or nowhere.
class Splitter {
 public:
  Splitter(const std::vector<Linear>& constraints, std::vector<Box>& out)
      : constraints_(constraints), out_(out) {}

  void split(Box box) {
    if (++steps_ > 8 * kMaxBoxes) throw TooComplex{"too many cases"};
    for (size_t v = 0; v < box.low.size(); ++v)
      if (box.low[v] > box.high[v]) return;
    const Linear* open = nullptr;
    for (const Linear& c : constraints_) {
      const Bounds b = bounds_of(c, box);
      if (b.high < 0) return;
      if (b.low < 0 && open == nullptr) open = &c;
    }
    if (open == nullptr) {
      if (out_.size() >= static_cast<size_t>(kMaxBoxes)) throw TooComplex{"too many boxes"};
      out_.push_back(std::move(box));
      return;
    }
    // By the variable that leaves the fewest values undecided.
    size_t best = SIZE_MAX;
    Bounds possible{}, certain{};
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (size_t v = 0; v < open->factor.size(); ++v) {
      const int64_t f = open->factor[v];
      if (f == 0 || box.low[v] == box.high[v]) continue;
      const Bounds rest = bounds_of(*open, box, v);
      const Bounds may = solutions(f, rest.high, box.low[v], box.high[v]),
                   must = solutions(f, rest.low, box.low[v], box.high[v]);
      const int64_t partial = (may.high - may.low + 1) - std::max<int64_t>(0, must.high - must.low + 1);
      if (partial < fewest) fewest = partial, best = v, possible = may, certain = must;
    }
    if (best == SIZE_MAX) throw TooComplex{"a constraint without variables"};
    if (fewest > kMaxPartial) throw TooComplex{"too many cases"};
    const auto part = [&](int64_t low, int64_t high) {
      if (low > high) return;
      Box b = box;
      b.low[best] = low, b.high[best] = high;
      split(std::move(b));
    };
    if (certain.low > certain.high) certain = {possible.high + 1, possible.high};
    part(certain.low, certain.high);
    for (int64_t v = possible.low; v < certain.low; ++v) part(v, v);
    for (int64_t v = certain.high + 1; v <= possible.high; ++v) part(v, v);
  }

 private:
  const std::vector<Linear>& constraints_;
  std::vector<Box>& out_;
  int64_t steps_ = 0;
};

std::vector<Box> boxes_of(const Atoms& atoms, const std::vector<AtomId>& variables,
                          const std::vector<Linear>& constraints) {
  Box all;
  for (const AtomId id : variables) {
    all.low.push_back(0);
    all.high.push_back(atoms[id].bounds.high);
  }
  std::vector<Box> boxes;
  Splitter(constraints, boxes).split(std::move(all));
  return boxes;
}

// A variable that the address does not depend on, and that helps all its constraints in one direction, helps
// most at its end.
void settle(const Atoms& atoms, const std::vector<AtomId>& variables, const Linear& address,
            std::vector<Linear>& constraints) {
  for (size_t v = 0; v < variables.size(); ++v) {
    if (address.factor[v] != 0) continue;
    bool up = false, down = false;
    for (const Linear& c : constraints) up |= c.factor[v] > 0, down |= c.factor[v] < 0;
    if (up && down) continue;
    for (Linear& c : constraints) {
      if (up) c.base += c.factor[v] * atoms[variables[v]].bounds.high;
      c.factor[v] = 0;
    }
  }
}

// ---- lattices

struct Term {
  int64_t stride = 0, size = 0;
};

// Appends the image of low + sum of stride * [0, size), each a run of `bytes`.
void add_image(int64_t low, std::vector<Term> terms, int64_t bytes, std::vector<Lattice>& out,
               int depth = 0) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.stride < b.stride; });
  Lattice l{low, bytes, {}};
  int64_t span = bytes;
  for (size_t k = 0; k < terms.size(); ++k) {
    const auto [stride, size] = terms[k];
    if (l.steps.empty() && stride <= l.run) {
      l.run += stride * (size - 1);
    } else if (!l.steps.empty() && stride % l.steps.back().stride == 0 &&
               stride / l.steps.back().stride <= l.steps.back().size) {
      l.steps.back().size += stride / l.steps.back().stride * (size - 1);
    } else if (l.steps.empty() || stride >= span) {
      l.steps.push_back({stride, size});
    } else {  // neither adjacent nor apart: one value of the smaller after the other
      size_t least = k;
      for (size_t j = 0; j < k; ++j)
        if (terms[j].stride > bytes && terms[j].size < terms[least].size) least = j;
      const Term taken = terms[least];
      if (taken.size > kMaxEnumerated || depth > 2) throw TooComplex{"strides that overlap"};
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(least));
      for (int64_t i = 0; i < taken.size; ++i)
        add_image(low + i * taken.stride, terms, bytes, out, depth + 1);
      return;
    }
    span += stride * (size - 1);
  }
  std::reverse(l.steps.begin(), l.steps.end());
  if (out.size() >= static_cast<size_t>(kMaxBoxes)) throw TooComplex{"too many pieces"};
  out.push_back(std::move(l));
}

}  // namespace

double Lattice::bytes() const {
  double b = static_cast<double>(run);
  for (const Step& s : steps) b *= static_cast<double>(s.size);
  return b;
}
int64_t Lattice::high() const {
  int64_t h = low + run;
  for (const Step& s : steps) h += s.stride * (s.size - 1);
  return h;
}

double count_points(Atoms& atoms, const std::vector<AtomId>& variables, const Conjunction& where) {
  Problem p{variables, where};
  replace_quotients(atoms, p, /*counting=*/true);
  std::vector<Linear> constraints;
  for (const Expr& e : p.exprs) constraints.push_back(linear(e, p.variables));
  double points = 0;
  for (const Box& box : boxes_of(atoms, p.variables, constraints)) {
    double one = 1;
    for (size_t v = 0; v < box.low.size(); ++v) one *= static_cast<double>(box.high[v] - box.low[v] + 1);
    points += one;
  }
  return points;
}

std::vector<Lattice> footprint(Atoms& atoms, const std::vector<AtomId>& variables, const Expr& address,
                               int64_t bytes, const Conjunction& where) {
  Problem p{variables, {address}};
  p.exprs.insert(p.exprs.end(), where.begin(), where.end());
  replace_quotients(atoms, p, /*counting=*/false);
  const Linear a = linear(p.exprs[0], p.variables);
  std::vector<Linear> constraints;
  for (size_t k = 1; k < p.exprs.size(); ++k) constraints.push_back(linear(p.exprs[k], p.variables));
  settle(atoms, p.variables, a, constraints);
  std::vector<Lattice> found;
  std::set<std::vector<std::pair<int64_t, int64_t>>> seen;  // what boxes are to the address
  for (const Box& box : boxes_of(atoms, p.variables, constraints)) {
    int64_t low = a.base;
    std::vector<Term> terms;
    std::vector<std::pair<int64_t, int64_t>> key;
    for (size_t v = 0; v < a.factor.size(); ++v) {
      if (a.factor[v] == 0) continue;
      key.emplace_back(box.low[v], box.high[v]);
      low += a.factor[v] * (a.factor[v] > 0 ? box.low[v] : box.high[v]);
      if (box.high[v] > box.low[v]) terms.push_back({std::abs(a.factor[v]), box.high[v] - box.low[v] + 1});
    }
    if (seen.insert(key).second) add_image(low, std::move(terms), bytes, found);
  }
  return found;
}

}  // namespace nereid::ttir::symbolic
