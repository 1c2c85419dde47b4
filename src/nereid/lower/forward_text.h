// The forward of a lowered module: allocations, launches, what PyTorch keeps, and what is returned.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lower/emit.h"
#include "nereid/lower/source_file.h"

namespace nereid::lower {

// `texts`: of each of the fused kernels, in their order. Indented as a member of a class.
Result<std::string> forward_text(const trace::Trace& trace, const Graph& graph, const Fused& fused,
                                 const std::vector<KernelText>& texts, const SourceFile& source);

}  // namespace nereid::lower
