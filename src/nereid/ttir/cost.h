// What a launch moves and computes, counted by running its scalars and leaving its tensors out.
#pragma once

#include <functional>

#include "nereid/ttir/executor.h"
#include "nereid/ttir/machine.h"
#include "nereid/ttir/program.h"

namespace nereid::ttir {

// `parameters` sets a machine's parameters from the launch. All programs are counted when they are few; else
// some, picked evenly, stand for all.
Cost count_cost(const Module& module, const Code& code, const Launch& launch, int64_t buffers,
                const std::function<void(Machine&)>& set_parameters);

// The floating-point operations of one run of an instruction lowered from `op`; transcendental functions
// count as one.
double flops_of(const Module& module, const Op& op);

}  // namespace nereid::ttir
