// What a launch computes and touches, found from the kernel's text: time grows with the text, not with the
// grid.
//
// The kernel's integers become affine expressions of program ids, loop counters and lanes (symbolic.h); a
// step's floating-point operations count once for each point of the domain that it runs on, and an access
// touches the image of its domain (footprint.h). Where a minimum or a comparison depends on a program id the
// grid is cut in two there.
//
// What is not affine is left to a sample of programs (cost.cpp): control flow that depends on what is loaded
// makes all of it unknown, an address that does, or that is no such expression, the bytes of its buffer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nereid/ttir/analysis/footprint.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// One value for each parameter: its bits (an address for a pointer), or a descriptor.
struct BoundArgument {
  int64_t bits = 0;
  bool is_descriptor = false;
  DescriptorData descriptor{};
};

struct BufferTraffic {
  symbolic::BytesBetween read, written;  // distinct bytes
  // An address there depends on what is loaded, or is not affine: at most so many bytes more, each access
  // counted.
  double unknown_read = 0, unknown_written = 0;
};

struct CostAnalysis {
  double flops = 0;
  std::map<int64_t, BufferTraffic> buffers{};
  std::string unknown{};  // why nothing can be said; else empty
};

CostAnalysis analyze_cost(const Module& module, const Function& kernel, const Launch& launch,
                          const std::vector<BoundArgument>& arguments);

}  // namespace nereid::ttir
