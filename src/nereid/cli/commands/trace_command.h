// What `nereid trace` prints of a trace besides its own document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "nereid/trace/cost.h"
#include "nereid/trace/dataflow.h"
#include "nereid/trace/trace.h"

namespace nereid::cli {

struct TraceFacts {
  std::vector<std::vector<trace::StepCost>> costs;  // of each step of each phase
  trace::DataFlow flow;                             // of the last forward

  std::vector<bool> idle()
      const;  // of each step of the last forward: it writes something that reaches no output
};
TraceFacts trace_facts(const trace::Trace& trace);

// docs/trace_format.md's document, with `flops` and `bytes` of the last forward at the top, of each phase and
// of each step, `class` of each call, and `reaches_output` of each step of the last forward
// that writes anything. It can be read
// back as a trace.
nlohmann::json trace_json(const trace::Trace& trace, const TraceFacts& facts);

}  // namespace nereid::cli
