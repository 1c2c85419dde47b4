// The compiler, from a reference to a file with `ModelNew`.
#pragma once

#include <string>

#include "nereid/base/result.h"
#include "nereid/lower/emit.h"

namespace nereid::lower {

struct Module {
  std::string text;  // Python: the reference's source, our kernels, ModelNew
  std::vector<KernelText> kernels;
};

// `source` is the text that was traced. An error names the operator or the kernel that cannot be lowered.
Result<Module> lower_module(const trace::Trace& trace, const std::string& source);

}  // namespace nereid::lower
