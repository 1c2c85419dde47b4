// Integer arithmetic on the dimensions of a loop nest, in a normal form: where a reshape after a transpose
// after a slice reads is a sum again, and mostly a simple one.
//
// An index is a constant and a sum of coefficient x atom. An atom is a dimension, or the quotient or the
// remainder of an index by a constant. Dimension d runs from 0 to extents[d] - 1; what this says about a
// quotient or a remainder is used at once, so that equal indices mostly look equal and (i * 12 + j) / 12 is
// i. Numbers are sizes (size.h): the normal form goes by their values, what they are made of comes along.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/compiler/ir/size.h"

namespace nereid::compiler {

class Index;

struct Atom {
  enum class Kind : uint8_t { kDimension, kQuotient, kRemainder };
  Kind kind = Kind::kDimension;
  int dimension = 0;                // kDimension
  std::shared_ptr<const Index> of;  // the others
  Size by = 1;                      // positive
};
std::strong_ordering operator<=>(const Atom& a, const Atom& b);
inline bool operator==(const Atom& a, const Atom& b) { return (a <=> b) == 0; }

struct Bounds {
  int64_t low = 0, high = 0;  // both can be reached or not; nothing is outside
};

class Index {
 public:
  Index() = default;
  explicit Index(Size constant) : constant_(std::move(constant)) {}
  static Index dimension(int dimension);

  const Size& constant() const { return constant_; }
  const std::vector<std::pair<Atom, Size>>& terms() const { return terms_; }  // sorted, no coefficient is 0
  bool is_constant() const { return terms_.empty(); }

  friend std::strong_ordering operator<=>(const Index& a, const Index& b);
  friend bool operator==(const Index& a, const Index& b) { return (a <=> b) == 0; }
  friend Index operator+(const Index& a, const Index& b);
  friend Index operator*(const Index& a, const Size& factor);

  bool uses(int dimension) const;
  // What one step of the dimension adds, where that is the same everywhere; nothing where it is under a
  // quotient or remainder.
  std::optional<Size> stride(int dimension) const;
  // Whether it has a quotient or remainder of a sum that has one itself, as of a roll of windows.
  bool divides_sums() const;
  Bounds bounds(const Extents& extents) const;
  int64_t evaluate(const std::vector<int64_t>& at) const;

 private:
  friend Index quotient(const Index& index, const Size& by, const Extents& extents);
  friend Index remainder(const Index& index, const Size& by, const Extents& extents);
  static Index of_atom(Atom atom);
  std::pair<Index, Index> split(const Size& by) const;
  struct Digits;
  std::optional<Digits> digits(const Size& by, const Extents& extents) const;
  void normalise();
  static Atom quotient_atom(const Atom& remainder);
  static bool is_of_longer_remainder(const Atom& quotient, const Atom& remainder);
  static bool is_of_quotient(const Atom& digit, const Atom& remainder);
  void join_divisions();

  Size constant_;
  std::vector<std::pair<Atom, Size>> terms_;
};

struct Index::Digits {
  Size base;
  Index high, low;
};

inline Index operator-(const Index& a, const Index& b) { return a + b * -1; }

// Rounded towards minus infinity, and the remainder; `by` is positive.
Index quotient(const Index& index, const Size& by, const Extents& extents);
Index remainder(const Index& index, const Size& by, const Extents& extents);
// Each dimension d becomes by[d]; `extents` are those of the dimensions in `by`.
Index substitute(const Index& index, const std::vector<Index>& by, const Extents& extents);

// As text of a language whose division rounds towards zero: what may be negative is divided from higher up.
// `name` gives a dimension's name.
// `holes`: sizes are holes (size.h). `narrow`: whether a dimension's name is of 32 bits in Triton; where a
// product or a sum could leave these, what is narrow becomes tl.int64. Empty: no dimension is.
std::string to_string(const Index& index, const std::function<std::string(int)>& name,
                      const Extents& extents = {}, bool holes = false,
                      const std::function<bool(int)>& narrow = {});

// Where a dense tensor of these sizes, laid out row-major, has its element number `linear`.
std::vector<Index> unravel(const Index& linear, const Extents& sizes, const Extents& extents);

// The dimension that an index says the group of, and the group's length: a channel's in a group norm.
std::optional<std::pair<int, int64_t>> group_of(const Index& index, const Extents& sizes, int64_t size);

// The dimensions whose digits an index is, which goes over all of `size`, each with its stride: of a reshape
// several. Empty where it is something else.
std::vector<std::pair<int, int64_t>> digits_of(const Index& index, const Extents& sizes, int64_t size);

// The neighbours among a tensor's dimensions that an index `at` of it flattens into one of its own,
// `dimension`: of a reshape of [n, 14, 14] to [n, 196] the last two. None where they are fewer than two, or
// not all of it.
std::vector<size_t> flattened(const std::vector<Index>& at, const Extents& sizes, int dimension,
                              const Extents& extents);

// Whether each of `columns` is a product of neighbours among `sizes`.
bool refines(const Extents& sizes, const Extents& columns);

}  // namespace nereid::compiler
