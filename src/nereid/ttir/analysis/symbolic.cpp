#include "nereid/ttir/analysis/symbolic.h"

#include <algorithm>
#include <numeric>

namespace nereid::ttir::symbolic {
namespace {

constexpr size_t kMaxAtoms = 20000, kMaxConjunctions = 24, kMaxTerms = 64;
constexpr int kMaxDepth = 6;  // of bounds through quotients

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw TooComplex{"a number leaves 64 bits"};
  return r;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw TooComplex{"a number leaves 64 bits"};
  return r;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

Expr plus(const Expr& a, const Expr& b, int64_t scale) {
  Expr r;
  r.base = add(a.base, multiply(b.base, scale));
  if (scale == 0) return a;
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].first < b.terms[j].first)) {
      r.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].first < a.terms[i].first) {
      r.terms.emplace_back(b.terms[j].first, multiply(b.terms[j].second, scale));
      ++j;
    } else {
      const int64_t sum = add(a.terms[i].second, multiply(b.terms[j].second, scale));
      if (sum != 0) r.terms.emplace_back(a.terms[i].first, sum);
      ++i, ++j;
    }
  }
  if (r.terms.size() > kMaxTerms) throw TooComplex{"an expression of too many terms"};
  return r;
}

Expr times(const Expr& a, int64_t factor) { return plus(number(0), a, factor); }

AtomId Atoms::add(Atom atom) {
  if (atoms_.size() >= kMaxAtoms) throw TooComplex{"too many variables"};
  atoms_.push_back(std::move(atom));
  return static_cast<AtomId>(atoms_.size() - 1);
}

Expr Atoms::variable(AtomKind kind, int index, int64_t size) {
  if (size <= 1) return number(0);
  return {0, {{add({.kind = kind, .index = index, .bounds = {0, size - 1}}), 1}}};
}

Expr Atoms::lane(int dim, int64_t size) {
  if (size <= 1) return number(0);
  const auto found = lanes_.find({dim, size});
  if (found != lanes_.end()) return {0, {{found->second, 1}}};
  Expr e = variable(AtomKind::kLane, dim, size);
  lanes_[{dim, size}] = e.terms[0].first;
  return e;
}

Expr Atoms::symbol() {
  constexpr int64_t kFar = int64_t{1} << 46;
  return {0, {{add({.kind = AtomKind::kSymbol, .index = 0, .bounds = {-kFar, kFar}}), 1}}};
}

Bounds Atoms::bounds(const Expr& e, int depth) const {
  Bounds b{e.base, e.base};
  for (const auto& [id, factor] : e.terms) {
    const Bounds& v = (*this)[id].bounds;
    const int64_t one = multiply(v.low, factor), other = multiply(v.high, factor);
    b.low = symbolic::add(b.low, std::min(one, other));
    b.high = symbolic::add(b.high, std::max(one, other));
  }
  if (depth >= kMaxDepth) return b;
  // m * (inner - divisor * quotient) is between 0 and m * (divisor - 1).
  for (const auto& [id, factor] : e.terms) {
    const Atom& atom = (*this)[id];
    if (atom.kind != AtomKind::kQuotient || factor % atom.divisor != 0) continue;
    const int64_t m = -factor / atom.divisor;
    Expr rest = plus(e, atom.inner, -m);
    rest = plus(rest, Expr{0, {{id, 1}}}, -factor);
    if (rest.terms.size() >= e.terms.size()) continue;
    const Bounds r = bounds(rest, depth + 1);
    const int64_t span = multiply(m, atom.divisor - 1);
    b.low = std::max(b.low, symbolic::add(r.low, std::min<int64_t>(span, 0)));
    b.high = std::min(b.high, symbolic::add(r.high, std::max<int64_t>(span, 0)));
  }
  return b;
}

