#include "nereid/ttir/exec/atomic.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir {
namespace {

int64_t signed_of(uint64_t bits, Elem elem) {
  const int width = 8 * elem_bytes(elem);
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

uint64_t float_result(Rmw rmw, Elem elem, uint64_t old, uint64_t operand) {
  if (elem == Elem::kF64) {
    const double a = to_double(old, elem), b = to_double(operand, elem);
    const double r = rmw == Rmw::kFadd ? a + b : rmw == Rmw::kMax ? std::fmax(a, b) : std::fmin(a, b);
    return from_double(r, elem);
  }
  const float a = to_float(static_cast<uint32_t>(old), elem),
              b = to_float(static_cast<uint32_t>(operand), elem);
  const float r = rmw == Rmw::kFadd ? a + b : rmw == Rmw::kMax ? std::fmax(a, b) : std::fmin(a, b);
  return from_float(r, elem);
}

uint64_t result_of(Rmw rmw, Elem elem, uint64_t old, uint64_t operand) {
  switch (rmw) {
    case Rmw::kExchange:
      return operand;
    case Rmw::kAnd:
      return old & operand;
    case Rmw::kOr:
      return old | operand;
    case Rmw::kXor:
      return old ^ operand;
    default:
      break;
  }
  if (is_float(elem)) return float_result(rmw, elem, old, operand);
  switch (rmw) {
    case Rmw::kMax:
      return signed_of(old, elem) > signed_of(operand, elem) ? old : operand;
    case Rmw::kMin:
      return signed_of(old, elem) < signed_of(operand, elem) ? old : operand;
    case Rmw::kUmax:
      return std::max(old, operand);
    case Rmw::kUmin:
      return std::min(old, operand);
    default:
      return old + operand;
  }
}

template <class T>
uint64_t rmw_loop(Rmw rmw, Elem elem, void* where, uint64_t operand) {
  std::atomic_ref<T> cell(*static_cast<T*>(where));
  T old = cell.load(std::memory_order_acquire);
  while (!cell.compare_exchange_weak(old, static_cast<T>(result_of(rmw, elem, old, operand)),
                                     std::memory_order_acq_rel)) {
  }
  return old;
}

template <class T>
uint64_t exchange_if(void* where, uint64_t expected, uint64_t desired) {
  std::atomic_ref<T> cell(*static_cast<T*>(where));
  T old = static_cast<T>(expected);
  cell.compare_exchange_strong(old, static_cast<T>(desired), std::memory_order_acq_rel);
  return old;
}

}  // namespace

Rmw rmw_named(std::string_view name) {
  static constexpr std::string_view kNames[] = {"and", "or",  "xor",  "add",  "fadd",
                                                "max", "min", "umax", "umin", "exch"};
  for (size_t k = 0; k < std::size(kNames); ++k)
    if (name == kNames[k]) return static_cast<Rmw>(k);
  return Rmw::kInvalid;
}

uint64_t atomic_rmw(Rmw rmw, Elem elem, void* where, uint64_t operand) {
  switch (elem_bytes(elem)) {
    case 1:
      return rmw_loop<uint8_t>(rmw, elem, where, operand & 0xff);
    case 2:
      return rmw_loop<uint16_t>(rmw, elem, where, operand & 0xffff);
    case 4:
      return rmw_loop<uint32_t>(rmw, elem, where, operand & 0xffffffffu);
    default:
      return rmw_loop<uint64_t>(rmw, elem, where, operand);
  }
}

uint64_t atomic_compare_exchange(Elem elem, void* where, uint64_t expected, uint64_t desired) {
  switch (elem_bytes(elem)) {
    case 1:
      return exchange_if<uint8_t>(where, expected, desired);
    case 2:
      return exchange_if<uint16_t>(where, expected, desired);
    case 4:
      return exchange_if<uint32_t>(where, expected, desired);
    default:
      return exchange_if<uint64_t>(where, expected, desired);
  }
}

}  // namespace nereid::ttir
