// Reductions and scans of a block as Triton text.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

inline bool is_place(Reduction reduction) {
  return reduction == Reduction::kArgMax || reduction == Reduction::kArgMin;
}

// The literal that changes nothing: of integers the least or the largest there is.
std::string identity_text(Reduction reduction, DType type);
// The function that combines two elements, or two pairs of an element and its place: see helpers.h. Of
// equal elements a reduction names the first, a scan the last.
std::string combine_name(Reduction reduction, bool scan);
// "a + b", "larger_of(a, b)": two accumulators; of a floating-point scan (a
// product's are float64) two parts of it.
std::string combined(Reduction reduction, const std::string& a, const std::string& b, bool scan = false);
// A block over `axis`; `helpers` gains the function that it calls. Not for places.
std::string reduced_text(Reduction reduction, const std::string& block, int axis,
                         std::vector<std::string>& helpers, bool scan = false);
std::string scanned_text(Reduction reduction, const std::string& block, int axis, DType type,
                         std::vector<std::string>& helpers);

}  // namespace nereid::compiler
