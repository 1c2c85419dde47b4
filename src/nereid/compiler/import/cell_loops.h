// Recurrent cells that forward calls in a Python loop:
//
//     for t in range(steps):
//         h = cell(x[t], h)
//
// Such calls are one recurrent layer, whose inputs are the calls' own. They are imported together, at the
// first of them where all inputs are there by then, else at the last.
#pragma once

#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

struct CellLoop {
  std::vector<size_t> calls;  // of the forward's steps, each of which starts from the one before
  size_t at = 0;              // where all of them are imported
};

// Loops of kMinSteps calls and more with the same weights, whose hidden states nothing else reads before
// `at`; of an LSTM, nothing but the next call reads a cell's state, but the last one.
std::vector<CellLoop> cell_loops(const trace::Trace& trace, const std::vector<const trace::Call*>& calls);

}  // namespace nereid::compiler
