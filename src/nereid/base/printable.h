// Text that others wrote, made safe to show to a person: a candidate's file names, kernels, messages and
// source lines must not steer the terminal, or show as something that they are not.
#pragma once

#include <string>
#include <string_view>

namespace nereid {

enum class Lines { kOne, kMany };  // kOne: a line feed is escaped, too

// Escaped as in a Python string: control characters (\x1b, \r, \x7f; U+0080 to U+009f as \x80...), what
// changes the direction of text, what shows as nothing and line separators (\u202e, \u200b, \u2028), tags and
// private ones (\U000e0041). A byte that is no UTF-8 is \xff. A tab stays.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// A JSON document with such characters inside its strings as \uXXXX: another spelling of the same document.
std::string printable_json(std::string_view document);

}  // namespace nereid
