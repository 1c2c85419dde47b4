// Functions that kernels call, written once into the file before them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace nereid::compiler {

// Helpers that stand for one operation of an expression: a kernel needs those whose calls are in its text.
const std::vector<std::string>& function_helpers();

// "@triton.jit" and the function, with a sentence of what it is for. Combine functions of reductions and
// scans (combine_name()) are helpers, too.
std::string helper_text(const std::string& name);

// The product of two blocks, added to `total` where that is not empty. `precision` is Triton's
// `input_precision`, "" for halves; "tf32x3" is the helper dot_tf32x3, which keeps infinities.
std::string dot_text(const std::string& left, const std::string& right, const std::string& total,
                     const std::string& precision);
// The statement that adds that product to `total`.
std::string add_dot(const std::string& total, const std::string& left, const std::string& right,
                    const std::string& precision);

// The helpers and those that they call.
std::set<std::string> with_callees(std::set<std::string> helpers);

}  // namespace nereid::compiler
