// Python text cut into tokens, exactly: joined they are the text again.
#pragma once

#include <string_view>
#include <vector>

namespace nereid::render {

bool name_character(char c);
bool is_decimal(char c);

// A name, a number, a string with its quotes, a comment up to its line's end, or one character of anything
// else.
std::vector<std::string_view> tokens_of(std::string_view text);

}  // namespace nereid::render
