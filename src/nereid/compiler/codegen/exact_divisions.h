// Divisions that round as IEEE 754 says, where the last bit of a quotient may decide.
//
// Triton writes a float32 division as `div.full`, which is off by up to two units in the last place, where
// PyTorch's kernels divide exactly. Under a rounding, a comparison or a cast to an integer such a unit is a
// whole step: round(x / scale) of a tie. So every division is exact that a value depends on which is rounded,
// compared or cast, also through tensors that other kernels make, except through sums: what PyTorch adds in
// another order has other last bits anyway.
#pragma once

#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

// Such divisions become Fn::kDivExact, in the bodies of `fused` and of attention's scores. The last rewrite:
// passes know kDiv alone.
void exact_divisions(Graph& graph, Fused& fused);

}  // namespace nereid::compiler
