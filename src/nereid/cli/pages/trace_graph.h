// The data flow of a trace's last forward as a Graphviz digraph.
#pragma once

#include <string>

#include "nereid/trace/dataflow.h"
#include "nereid/trace/trace.h"

namespace nereid::cli {

// Boxes are steps (filled where they are launches, dashed where they reach no output), ellipses what was
// there before (inputs, parameters) and the outputs; an edge says which tensor flows.
std::string trace_graph(const trace::Trace& trace, const trace::Phase& phase, const trace::DataFlow& flow);

}  // namespace nereid::cli
