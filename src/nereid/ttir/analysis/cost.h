// What a launch moves and computes, without its tensors.
#pragma once

#include <functional>

#include "nereid/ttir/analysis/cost_analysis.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// By analysis of the text (cost_analysis.h); where control flow is not affine, or depends on what is loaded,
// by a sample of programs in which loads return zero. `buffer_bytes`: sizes of the launch's buffers, where
// known, which bound what is touched there.
Cost count_cost(const Module& module, const Function& kernel, const Code& code, const Launch& launch,
                const std::vector<BoundArgument>& arguments, const std::vector<int64_t>& buffer_bytes,
                const std::function<void(Machine&)>& set_parameters);

// By running every program without its tensors: what the analysis is held against. Time and memory grow with
// the grid.
Cost walk_cost(const Module& module, const Code& code, const Launch& launch, int64_t buffers,
               const std::function<void(Machine&)>& set_parameters);

// The floating-point operations of one run of an instruction lowered from `op`; transcendental functions
// count as one.
double flops_of(const Module& module, const Op& op);

}  // namespace nereid::ttir
