// The compiler's kernels for any batch (compiler/output/any_batch.h), judged at three.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/output/guard.h"
#include "nereid/search/evaluator.h"

namespace nereid::search {

struct AtBatch {
  int64_t batch = 0;
  Judged judged{};
};

struct DynamicBatch {
  std::string source;              // with its guard
  std::string assumptions;         // of the header
  std::vector<AtBatch> judged{};   // the task's own batch first; the first that is not verified ends it
  int64_t least = 1, largest = 0;  // batches that the guard lets pass

  bool verified() const { return judged.size() == 3 && judged.back().judged.verified(); }
};

// The batch is the leading size of forward's first tensor; every input with the same leading size has it. An
// Error (blamed on the input) says why the kernels depend on the batch in another way than by numbers.
Result<DynamicBatch> for_any_batch(Evaluator& evaluator, const Task& task, const compiler::Guard& guard,
                                   bool fallback, Deadline deadline);

}  // namespace nereid::search
