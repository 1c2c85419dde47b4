// The closed forms against enumeration, on random domains.
#include "nereid/ttir/analysis/footprint.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "nereid/base/deadline.h"

namespace nereid::ttir::symbolic {
namespace {

int64_t evaluated(const Atoms& atoms, const Expr& e, const std::map<AtomId, int64_t>& at) {
  int64_t sum = e.base;
  for (const auto& [id, factor] : e.terms) {
    const Atom& a = atoms[id];
    sum += factor *
           (a.kind == AtomKind::kQuotient ? floor_div(evaluated(atoms, a.inner, at), a.divisor) : at.at(id));
  }
  return sum;
}

// Calls f(values) for all values of the variables.
template <class F>
void for_each_point(const Atoms& atoms, const std::vector<AtomId>& variables, const F& f) {
  std::map<AtomId, int64_t> at;
  const auto next = [&](auto&& self, size_t k) -> void {
    if (k == variables.size()) return f(at);
    for (int64_t v = 0; v <= atoms[variables[k]].bounds.high; ++v) {
      at[variables[k]] = v;
      self(self, k + 1);
    }
  };
  next(next, 0);
}

struct Random {
  std::mt19937 engine;
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
};

struct Case {
  Atoms atoms;
  std::vector<AtomId> variables;
  Expr address = number(0);
  Conjunction where;
};

// A tile's flat index, split by quotients and masked, or plain strides with windows.
Case random_case(unsigned seed) {
  Random r(seed);
  Case c;
  std::vector<Expr> variables;
  for (int64_t k = r.from(1, 4); k > 0; --k) {
    variables.push_back(c.atoms.variable(AtomKind::kLoop, 0, r.from(2, 7)));
    c.variables.push_back(variables.back().terms[0].first);
  }
  Expr flat = number(r.from(0, 3));
  int64_t weight = 1;
  for (const Expr& v : variables) {
    flat = plus(flat, v, weight);
    weight *= c.atoms[v.terms[0].first].bounds.high + 1;
    if (r.from(0, 3) == 0) weight += r.from(0, 2);  // gaps and overlaps
  }
  if (r.from(0, 1) == 0) {
    const int64_t first = r.from(2, 5), second = first * r.from(2, 4);
    c.address = plus(c.atoms.remainder(flat, first), c.atoms.quotient(flat, second), r.from(0, 40));
    if (r.from(0, 1) == 0)
      c.address =
          plus(c.address, c.atoms.remainder(c.atoms.quotient(flat, first), second / first), r.from(-9, 9));
    c.where.push_back(plus(number(r.from(0, weight)), flat, -1));
  } else {
    for (const Expr& v : variables) c.address = plus(c.address, v, r.from(-12, 12));
    for (int64_t k = r.from(0, 2); k > 0; --k) {
      Expr e = number(r.from(-6, 12));
      for (const Expr& v : variables) e = plus(e, v, r.from(-3, 3));
      c.where.push_back(e);
    }
  }
  return c;
}

TEST(Footprint, IsWhatEnumerationFinds) {
  int found = 0, counted = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Case c = random_case(seed);
    std::set<int64_t> bytes;
    double points = 0;
    const int64_t width = 1 << (seed % 3);
    for_each_point(c.atoms, c.variables, [&](const std::map<AtomId, int64_t>& at) {
      for (const Expr& e : c.where)
        if (evaluated(c.atoms, e, at) < 0) return;
      ++points;
      for (int64_t b = 0; b < width; ++b) bytes.insert(evaluated(c.atoms, c.address, at) * width + b);
    });
    try {
      EXPECT_EQ(count_points(c.atoms, c.variables, c.where), points) << seed;
      ++counted;
    } catch (const TooComplex&) {
    }
    try {
      const auto between =
          distinct_bytes(footprint(c.atoms, c.variables, times(c.address, width), width, c.where));
      EXPECT_LE(between.low, static_cast<double>(bytes.size())) << seed;
      EXPECT_GE(between.high, static_cast<double>(bytes.size())) << seed;
      found += between.low == between.high;
    } catch (const TooComplex&) {
    }
  }
  EXPECT_GT(counted, 2500);
  EXPECT_GT(found, 2500);
}

TEST(Footprint, TakesNoTimeOnLargeDomains) {
  Atoms atoms;
  const Expr row = atoms.variable(AtomKind::kProgram, 0, 1 << 30), lane = atoms.lane(0, 1024);
  const std::vector<AtomId> variables = {row.terms[0].first, lane.terms[0].first};
  const Expr flat = plus(lane, row, 1024);
  const int64_t n = (int64_t{1} << 40) - 777;
  const double before = processor_seconds();
  // Of each row of 1000 in a storage with rows of 1024 elements: (flat / 1000) * 1024 + flat % 1000.
  const Expr address = plus(atoms.remainder(flat, 1000), atoms.quotient(flat, 1000), 1024);
  const Conjunction where = {plus(number(n - 1), flat, -1)};
  const auto bytes = distinct_bytes(footprint(atoms, variables, times(address, 4), 4, where));
  EXPECT_EQ(bytes.low, 4.0 * static_cast<double>(n));
  EXPECT_EQ(bytes.high, 4.0 * static_cast<double>(n));
  EXPECT_EQ(count_points(atoms, variables, where), static_cast<double>(n));
  EXPECT_LT(processor_seconds() - before, 2);  // of 2^40 elements one by one: days
}

TEST(Footprint, OfOverlappingPartsCountsOnce) {
  const auto rows = [](int64_t low, int64_t run) { return Lattice{low, run, {{1024, 100}}}; };
  EXPECT_EQ(distinct_bytes({rows(0, 512), rows(256, 512)}).high, 100 * 768);
  EXPECT_EQ(distinct_bytes({rows(0, 512), rows(512, 512)}).high, 100 * 1024);
  EXPECT_EQ(distinct_bytes({rows(0, 512), {0, 4096, {}}}).high, 4096 + 96 * 512);
  EXPECT_EQ(distinct_bytes({rows(900, 200), {0, 1024, {}}}).high, 1024 + 76 + 99 * 200);
}

TEST(Expressions, QuotientsAreInNormalForm) {
  Atoms atoms;
  const Expr p = atoms.variable(AtomKind::kProgram, 0, 100), i = atoms.lane(0, 64);
  const Expr flat = plus(i, p, 64);
  EXPECT_EQ(atoms.quotient(flat, 64), p);
  EXPECT_EQ(atoms.remainder(flat, 64), i);
  EXPECT_EQ(atoms.quotient(atoms.quotient(flat, 6), 10), atoms.quotient(flat, 60));
  EXPECT_EQ(atoms.quotient(plus(flat, number(640)), 10), plus(atoms.quotient(flat, 10), number(64)));
  EXPECT_EQ(atoms.bounds(atoms.remainder(flat, 7)).high, 6);
  EXPECT_EQ(atoms.bounds(atoms.remainder(flat, 7)).low, 0);
}

}  // namespace
}  // namespace nereid::ttir::symbolic
