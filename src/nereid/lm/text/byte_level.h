// The alphabet that byte-level vocabularies are spelled in: every byte is one printable character (GPT-2's
// table; a space is U+0120 "Ġ").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::lm {

// The symbol of each byte, a code point below U+0180.
const std::array<uint16_t, 256>& byte_symbols();

// "Ġthe" from " the".
std::string spelled(std::string_view bytes);
// " the" from "Ġthe", which is valid UTF-8; nothing where a character is no symbol.
std::optional<std::string> unspelled(std::string_view symbols);

}  // namespace nereid::lm
