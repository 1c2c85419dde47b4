#include "nereid/compiler/ir/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>

#include "nereid/base/check.h"

namespace nereid::compiler {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }  // b is positive

}  // namespace

std::strong_ordering operator<=>(const Atom& a, const Atom& b) {
  if (const auto order = a.kind <=> b.kind; order != 0) return order;
  if (a.kind == Atom::Kind::kDimension) return a.dimension <=> b.dimension;
  if (const auto order = a.by.value() <=> b.by.value(); order != 0) return order;
  return a.of == b.of ? std::strong_ordering::equal : *a.of <=> *b.of;
}

std::strong_ordering operator<=>(const Index& a, const Index& b) {
  const auto by_value = [](const auto& left, const auto& right) {
    if (const auto order = left.first <=> right.first; order != 0) return order;
    return left.second.value() <=> right.second.value();
  };
  if (const auto order = std::lexicographical_compare_three_way(a.terms_.begin(), a.terms_.end(),
                                                                b.terms_.begin(), b.terms_.end(), by_value);
      order != 0)
    return order;
  return a.constant_.value() <=> b.constant_.value();
}

Index Index::of_atom(Atom atom) {
  Index index;
  index.terms_.emplace_back(std::move(atom), 1);
  return index;
}

Index Index::dimension(int dimension) {
  return of_atom({.kind = Atom::Kind::kDimension, .dimension = dimension, .of = nullptr, .by = 1});
}

// Sorts, adds up what is equal and drops what is nothing.
void Index::normalise() {
  std::sort(terms_.begin(), terms_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<Atom, Size>> sum;
  for (auto& term : terms_) {
    if (!sum.empty() && sum.back().first == term.first)
      sum.back().second += term.second;
    else
      sum.push_back(std::move(term));
  }
  std::erase_if(sum, [](const auto& term) { return term.second == 0; });
  terms_ = std::move(sum);
}

// x / by as an atom: (x / a) / b is x / (a b).
Atom Index::quotient_atom(const Atom& remainder) {
  const Index& of = *remainder.of;
  const bool nested = of.constant_ == 0 && of.terms_.size() == 1 && of.terms_[0].second == 1 &&
                      of.terms_[0].first.kind == Atom::Kind::kQuotient;
  const Atom* inner = nested ? &of.terms_[0].first : nullptr;
  return {.kind = Atom::Kind::kQuotient,
          .dimension = 0,
          .of = inner != nullptr ? inner->of : remainder.of,
          .by = inner != nullptr ? remainder.by * inner->by : remainder.by};
}

// Whether y / k, the quotient, is that of y = x % (k l), where the remainder is x % k: then x % k is y % k.
bool Index::is_of_longer_remainder(const Atom& quotient, const Atom& remainder) {
  if (quotient.kind != Atom::Kind::kQuotient || quotient.by != remainder.by) return false;
  const Index& y = *quotient.of;
  if (y.constant_ != 0 || y.terms_.size() != 1 || y.terms_[0].second != 1) return false;
  const Atom& longer = y.terms_[0].first;
  return longer.kind == Atom::Kind::kRemainder && longer.by % remainder.by == 0 &&
         *longer.of == *remainder.of;
}

// Whether the digit is (x / k) % m, where the remainder is x % k.
bool Index::is_of_quotient(const Atom& digit, const Atom& remainder) {
  if (digit.kind != Atom::Kind::kRemainder) return false;
  const Index& y = *digit.of;
  return y.constant_ == 0 && y.terms_.size() == 1 && y.terms_[0].second == 1 &&
         y.terms_[0].first == quotient_atom(remainder);
}

// c * k * (x / k) + c * (x % k) is c * x, and c * k * ((x / k) % m) + c * (x % k) is c * (x % (k m)).
void Index::join_divisions() {
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = 0; i < terms_.size() && !joined; ++i) {
      const auto [remainder, coefficient] = terms_[i];
      if (remainder.kind != Atom::Kind::kRemainder) continue;
      for (size_t j = 0; j < terms_.size() && !joined; ++j) {
        const auto& [quotient, by] = terms_[j];
        if (by != coefficient * remainder.by) continue;
        Index whole;
        if (is_of_longer_remainder(quotient, remainder))
          whole = *quotient.of * coefficient;
        else if (is_of_quotient(quotient, remainder))
          whole = of_atom({.kind = Atom::Kind::kRemainder,
                           .dimension = 0,
                           .of = remainder.of,
                           .by = quotient.by * remainder.by}) *
                  coefficient;
        else if (quotient == quotient_atom(remainder))
          whole = *remainder.of * coefficient;
        else
          continue;
        terms_.erase(terms_.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
        terms_.erase(terms_.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
        constant_ += whole.constant_;
        terms_.insert(terms_.end(), whole.terms_.begin(), whole.terms_.end());
        normalise();
        joined = true;
      }
    }
  }
}

Index operator+(const Index& a, const Index& b) {
  Index sum;
  sum.constant_ = a.constant_ + b.constant_;
  sum.terms_ = a.terms_;
  sum.terms_.insert(sum.terms_.end(), b.terms_.begin(), b.terms_.end());
  sum.normalise();
  sum.join_divisions();
  return sum;
}

Index operator*(const Index& a, const Size& factor) {
  if (factor == 0) return Index();
  Index product = a;
  product.constant_ *= factor;
  for (auto& [atom, coefficient] : product.terms_) coefficient *= factor;
  return product;
}

bool Index::uses(int dimension) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    const Atom& atom = term.first;
    return atom.kind == Atom::Kind::kDimension ? atom.dimension == dimension : atom.of->uses(dimension);
  });
}

