// The trace of a program without Python: what the tracer would record of its file.
//
// It has what the compiler and the cost model read: the module's state, the inputs and one forward. The
// phases before that, values of integer inputs and the parts of composite operators are left out, so it can
// be lowered and costed but not replayed.
#pragma once

#include <optional>
#include <string>

#include "nereid/synth/write/emit.h"
#include "nereid/trace/trace.h"

namespace nereid::synth {

// Of the file that `emit` wrote with this layout, named `file`. Nothing where an operator's calls are not
// known (ops/calls.h).
std::optional<trace::Trace> traced(const Program& program, const CodeStyle& style, const Layout& layout,
                                   const std::string& file);

}  // namespace nereid::synth
