// The cost model: what a kernel moves and computes, and how long that takes on a target at best.
#pragma once

#include <vector>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/ir/choices.h"

namespace nereid::compiler {

struct Estimate {
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double contraction_flops = 0;  // of `flops`, those that tensor cores do
  double seconds = 0;
};

// Bytes: every distinct tensor that is loaded or stored, once, a tile's second reading of a factor counted as
// what the caches do not keep. Seconds: the slower of memory and arithmetic over the waves that the programs
// make, and a launch.
Estimate estimate(const Graph& graph, const Fused& fused, const TileKernel& kernel, const KernelText& text,
                  const Target& target);

// Other ways to cut a kernel, whose blocks fit the target.
std::vector<KernelChoice> alternatives(const TileKernel& kernel, const KernelText& text,
                                       const Target& target);

}  // namespace nereid::compiler
