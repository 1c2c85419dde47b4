// The cost model: what a kernel moves and computes, and how long that takes on a target at best.
#pragma once

#include <vector>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/ir/choices.h"

namespace nereid::compiler {

// What a kernel's modelled seconds follow from, on a target with its constants.
struct CostFeatures {
  double read = 0, written = 0;   // bytes of distinct tensors
  double asked = 0;               // bytes that a product's tiles ask for, less what their neighbours share
  double products = 0, rate = 1;  // FLOPs of a contraction, and how many its unit does in a second at best
  double other_flops = 0;
  double programs = 1, width = 1;  // in all, and how many run at a time
  double elements = 0;             // of a thread; 0 of products, attention and recurrent layers
  double launches = 1;
  double fixed = 0;  // seconds besides
  bool operator==(const CostFeatures&) const = default;
};
double seconds_of(const CostFeatures& features, const Target& target);

struct Estimate {
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double contraction_flops = 0;  // of `flops`, those that tensor cores do
  double seconds = 0;
  CostFeatures features{};
};

// Bytes: every distinct tensor that is loaded or stored, once, a tile's second reading of a factor counted as
// what the caches do not keep. Seconds: the slower of memory and arithmetic over the waves that the programs
// make, what each wave takes besides, and launches.
Estimate estimate(const Graph& graph, const Fused& fused, const TileKernel& kernel, const KernelText& text,
                  const Target& target);

// Other ways to cut a kernel, whose blocks fit the target.
std::vector<KernelChoice> alternatives(const TileKernel& kernel, const KernelText& text,
                                       const Target& target);

}  // namespace nereid::compiler
