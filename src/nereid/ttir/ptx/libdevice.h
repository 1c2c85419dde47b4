// The functions that kernels call by name: CUDA's libdevice.
#pragma once

#include <string_view>
#include <vector>

#include "nereid/ttir/exec/machine.h"

namespace nereid::ttir {

// One function of up to four operands on one lane: bits in, bits out (as kUniform holds them).
struct External {
  uint64_t (*call)(const uint64_t* operands) = nullptr;  // any
  UnaryKernel unary = nullptr;                           // or a loop over f32 or f64
  BinaryKernel binary = nullptr;
};
// `elems`: of the operands, then the result. An empty External when the name or the types are unknown.
External external_named(std::string_view symbol, const std::vector<Elem>& elems);

}  // namespace nereid::ttir
