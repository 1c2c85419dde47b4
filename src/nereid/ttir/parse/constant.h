// Numbers as MLIR prints them, to the bits of their type.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nereid/ttir/ir/types.h"

namespace nereid::ttir {

// "12", "-1.500000e+00", "0x7FC00000", "true": the bits of one element, zero-extended; nothing when it is no
// such number.
std::optional<uint64_t> constant_bits(std::string_view text, Elem elem);

}  // namespace nereid::ttir
