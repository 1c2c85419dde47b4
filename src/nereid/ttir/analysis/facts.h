// Facts about a kernel that the rules of a verdict ask for.
#pragma once

#include <string>
#include <vector>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

bool uses_int_to_ptr(const Module& module);
std::vector<std::string> inline_assembly(const Module& module);  // the distinct strings, sorted
bool branches_on_float_data(const Module& module);

bool multiplies(const Module& module);  // holds a dot

// Whether a branch, a loop's length, the place or mask of an access, an assertion or an integer divisor may
// depend on what was loaded, floating-point or not. Where not, the kernel takes the same time whatever the
// values are, and the sanitizer finds the same.
bool moves_by_data(const Module& module);

// How memory is reached through a pointer or descriptor parameter. All true where it is unknown.
struct MemoryUse {
  bool loads = false, stores = false, atomics = false;
};
std::vector<MemoryUse> memory_uses(const Module& module, const Function& kernel);

}  // namespace nereid::ttir
