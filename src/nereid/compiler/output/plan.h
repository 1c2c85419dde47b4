// The plan of a lowered module in words: what became one kernel and why, how it is cut, what that saves.
#pragma once

#include <string>

#include "nereid/compiler/module.h"

namespace nereid::compiler {

std::string plan_text(const trace::Trace& trace, const Graph& graph, const Fused& fused, const Module& module,
                      const Target& target);

}  // namespace nereid::compiler
