// Python lines that are too long, broken as Black does.
#pragma once

#include <string>
#include <string_view>

namespace nereid::render {

constexpr size_t kLineWidth = 110;

// Text whose statements stand on one line each (statements of several lines are fine where their lines are
// short enough). A longer line is broken in its last brackets that are not empty: what they hold goes on a
// line of its own, or, where that is too long, each part between commas (many short ones fill lines), else
// between the operators that bind least. A right side without brackets around it is put in brackets. Comments
// are filled; one that ends a broken line goes before it. Strings are left as they are, however long.
std::string with_line_breaks(std::string_view text, size_t width = kLineWidth);

// The reverse, of any text: each statement on one line, without the comma before a closing bracket that a
// line's end follows.
std::string without_line_breaks(std::string_view text);

// Words in lines of at most `width` characters, each line after the first behind `indent`.
std::string filled(std::string_view text, std::string_view indent, size_t width);

}  // namespace nereid::render
