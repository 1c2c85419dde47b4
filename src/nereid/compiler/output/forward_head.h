// The head of the forward that is written: the task's parameters, with type hints.
#pragma once

#include <string>

#include "nereid/compiler/output/source_file.h"
#include "nereid/trace/trace.h"

namespace nereid::compiler {

// "def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:". Hints of the task stay; others
// are the types of what the traced forward was given and returned.
std::string forward_head(const trace::Trace& trace, const SourceFile& source);

}  // namespace nereid::compiler
