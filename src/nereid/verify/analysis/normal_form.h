// The program in a Python file: its text without what people read.
#pragma once

#include <string>
#include <string_view>

namespace nereid::verify {

// Without comments, without the string that opens the file, without empty lines and spaces at the end of a
// line. Two files of one normal form compile to the same code but for line numbers and the module's __doc__,
// so what was found of one holds for the other.
std::string normal_form(std::string_view source);

}  // namespace nereid::verify