bool Index::divides_sums() const {
  return std::ranges::any_of(terms_, [](const auto& term) {
    if (term.first.kind == Atom::Kind::kDimension) return false;
    const Index& of = *term.first.of;
    const bool sum = of.terms_.size() > 1 || of.constant_ != 0;
    const bool divided = std::ranges::any_of(
        of.terms_, [](const auto& part) { return part.first.kind != Atom::Kind::kDimension; });
    return (sum && divided) || of.divides_sums();
  });
}

std::optional<Size> Index::stride(int dimension) const {
  Size stride;
  for (const auto& [atom, coefficient] : terms_) {
    if (atom.kind != Atom::Kind::kDimension) {
      if (atom.of->uses(dimension)) return std::nullopt;
    } else if (atom.dimension == dimension) {
      stride = coefficient;
    }
  }
  return stride;
}

Bounds Index::bounds(const Extents& extents) const {
  Bounds sum{constant_, constant_};
  for (const auto& [atom, coefficient] : terms_) {
    Bounds own;
    if (atom.kind == Atom::Kind::kDimension) {
      own = {0, std::max<int64_t>(extents.at(static_cast<size_t>(atom.dimension)) - 1, 0)};
    } else {
      const Bounds inner = atom.of->bounds(extents);
      own = atom.kind == Atom::Kind::kRemainder
                ? Bounds{0, atom.by.value() - 1}
                : Bounds{floor_divide(inner.low, atom.by.value()), floor_divide(inner.high, atom.by.value())};
    }
    const int64_t times = coefficient;
    sum.low += times * (times > 0 ? own.low : own.high);
    sum.high += times * (times > 0 ? own.high : own.low);
  }
  return sum;
}

int64_t Index::evaluate(const std::vector<int64_t>& at) const {
  int64_t sum = constant_;
  for (const auto& [atom, coefficient] : terms_) {
    int64_t value = 0;
    if (atom.kind == Atom::Kind::kDimension) {
      value = at.at(static_cast<size_t>(atom.dimension));
    } else {
      const int64_t inner = atom.of->evaluate(at);
      value = floor_divide(inner, atom.by.value());
      if (atom.kind == Atom::Kind::kRemainder) value = inner - value * atom.by;
    }
    sum += coefficient.value() * value;
  }
  return sum;
}