Expr Atoms::quotient(const Expr& e, int64_t divisor) {
  if (divisor == 1) return e;
  Expr outside, inside;
  outside.base = floor_div(e.base, divisor);
  inside.base = e.base - outside.base * divisor;
  int64_t common = divisor;
  for (const auto& [id, factor] : e.terms) {
    const int64_t whole = floor_div(factor, divisor) * (factor % divisor == 0);
    if (whole != 0) {
      outside.terms.emplace_back(id, whole);
    } else {
      inside.terms.emplace_back(id, factor);
      common = std::gcd(common, factor);
    }
  }
  if (inside.constant()) return outside;
  if (common > 1) {
    for (auto& [id, factor] : inside.terms) factor /= common;
    inside.base = floor_div(inside.base, common);
    return plus(outside, quotient(inside, divisor / common));
  }
  if (inside.terms.size() == 1 && inside.terms[0].second == 1) {
    const Atom atom = (*this)[inside.terms[0].first];
    if (atom.kind == AtomKind::kQuotient) {  // of a quotient: one by the product
      const Expr inner = plus(atom.inner, number(multiply(inside.base, atom.divisor)));
      return plus(outside, quotient(inner, multiply(atom.divisor, divisor)));
    }
  }
  const Bounds b = bounds(inside);
  const Bounds q{floor_div(b.low, divisor), floor_div(b.high, divisor)};
  if (q.low == q.high) return plus(outside, number(q.low));
  const auto found = quotients_.find({inside, divisor});
  AtomId id;
  if (found != quotients_.end()) {
    id = found->second;
  } else {
    id = add({.kind = AtomKind::kQuotient, .index = 0, .bounds = q, .inner = inside, .divisor = divisor});
    quotients_[{inside, divisor}] = id;
  }
  return plus(outside, Expr{0, {{id, 1}}});
}

Truth simplified(const Atoms& atoms, Truth t) {
  if (!t.known) return t;
  Truth r;
  for (Conjunction& c : t.any) {
    Conjunction kept;
    bool possible = true;
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    for (Expr& e : c) {
      const Bounds b = atoms.bounds(e);
      if (b.high < 0) possible = false;
      if (b.low < 0) kept.push_back(std::move(e));
    }
    if (possible) r.any.push_back(std::move(kept));
  }
  if (r.any.size() > kMaxConjunctions) return Truth::unknown(false);
  return r;
}

Truth both(const Atoms& atoms, const Truth& a, const Truth& b) {
  if (a.is_never() || b.is_never()) return Truth::never();
  if (!a.known || !b.known) return Truth::unknown((!a.known && a.by_data) || (!b.known && b.by_data));
  Truth r;
  for (const Conjunction& x : a.any)
    for (const Conjunction& y : b.any) {
      r.any.push_back(x);
      r.any.back().insert(r.any.back().end(), y.begin(), y.end());
    }
  return simplified(atoms, std::move(r));
}

Truth negated(const Atoms& atoms, const Truth& a) {
  if (!a.known) return a;
  Truth r = Truth::always();
  for (const Conjunction& c : a.any) {
    Truth none;  // the first k hold, the next does not
    Conjunction before;
    for (const Expr& e : c) {
      Conjunction one = before;
      one.push_back(plus(number(-1), e, -1));
      none.any.push_back(std::move(one));
      before.push_back(e);
    }
    r = both(atoms, r, simplified(atoms, std::move(none)));
    if (!r.known) return r;
  }
  return r;
}

Truth either(const Atoms& atoms, const Truth& a, const Truth& b) {
  if (a.is_always() || b.is_always()) return Truth::always();
  if (!a.known || !b.known) return Truth::unknown((!a.known && a.by_data) || (!b.known && b.by_data));
  Truth r = both(atoms, b, negated(atoms, a));
  if (!r.known) return r;
  r.any.insert(r.any.end(), a.any.begin(), a.any.end());
  return simplified(atoms, std::move(r));
}

}  // namespace nereid::ttir::symbolic
