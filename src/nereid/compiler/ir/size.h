// A whole number that knows what it is made of: 480 as 5 * 96, sizes of two dimensions.
//
//   const Size rows = Size::dimension(5), columns = Size::dimension(96);
//   (rows * columns).text();                    // "5 * 96"
//   floor_divide(rows * columns, columns) == 5  // a number like any other
//
// A size converts to and from its value. Comparisons, and all that is decided, go by the value, for a kernel
// is specialised by its sizes. Arithmetic carries along a polynomial in symbols; a symbol is the size of a
// dimension of a traced tensor, or the batch. What no polynomial says (the remainder of a division that does
// not come out even) becomes a literal. 0 and 1 are always literals: loops and strides of them are left out.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::compiler {

// What the batch is called in kernels and in forward.
constexpr std::string_view kBatchName = "batch_size";

class Size {
 public:
  // Where its text stands: alone (an argument, a side of a comparison), added to something, multiplied with
  // something. There are brackets where it would be read otherwise.
  enum class Place : uint8_t { kAlone, kTerm, kFactor };

  struct Symbol {
    int64_t value = 0;
    bool batch = false;  // written by its name; others as their values
    bool operator==(const Symbol&) const = default;
  };

  Size() = default;
  template <std::integral T>
  Size(T value) : value_(static_cast<int64_t>(value)) {}
  static Size dimension(int64_t value);
  // scale * batch + shift.
  static Size of_batch(int64_t batch, int64_t scale, int64_t shift);

  operator int64_t() const { return value_; }
  int64_t value() const { return value_; }
  bool is_literal() const { return made_of_ == nullptr; }

  // In Python: "5 * 96 + 2"; of a literal, and of one symbol, a number. The value is that of the size.
  std::string text(Place place = Place::kAlone) const;

  friend Size operator+(const Size& a, const Size& b);
  friend Size operator-(const Size& a, const Size& b);
  friend Size operator*(const Size& a, const Size& b);
  friend Size operator-(const Size& a) { return Size(0) - a; }
  // Rounded towards minus infinity; `b` is positive.
  friend Size floor_divide(const Size& a, const Size& b);
  // Towards zero, as of any whole numbers.
  friend Size operator/(const Size& a, const Size& b) {
    return a.value_ >= 0 && b.value_ > 0 ? floor_divide(a, b) : Size(a.value_ / b.value_);
  }
  friend Size operator%(const Size& a, const Size& b) {
    return a.value_ >= 0 && b.value_ > 0 ? a - floor_divide(a, b) * b : Size(a.value_ % b.value_);
  }
  Size& operator+=(const Size& b) { return *this = *this + b; }
  Size& operator-=(const Size& b) { return *this = *this - b; }
  Size& operator*=(const Size& b) { return *this = *this * b; }
  Size& operator/=(const Size& b) { return *this = *this / b; }
  Size& operator%=(const Size& b) { return *this = *this % b; }

 private:
  struct Product {
    int64_t scale = 1;
    std::vector<Symbol> symbols;  // in the order in which they are written
  };
  using Sum = std::vector<Product>;
  Size(int64_t value, Sum sum);
  Sum sum() const;
  static int64_t value_of(const Sum& sum);
  static std::string text_of(const Product& product);
  static std::string text_of(const Sum& sum);
  static bool same_symbols(const Product& a, const Product& b);
  static bool divide(Product& product, const Product& by);

  int64_t value_ = 0;
  std::shared_ptr<const Sum> made_of_;  // null: a literal
};

// With what is no size, without going through int64_t, which would make a literal of it.
template <std::integral T>
Size operator+(const Size& a, T b) {
  return a + Size(b);
}
template <std::integral T>
Size operator+(T a, const Size& b) {
  return Size(a) + b;
}
template <std::integral T>
Size operator-(const Size& a, T b) {
  return a - Size(b);
}
template <std::integral T>
Size operator-(T a, const Size& b) {
  return Size(a) - b;
}
template <std::integral T>
Size operator*(const Size& a, T b) {
  return a * Size(b);
}
template <std::integral T>
Size operator*(T a, const Size& b) {
  return Size(a) * b;
}
template <std::integral T>
Size operator/(const Size& a, T b) {
  return a / Size(b);
}
template <std::integral T>
Size operator/(T a, const Size& b) {
  return Size(a) / b;
}
template <std::integral T>
Size operator%(const Size& a, T b) {
  return a % Size(b);
}
template <std::integral T>
Size operator%(T a, const Size& b) {
  return Size(a) % b;
}

inline Size max(const Size& a, const Size& b) { return a.value() < b.value() ? b : a; }
inline Size min(const Size& a, const Size& b) { return b.value() < a.value() ? b : a; }

// The sizes of a tensor, of a loop nest, or strides. Converts to and from plain numbers.
class Extents : public std::vector<Size> {
 public:
  using std::vector<Size>::vector;
  Extents() = default;
  Extents(const std::vector<int64_t>& values) : std::vector<Size>(values.begin(), values.end()) {}
  operator std::vector<int64_t>() const { return {begin(), end()}; }
  std::vector<int64_t> values() const { return *this; }
  friend bool operator==(const Extents& a, const Extents& b) {
    return std::ranges::equal(a, b, {}, &Size::value, &Size::value);
  }
};

// A size in a kernel's text is a hole until all kernels of a module are there: then it is filled with the
// size, or with parameters of a kernel that several sizes share (shared_kernels.h). "{480=5 * 96}" stands
// alone, "{480+5 * 96}" is added, "{480*5 * 96}" is multiplied. A literal is no hole. "{480!480}" is a number
// of the author's, which is no size whatever it is equal to.
struct Hole {
  int64_t value = 0;
  Size::Place place = Size::Place::kAlone;
  std::string text;
  std::string written() const;  // "{480=5 * 96}"
  std::string filled() const;   // in brackets where its place needs them
};
std::string hole(const Size& size, Size::Place place = Size::Place::kAlone);
std::string hole_of_number(int64_t number);  // 0, 1 and -1 as they are
bool is_number_hole(std::string_view written);
Hole read_hole(std::string_view written);
// The text with its holes filled.
std::string filled(std::string_view text);

// In Python: "(5 * 96,)".
std::string sizes_text(const Extents& sizes);
// Each as a symbol.
Extents as_dimensions(const std::vector<int64_t>& sizes);

}  // namespace nereid::compiler
