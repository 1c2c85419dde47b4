// What a search found, as a file that says where it holds: the candidate with its guard
// (compiler/output/guard.h), checked to be what was judged.
#pragma once

#include <string>

#include "nereid/compiler/output/guard.h"
#include "nereid/search/evaluator.h"

namespace nereid::search {

struct Guarded {
  std::string source;       // the candidate with its guard
  std::string assumptions;  // of the header: shapes, dtypes, constructor, mode
  bool traced = true;       // false: there was no time for it, so that the guard takes what is safe to hold
};

struct GuardOptions {
  bool fallback = false;  // calls elsewhere are done by the reference's own forward
  bool direct = false;    // the compiler wrote it: later calls launch without Triton's dispatch
  // Other than kNone: the module captures itself, and the file as a whole is judged. An Error blamed on the
  // input says why it is not verified or not captured, be it for lack of time.
  compiler::Assumptions::Graph graph = compiler::Assumptions::Graph::kNone;
  Deadline deadline = Deadline::never();  // of all traces and the verdict
};
// Traces the candidate with and without its guard, which must be the same program, and both files in the
// other mode, which says whether the mode matters. An Error is blamed on the input where a fallback cannot be
// had. After an interrupt or the deadline, also one while it traces, nothing is traced: then the guard takes
// the mode to matter and the state to be what the constructor makes, and there is no fallback.
Result<Guarded> guarded(Evaluator& evaluator, const Task& task, const std::string& source,
                        const compiler::Guard& guard, const GuardOptions& options);

// Whether train() and eval() make a difference to the reference, or to the candidate.
Result<bool> mode_matters(Evaluator& evaluator, const Task& task, const std::string& source);

// Whether eager PyTorch is faster, by the clock (surely: by the whole interval) or by more than the cost
// model's error.
bool slower_than_eager(const Task& task, const Judged& judged);

}  // namespace nereid::search
