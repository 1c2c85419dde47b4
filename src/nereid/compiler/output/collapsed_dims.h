// Sizes that a view makes of neighbours, which the task's text does not have: 189 of [27, 7, 23] as [189,
// 23]. They are written as products, in plans and in code alike.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// Of each such size the product: {189: "27 * 7"}. `known`: numbers of the task's text.
std::map<int64_t, std::string> collapsed_dims(const trace::Trace& trace, const std::set<std::string>& known);

// "27 * 7" for 189 of [2, 27, 7]: a number of ten or more as the product of neighbouring sizes; "" where no
// neighbours make it.
std::string product_of_neighbours(const std::vector<int64_t>& sizes, int64_t number);

// The numbers that stand in Python text, as they are written.
std::set<std::string> numbers_in(const std::string& source);

// A plan or Python text, its whole numbers that are such sizes written as products; in brackets where another
// operator would divide or subtract them otherwise. What a block goes by stays (BLOCK=256, rows=256,
// arange(0, 256), cdiv(n, 256)), and so do a step's number (#189), strings in double quotes and comments.
std::string with_collapsed_dims(const std::string& text, const std::map<int64_t, std::string>& merged);

}  // namespace nereid::compiler
