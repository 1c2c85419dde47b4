// The tensors that the judged call returns and is given, as rules name them.
#pragma once

#include <string>
#include <vector>

#include "nereid/verify/analysis/dataflow.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

struct FlatOutput {
  size_t position = 0;  // among the tensors of the output tree
  trace::StorageId storage = -1;
  bool floating = false;
};

// In the order of the tensors in the output tree; none where there is no judged call.
std::vector<FlatOutput> outputs_of(const TraceAnalysis& facts);

// The outputs that a launch has to lead to: the floating-point ones, or all where there are none of these,
// but not what the reference itself hands through without computing.
std::vector<FlatOutput> outputs_to_compute(const TraceAnalysis& reference, const Dataflow& reference_flow,
                                           const TraceAnalysis& candidate);

// "The output", or "Output 2" where there are several.
std::string output_name(const FlatOutput& output, size_t count);
// "input x", "parameter weight", "a tensor".
std::string storage_name(const trace::Trace& trace, trace::StorageId id);

// The position of the storage among the tensors given to the judged call, as text; empty where it is none
// of them.
std::string input_path(const TraceAnalysis& facts, trace::StorageId id);

}  // namespace nereid::verify
