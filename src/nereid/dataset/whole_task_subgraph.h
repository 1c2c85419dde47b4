// A whole task as the search over subgraphs would ask about it: ATen's calls, state among the inputs.
#pragma once

#include <string>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::dataset {

struct SubgraphTask {
  std::string source;  // render/subgraph_source.h
  trace::Trace trace;  // of it: the last forward alone
};

// An error says why there is none: a forward that launches kernels, writes in place, draws random numbers,
// returns what it was given, or takes integers that are no index.
Result<SubgraphTask> as_subgraph(const trace::Trace& trace);

}  // namespace nereid::dataset
