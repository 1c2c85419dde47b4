// The plan of a lowered module in words: what became one kernel and why, how it is cut, what that saves.
#pragma once

#include <string>

#include "nereid/lower/module.h"

namespace nereid::lower {

std::string plan_text(const trace::Trace& trace, const Graph& graph, const Fused& fused, const Module& module,
                      const Target& target);

}  // namespace nereid::lower
