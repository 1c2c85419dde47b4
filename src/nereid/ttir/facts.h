// Facts about a kernel that the rules of a verdict ask for.
#pragma once

#include <string>
#include <vector>

#include "nereid/ttir/program.h"

namespace nereid::ttir {

bool uses_int_to_ptr(const Module& module);
std::vector<std::string> inline_assembly(const Module& module);  // the distinct strings, sorted
bool branches_on_float_data(const Module& module);

}  // namespace nereid::ttir
