// How a table of functions on one lane is made of lambdas, and the rounding that several of them share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nereid/ttir/ir/types.h"

namespace nereid::ttir::libdevice {

inline constexpr long double kPi = 3.14159265358979323846264338327950288L;

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}
template <class T>
uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// F is a captureless lambda; its parameters' types say how the bits are read.
template <class F, class R, class... A, size_t... I>
uint64_t call_with(const uint64_t* operands, std::index_sequence<I...>, R (F::*)(A...) const) {
  return bits_of<R>(F{}(from_bits<A>(operands[I])...));
}
template <class F, class R, class... A>
constexpr size_t arity(R (F::*)(A...) const) {
  return sizeof...(A);
}
template <class F>
uint64_t call(const uint64_t* operands) {
  return call_with<F>(operands, std::make_index_sequence<arity(&F::operator())>{}, &F::operator());
}
template <class T>
constexpr Elem elem_of() {
  if constexpr (std::is_same_v<T, float>)
    return Elem::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return Elem::kF64;
  else if constexpr (sizeof(T) == 8)
    return Elem::kI64;
  else if constexpr (sizeof(T) == 4)
    return Elem::kI32;
  else
    return Elem::kI1;
}

struct Entry {
  uint64_t (*call)(const uint64_t*);
  std::vector<Elem> elems;  // operands, then result
};
template <class F, class R, class... A>
Entry entry(F, R (F::*)(A...) const) {
  return {call<F>, {elem_of<A>()..., elem_of<R>()}};
}
template <class F>
Entry entry(F f) {
  return entry(f, &F::operator());
}

using Table = std::unordered_map<std::string, Entry>;

// Directed rounding of an exact-in-double (or long double) result.
enum class Direction { kDown, kNearest, kUp, kZero };
template <class T, class Wide>
T rounded(Wide exact, Direction direction) {
  T value = static_cast<T>(exact);
  const Wide back = static_cast<Wide>(value);
  if (back == exact || std::isnan(value)) return value;
  const T inf = std::numeric_limits<T>::infinity();
  switch (direction) {
    case Direction::kNearest:
      return value;
    case Direction::kDown:
      return back > exact ? std::nextafter(value, -inf) : value;
    case Direction::kUp:
      return back < exact ? std::nextafter(value, inf) : value;
    case Direction::kZero:
      return std::abs(back) > std::abs(exact) ? std::nextafter(value, T(0)) : value;
  }
  return value;
}
// The same for doubles, from the nearest result and the sign of what it misses by.
inline double toward(double nearest, double error, Direction direction) {  // exact = nearest + error
  if (error == 0 || std::isnan(error) || std::isinf(nearest)) return nearest;
  const double inf = std::numeric_limits<double>::infinity();
  switch (direction) {
    case Direction::kNearest:
      return nearest;
    case Direction::kDown:
      return error < 0 ? std::nextafter(nearest, -inf) : nearest;
    case Direction::kUp:
      return error > 0 ? std::nextafter(nearest, inf) : nearest;
    case Direction::kZero:
      return (error < 0) == (nearest > 0) ? std::nextafter(nearest, 0.0) : nearest;
  }
  return nearest;
}
inline double add_error(double a, double b, double s) {  // Knuth's two-sum
  const double bb = s - a;
  return (a - (s - bb)) + (b - bb);
}

template <class To, class From>
To to_integer(From v, Direction direction) {
  if (std::isnan(v)) return sizeof(To) == 8 ? static_cast<To>(static_cast<uint64_t>(1) << 63) : To{0};
  switch (direction) {
    case Direction::kDown:
      v = std::floor(v);
      break;
    case Direction::kUp:
      v = std::ceil(v);
      break;
    case Direction::kZero:
      v = std::trunc(v);
      break;
    default:
      v = std::nearbyint(v);
      break;
  }
  if (v <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (v >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}

void add_real(Table& table);   // functions of real numbers, as near as this machine's libm
void add_exact(Table& table);  // rounding in a direction, integers, bits: there is one right answer

}  // namespace nereid::ttir::libdevice
