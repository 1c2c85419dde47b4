// What a collected task is: its canonical form for deduplication, its operators, its difficulty, its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::dataset {

struct HarvestLabels {
  std::string digest{};     // SHA-256 of the last forward in canonical form, with shapes and dtypes
  std::string structure{};  // likewise without sizes and other numbers: operators, options by name, wiring
  std::vector<std::string> operators{};        // of the calls that work on data, in order: "conv2d", "relu"
  std::vector<std::string> classes{};          // of each of these: "convolution", "pointwise"
  std::string difficulty{};                    // "easy", "medium" or "hard"
  std::vector<std::vector<int64_t>> inputs{};  // sizes of forward's tensors
  double flops = 0, bytes = 0;                 // of one forward
};

// Easy: one operator, or at most four that are pointwise, reductions or normalisations. Hard: more than six,
// or two and more of contraction, convolution, attention, recurrence, sort, scan and what is in no class.
// Medium: the rest. An error says why the trace is no task: nothing is computed, numbers are drawn, no tensor
// is returned.
Result<HarvestLabels> harvest_labels(const trace::Trace& trace);

}  // namespace nereid::dataset
