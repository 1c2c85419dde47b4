// Kernels of one module that differ in names, or in a few sizes, become one, which forward calls with other
// arguments: the layers of a network repeat themselves, their code does not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nereid/compiler/codegen/emit.h"

namespace nereid::compiler {

// The text of one function without comments, its own names numbered in the order in which they appear: two
// functions with one canonical text do the same with arguments in the same places. Names that are called,
// attributes and keyword arguments stay as they are.
std::string canonical_text(std::string_view function);

// Of kernels with the same constants and one canonical text but for sizes (holes, ir/size.h, and other whole
// numbers of at least 2), all but the first lose their text and take its name. Sizes that differ, at most
// four that do not follow from each other, become constants of the kernel ("ROWS: tl.constexpr"), which each
// of the launches passes.
void share_equal_kernels(std::vector<KernelText>& kernels);

}  // namespace nereid::compiler
