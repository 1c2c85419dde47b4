#include "nereid/lm/text/byte_level.h"

#include "nereid/lm/text/utf8.h"

namespace nereid::lm {
namespace {

constexpr uint32_t kSymbols = 0x180;

struct Alphabet {
  std::array<uint16_t, 256> symbols{};
  std::array<int16_t, kSymbols> bytes{};
};

// Bytes that are printable in Latin-1 stand for themselves, the others follow from U+0100 in their order.
Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const auto symbol = printable ? static_cast<uint16_t>(byte) : next++;
    alphabet.symbols[byte] = symbol;
    alphabet.bytes[symbol] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& alphabet() {
  static const Alphabet made = make_alphabet();
  return made;
}

}  // namespace

const std::array<uint16_t, 256>& byte_symbols() { return alphabet().symbols; }

std::string spelled(std::string_view bytes) {
  std::string symbols;
  for (const char byte : bytes) append_code_point(byte_symbols()[static_cast<unsigned char>(byte)], symbols);
  return symbols;
}

std::optional<std::string> unspelled(std::string_view symbols) {
  const auto& bytes = alphabet().bytes;
  std::string out;
  out.reserve(symbols.size());
  for (size_t at = 0; at < symbols.size();) {
    const CodePoint c = first_code_point(symbols.data() + at);
    if (c.value >= kSymbols || bytes[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(bytes[c.value]));
    at += c.length;
  }
  return out;
}

}  // namespace nereid::lm
