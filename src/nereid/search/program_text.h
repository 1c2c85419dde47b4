// A traced module as a straight program of PyTorch calls: what a baseline runs in place of the reference's
// own Python.
#pragma once

#include <string>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::search {

// Python with `make()`, which gives (inputs, state) made by the traced steps themselves, and `class
// Model(torch.nn.Module)`, which takes that state and computes the last forward. `device`: "cuda" or "cpu".
// An error says what has no text: kernels of the module's own, generators, operators that are not PyTorch's.
Result<std::string> program_text(const trace::Trace& trace, const std::string& device);

}  // namespace nereid::search
