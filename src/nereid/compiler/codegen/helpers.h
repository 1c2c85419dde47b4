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

// The helpers and those that they call.
std::set<std::string> with_callees(std::set<std::string> helpers);

}  // namespace nereid::compiler