// The index as by * first + second: second's coefficients and constant are in [0, by).
std::pair<Index, Index> Index::split(const Size& by) const {
  Index multiple(floor_divide(constant_, by)), rest;
  rest.constant_ = constant_ - multiple.constant_ * by;
  for (const auto& [atom, coefficient] : terms_) {
    const Size whole = floor_divide(coefficient, by), left = coefficient - whole * by;
    if (whole != 0) multiple.terms_.emplace_back(atom, whole);
    if (left != 0) rest.terms_.emplace_back(atom, left);
  }
  return {multiple, rest};
}

// The index as g * first + second with second in [0, g), where g > 1 divides `by`: the greatest such g.
std::optional<Index::Digits> Index::digits(const Size& by, const Extents& extents) const {
  std::map<int64_t, Size> divisors;
  for (const auto& [atom, coefficient] : terms_) {
    const int64_t divisor = std::gcd(by.value(), coefficient.value());
    divisors.emplace(divisor, divisor == coefficient ? coefficient : divisor == by ? by : Size(divisor));
  }
  for (auto divisor = divisors.rbegin(); divisor != divisors.rend() && divisor->first > 1; ++divisor) {
    auto [high, low] = split(divisor->second);
    const Bounds bounds = low.bounds(extents);
    if (bounds.low >= 0 && bounds.high < divisor->first)
      return Digits{divisor->second, std::move(high), std::move(low)};
  }
  return std::nullopt;
}

Index quotient(const Index& index, const Size& by, const Extents& extents) {
  NEREID_CHECK(by > 0, "a positive divisor");
  if (by == 1) return index;
  auto [multiple, rest] = index.split(by);
  const Bounds bounds = rest.bounds(extents);
  const int64_t low = floor_divide(bounds.low, by.value());
  if (low == floor_divide(bounds.high, by.value())) return multiple + Index(low);
  // floor((g a + b) / (g k)) is floor(a / k).
  if (const auto parts = rest.digits(by, extents))
    return multiple + quotient(parts->high, by / parts->base, extents);
  // (x / a) / b is x / (a b).
  if (rest.constant_ == 0 && rest.terms_.size() == 1 && rest.terms_[0].second == 1 &&
      rest.terms_[0].first.kind == Atom::Kind::kQuotient) {
    const Atom inner = rest.terms_[0].first;
    return multiple + quotient(*inner.of, by * inner.by, extents);
  }
  return multiple + Index::of_atom({.kind = Atom::Kind::kQuotient,
                                    .dimension = 0,
                                    .of = std::make_shared<const Index>(std::move(rest)),
                                    .by = by});
}

Index remainder(const Index& index, const Size& by, const Extents& extents) {
  NEREID_CHECK(by > 0, "a positive divisor");
  if (by == 1) return Index();
  // c (x % m) and c x leave the same where by divides c m.
  Index congruent(index.constant_);
  for (const auto& [atom, coefficient] : index.terms_) {
    if (atom.kind == Atom::Kind::kRemainder && coefficient * atom.by % by == 0)
      congruent = congruent + *atom.of * coefficient;
    else
      congruent = congruent + Index::of_atom(atom) * coefficient;
  }
  Index rest = congruent.split(by).second;
  const Bounds bounds = rest.bounds(extents);
  const int64_t low = floor_divide(bounds.low, by.value());
  if (low == floor_divide(bounds.high, by.value())) return rest + Index(-low * by);
  // (g a + b) % (g k) is g (a % k) + b.
  if (const auto parts = rest.digits(by, extents))
    return remainder(parts->high, by / parts->base, extents) * parts->base + parts->low;
  return Index::of_atom({.kind = Atom::Kind::kRemainder,
                         .dimension = 0,
                         .of = std::make_shared<const Index>(std::move(rest)),
                         .by = by});
}

