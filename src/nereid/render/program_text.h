// A traced module as a straight program of PyTorch calls and Triton launches: what is called in place of the
// module's own Python, a reference's or a candidate's.
#pragma once

#include <map>
#include <string>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::render {

struct ProgramText {
  // Python with `make()`, which gives (inputs, state) made by the traced steps themselves, and `class
  // Model(torch.nn.Module)`, which takes that state and computes the last forward.
  std::string text{};
  // By trace::Kernel::hash, the kernels that it launches, and how many constants each has. Machine code is
  // read from HASH.json in the program's folder, as tracer::to_json writes it
  // (python/nereid/_timing/called_kernels.py).
  std::map<std::string, int> kernels{};
};

// `device`: "cuda" or "cpu". `reference`: of a candidate, whose inputs are made by the reference's steps. An
// error says what has no text: generators, operators that are not PyTorch's, tensor descriptors, kernels
// where there is no GPU.
Result<ProgramText> program_text(const trace::Trace& trace, const std::string& device,
                                 const trace::Trace* reference = nullptr);

}  // namespace nereid::render
