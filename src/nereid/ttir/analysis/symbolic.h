// Integers of a kernel as affine expressions of where it runs: program ids, loop counters and lanes of a
// tile, with quotients by constants as variables of their own.
//
// An expression is exact: operations that would wrap, or that are not affine, have no expression. Numbers
// here are checked; one that leaves 64 bits throws `TooComplex`, and the caller samples instead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace nereid::ttir::symbolic {

struct TooComplex {
  const char* why = "";
};

using AtomId = int32_t;

// base + sum of factor * atom, by atom; no factor is 0.
struct Expr {
  int64_t base = 0;
  std::vector<std::pair<AtomId, int64_t>> terms{};

  bool constant() const { return terms.empty(); }
  auto operator<=>(const Expr&) const = default;
};
Expr plus(const Expr& a, const Expr& b, int64_t scale = 1);  // a + scale * b
Expr times(const Expr& a, int64_t factor);
inline Expr number(int64_t base) { return {base, {}}; }
int64_t floor_div(int64_t a, int64_t b);  // b > 0

struct Bounds {
  int64_t low = 0, high = 0;  // both included
};

enum class AtomKind : uint8_t { kProgram, kLoop, kLane, kDigit, kSymbol, kQuotient };

struct Atom {
  AtomKind kind{};
  int index = 0;  // a program's axis, a lane's dimension
  Bounds bounds;  // of a variable: from 0
  Expr inner{};   // kQuotient: floor(inner / divisor)
  int64_t divisor = 1;
};

class Atoms {
 public:
  const Atom& operator[](AtomId id) const { return atoms_[static_cast<size_t>(id)]; }
  // A variable of `size` values from 0; the number 0 where there is one only.
  Expr variable(AtomKind kind, int index, int64_t size);
  Expr lane(int dim, int64_t size);  // one for each dimension and size
  Expr symbol();                     // a number of which nothing is known
  Expr quotient(const Expr& e, int64_t divisor);
  Expr remainder(const Expr& e, int64_t divisor) { return plus(e, quotient(e, divisor), -divisor); }
  Bounds bounds(const Expr& e) const { return bounds(e, 0); }
  // e with f(atom) in place of each variable; quotients are made anew.
  template <class F>
  Expr replaced(const Expr& e, const F& f) {
    Expr sum = number(e.base);
    for (const auto& [id, factor] : e.terms) {
      if ((*this)[id].kind == AtomKind::kQuotient) {
        const Atom atom = (*this)[id];
        sum = plus(sum, quotient(replaced(atom.inner, f), atom.divisor), factor);
      } else {
        sum = plus(sum, f(id), factor);
      }
    }
    return sum;
  }
  // Calls f(variable) for all variables that e depends on, those inside quotients included.
  template <class F>
  void for_each_variable(const Expr& e, const F& f) const {
    for (const auto& [id, factor] : e.terms) {
      if ((*this)[id].kind == AtomKind::kQuotient)
        for_each_variable((*this)[id].inner, f);
      else
        f(id);
    }
  }

 private:
  Bounds bounds(const Expr& e, int depth) const;
  AtomId add(Atom atom);
  std::vector<Atom> atoms_;
  std::map<std::pair<int, int64_t>, AtomId> lanes_;
  std::map<std::pair<Expr, int64_t>, AtomId> quotients_;
};

// Each expression is at least 0.
using Conjunction = std::vector<Expr>;

// What is true where any of some conjunctions holds, no two of which hold together; or nothing is known.
struct Truth {
  bool known = true;
  bool by_data = false;  // unknown because it depends on what is loaded
  std::vector<Conjunction> any{};

  static Truth always() { return {true, false, {Conjunction{}}}; }
  static Truth never() { return {}; }
  static Truth unknown(bool by_data) { return {false, by_data, {}}; }
  bool is_always() const { return known && any.size() == 1 && any[0].empty(); }
  bool is_never() const { return known && any.empty(); }
};
// What is decided by bounds is left out.
Truth simplified(const Atoms& atoms, Truth t);
Truth both(const Atoms& atoms, const Truth& a, const Truth& b);
Truth negated(const Atoms& atoms, const Truth& a);
Truth either(const Atoms& atoms, const Truth& a, const Truth& b);

}  // namespace nereid::ttir::symbolic