Index substitute(const Index& index, const std::vector<Index>& by, const Extents& extents) {
  Index sum(index.constant());
  for (const auto& [atom, coefficient] : index.terms()) {
    Index term;
    switch (atom.kind) {
      case Atom::Kind::kDimension:
        term = by.at(static_cast<size_t>(atom.dimension));
        break;
      case Atom::Kind::kQuotient:
        term = quotient(substitute(*atom.of, by, extents), atom.by, extents);
        break;
      case Atom::Kind::kRemainder:
        term = remainder(substitute(*atom.of, by, extents), atom.by, extents);
        break;
    }
    sum = sum + term * coefficient;
  }
  return sum;
}

namespace {

constexpr double kNarrow = 2147483648.0;  // 2^31

double magnitude(const Size& size) { return std::abs(static_cast<double>(size.value())); }

// Writes an index; and whether what it wrote is of 64 bits.
class IndexText {
 public:
  IndexText(const std::function<std::string(int)>& name, const Extents& extents, bool holes,
            const std::function<bool(int)>& narrow)
      : name_(name), extents_(extents), holes_(holes), narrow_(narrow) {}

  struct Written {
    std::string text;
    bool wide = false;
  };

  Written write(const Index& index) const {
    Size shifted = index.constant();
    std::vector<Term> terms;
    const bool alone = index.terms().size() == 1 && index.constant() == 0 && index.terms()[0].second == 1;
    for (const auto& [atom, coefficient] : index.terms()) {
      if (atom.kind == Atom::Kind::kDimension) {
        terms.push_back({name_(atom.dimension), coefficient, !narrow_ || !narrow_(atom.dimension)});
        if (narrow_) terms.back().largest = magnitude(extents_[static_cast<size_t>(atom.dimension)]);
        continue;
      }
      terms.push_back(divided(atom, coefficient, shifted));
      if (!alone || shifted != 0) terms.back().text = "(" + terms.back().text + ")";
    }
    widen(terms, shifted);
    Written made;
    for (const Term& term : terms) add(made.text, term.coefficient, term.text), made.wide |= term.wide;
    if (shifted != 0 || made.text.empty()) add(made.text, shifted, "");
    return made;
  }

 private:
  struct Term {
    std::string text;
    Size coefficient;
    bool wide = false;
    double largest = 0;  // magnitude of what `text` stands for
  };

  // A quotient or a remainder. What may be negative is divided from higher up, which `shifted` takes back.
  Term divided(const Atom& atom, const Size& coefficient, Size& shifted) const {
    const int64_t low = extents_.empty() ? 0 : atom.of->bounds(extents_).low;
    const int64_t higher = low < 0 ? (-low + atom.by.value() - 1) / atom.by.value() : 0;
    const bool quotient = atom.kind == Atom::Kind::kQuotient;
    if (quotient) shifted -= higher * coefficient;
    const Index of = *atom.of + Index(higher * atom.by);
    const Written inner = write(of);
    const bool simple = inner.text.find(' ') == inner.text.npos && inner.text.front() != '-';
    Term term{fmt::format("{} {} {}", simple ? inner.text : "(" + inner.text + ")", quotient ? "//" : "%",
                          size_text(atom.by, Size::Place::kFactor)),
              coefficient, inner.wide};
    if (narrow_)
      term.largest =
          quotient ? static_cast<double>(of.bounds(extents_).high) / magnitude(atom.by) : magnitude(atom.by);
    return term;
  }

  void widen(std::vector<Term>& terms, const Size& constant) const {
    if (!narrow_) return;
    double sum = magnitude(constant);
    const auto cast = [](Term& term) {
      const bool plain = term.text.find(' ') == term.text.npos || term.text.front() == '(';
      term.text = fmt::format("{}.to(tl.int64)", plain ? term.text : "(" + term.text + ")");
      term.wide = true;
    };
    for (Term& term : terms) {
      const double product = term.largest * magnitude(term.coefficient);
      sum += product;
      if (product >= kNarrow && !term.wide) cast(term);
    }
    const bool any = std::ranges::any_of(terms, [](const Term& term) { return term.wide; });
    if (sum >= kNarrow && !any && !terms.empty()) cast(terms.front());
  }

