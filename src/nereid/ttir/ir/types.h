// The types of TTIR: scalars, pointers, tensors of both, and tensor descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::ttir {

// What one element is. Integers have no sign of their own: operations do. `index` is kI64.
enum class Elem : uint8_t {
  kNone,
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E4M3B11FNUZ,
  kBF16,
  kF16,
  kF32,
  kF64,
  kPointer,
  kDescriptor,
};

constexpr bool is_integer(Elem e) { return e >= Elem::kI1 && e <= Elem::kI64; }
constexpr bool is_float(Elem e) { return e >= Elem::kF8E4M3FN && e <= Elem::kF64; }
constexpr bool is_float8(Elem e) { return e >= Elem::kF8E4M3FN && e <= Elem::kF8E4M3B11FNUZ; }

// Bytes of one element, in memory and in a tile (an i1 takes a byte, a pointer eight).
constexpr int elem_bytes(Elem e) {
  switch (e) {
    case Elem::kI16:
    case Elem::kBF16:
    case Elem::kF16:
      return 2;
    case Elem::kI32:
    case Elem::kF32:
      return 4;
    case Elem::kI64:
    case Elem::kF64:
    case Elem::kPointer:
    case Elem::kDescriptor:
      return 8;
    default:
      return 1;
  }
}
constexpr int elem_bits(Elem e) { return e == Elem::kI1 ? 1 : 8 * elem_bytes(e); }
std::string_view to_string(Elem e);
Elem elem_named(std::string_view name);  // kNone when there is no such scalar type

constexpr int kMaxRank = 32;
constexpr int64_t kMaxElements = int64_t{1} << 22;  // Triton itself stops at 2^20

// A scalar, a pointer, or a tensor of them; a descriptor's `elem` is kDescriptor, its block's type is pointee
// and shape.
struct Type {
  Elem elem = Elem::kNone;
  Elem pointee = Elem::kNone;  // of a pointer or a descriptor
  bool tensor = false;
  std::vector<int64_t> shape;

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * elem_bytes(elem); }
  bool operator==(const Type&) const = default;
};
std::string to_string(const Type& type);

}  // namespace nereid::ttir
