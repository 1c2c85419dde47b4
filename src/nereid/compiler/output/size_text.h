// Strides and offsets of a view by the sizes of what it is a view of.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/ir/size.h"

namespace nereid::compiler {

// "20 * 16, 1, 2 * 16": strides of a view of what is in row-major order. Sizes, and other numbers, stay.
std::string strides_text(const std::vector<int64_t>& strides, const std::vector<int64_t>& sizes);

// "2 * 24 * 16 + 5": the element number `offset` of what is in row-major order, of 24 by 16 the third, then
// the sixth.
std::string element_text(const std::vector<int64_t>& sizes, int64_t offset);

}  // namespace nereid::compiler