  std::string size_text(const Size& size, Size::Place place) const {
    return holes_ ? hole(size, place) : size.text(place);
  }

  void add(std::string& text, const Size& coefficient, const std::string& factor) const {
    const bool negative = coefficient < 0;
    const Size size = negative ? -coefficient : coefficient;
    const char* sign = text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    if (factor.empty())
      text += sign + size_text(size, *sign == '\0' ? Size::Place::kAlone : Size::Place::kTerm);
    else if (size == 1 && size.is_literal())
      text += fmt::format("{}{}", sign, factor);
    else
      text += fmt::format("{}{} * {}", sign, factor, size_text(size, Size::Place::kFactor));
  }

  const std::function<std::string(int)>& name_;
  const Extents& extents_;
  const bool holes_;
  const std::function<bool(int)>& narrow_;
};

}  // namespace

std::string to_string(const Index& index, const std::function<std::string(int)>& name, const Extents& extents,
                      bool holes, const std::function<bool(int)>& narrow) {
  return IndexText(name, extents, holes, narrow).write(index).text;
}

std::vector<Index> unravel(const Index& linear, const Extents& sizes, const Extents& extents) {
  std::vector<Index> at(sizes.size());
  Index left = linear;
  for (size_t d = sizes.size(); d-- > 0;) {
    const Size size = max(sizes[d], 1);
    at[d] = size == 1 ? Index() : d == 0 ? left : remainder(left, size, extents);
    left = quotient(left, size, extents);
  }
  return at;
}

std::optional<std::pair<int, int64_t>> group_of(const Index& index, const Extents& sizes, int64_t size) {
  if (index.constant() != 0 || index.terms().size() != 1) return std::nullopt;
  const auto& [atom, factor] = index.terms()[0];
  if (atom.kind != Atom::Kind::kQuotient || factor != 1) return std::nullopt;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (*atom.of == Index::dimension(static_cast<int>(d)) && sizes[d] == size * atom.by)
      return std::pair(static_cast<int>(d), atom.by);
  return std::nullopt;
}

std::vector<std::pair<int, int64_t>> digits_of(const Index& index, const Extents& sizes, int64_t size) {
  std::vector<std::pair<int, int64_t>> digits;
  if (index.constant() != 0) return {};
  for (const auto& [atom, stride] : index.terms()) {
    if (atom.kind != Atom::Kind::kDimension) return {};
    digits.emplace_back(atom.dimension, stride);
  }
  std::ranges::sort(digits, {}, [](const auto& digit) { return digit.second; });
  int64_t below = 1;
  for (const auto& [dimension, stride] : digits) {
    if (stride != below) return {};
    below *= sizes[static_cast<size_t>(dimension)];
  }
  if (digits.size() > 1 && below != size) return {};
  return digits;
}

std::vector<size_t> flattened(const std::vector<Index>& at, const Extents& sizes, int dimension,
                              const Extents& extents) {
  std::vector<size_t> found;
  Size below = 1;
  const Index own = Index::dimension(dimension);
  for (size_t d = at.size(); d-- > 0;) {
    if (!at[d].uses(dimension)) continue;
    if (!(at[d] == quotient(remainder(own, below * sizes[d], extents), below, extents))) return {};
    found.push_back(d);
    below = below * sizes[d];
  }
  if (found.size() < 2 || below != extents[static_cast<size_t>(dimension)]) return {};
  return found;
}

bool refines(const Extents& sizes, const Extents& columns) {
  size_t next = 0;
  for (const Size& column : columns) {
    int64_t product = 1;
    while (product < column && next < sizes.size()) product *= sizes[next++];
    if (product != column) return false;
  }
  return next == sizes.size();
}

}  // namespace nereid::compiler
