// One atomic read-modify-write on memory, on the bits of any element of 1 to 8 bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "nereid/ttir/ir/types.h"

namespace nereid::ttir {

enum class Rmw : uint8_t { kAnd, kOr, kXor, kAdd, kFadd, kMax, kMin, kUmax, kUmin, kExchange, kInvalid };
Rmw rmw_named(std::string_view name);

// Both give the old bits, zero-extended. `where` is aligned to the element.
uint64_t atomic_rmw(Rmw rmw, Elem elem, void* where, uint64_t operand);
uint64_t atomic_compare_exchange(Elem elem, void* where, uint64_t expected, uint64_t desired);

}  // namespace nereid::ttir
