#include "nereid/lm/text/unicode.h"

#include <utf8proc.h>

#include <memory>
#include <vector>

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

// Younger than Unicode 14: those of 15 (utf8proc knows them, PCRE2 10.42 does not) and of 16.
constexpr RecentRange kYoung[] = {
    {0x897, 0x897, "Mn"},     {0xCF3, 0xCF3, "Mc"},     {0xECE, 0xECE, "Mn"},     {0x1B4E, 0x1B4F, "Po"},
    {0x1B7F, 0x1B7F, "Po"},   {0x1C89, 0x1C89, "Lu"},   {0x1C8A, 0x1C8A, "Ll"},   {0x2427, 0x2429, "So"},
    {0x2FFC, 0x2FFF, "So"},   {0x31E4, 0x31E5, "So"},   {0x31EF, 0x31EF, "So"},   {0xA7CB, 0xA7CC, "Lu"},
    {0xA7CD, 0xA7CD, "Ll"},   {0xA7DA, 0xA7DA, "Lu"},   {0xA7DB, 0xA7DB, "Ll"},   {0xA7DC, 0xA7DC, "Lu"},
    {0x105C0, 0x105F3, "Lo"}, {0x10D40, 0x10D49, "Nd"}, {0x10D4A, 0x10D4D, "Lo"}, {0x10D4E, 0x10D4E, "Lm"},
    {0x10D4F, 0x10D4F, "Lo"}, {0x10D50, 0x10D65, "Lu"}, {0x10D69, 0x10D6D, "Mn"}, {0x10D6E, 0x10D6E, "Pd"},
    {0x10D6F, 0x10D6F, "Lm"}, {0x10D70, 0x10D85, "Ll"}, {0x10D8E, 0x10D8F, "Sm"}, {0x10EC2, 0x10EC4, "Lo"},
    {0x10EFC, 0x10EFF, "Mn"}, {0x1123F, 0x11240, "Lo"}, {0x11241, 0x11241, "Mn"}, {0x11380, 0x11389, "Lo"},
    {0x1138B, 0x1138B, "Lo"}, {0x1138E, 0x1138E, "Lo"}, {0x11390, 0x113B5, "Lo"}, {0x113B7, 0x113B7, "Lo"},
    {0x113B8, 0x113BA, "Mc"}, {0x113BB, 0x113C0, "Mn"}, {0x113C2, 0x113C2, "Mc"}, {0x113C5, 0x113C5, "Mc"},
    {0x113C7, 0x113CA, "Mc"}, {0x113CC, 0x113CD, "Mc"}, {0x113CE, 0x113CE, "Mn"}, {0x113CF, 0x113CF, "Mc"},
    {0x113D0, 0x113D0, "Mn"}, {0x113D1, 0x113D1, "Lo"}, {0x113D2, 0x113D2, "Mn"}, {0x113D3, 0x113D3, "Lo"},
    {0x113D4, 0x113D5, "Po"}, {0x113D7, 0x113D8, "Po"}, {0x113E1, 0x113E2, "Mn"}, {0x116D0, 0x116E3, "Nd"},
    {0x1171E, 0x1171E, "Mc"}, {0x11B00, 0x11B09, "Po"}, {0x11BC0, 0x11BE0, "Lo"}, {0x11BE1, 0x11BE1, "Po"},
    {0x11BF0, 0x11BF9, "Nd"}, {0x11F00, 0x11F01, "Mn"}, {0x11F02, 0x11F02, "Lo"}, {0x11F03, 0x11F03, "Mc"},
    {0x11F04, 0x11F10, "Lo"}, {0x11F12, 0x11F33, "Lo"}, {0x11F34, 0x11F35, "Mc"}, {0x11F36, 0x11F3A, "Mn"},
    {0x11F3E, 0x11F3F, "Mc"}, {0x11F40, 0x11F40, "Mn"}, {0x11F41, 0x11F41, "Mc"}, {0x11F42, 0x11F42, "Mn"},
    {0x11F43, 0x11F4F, "Po"}, {0x11F50, 0x11F59, "Nd"}, {0x11F5A, 0x11F5A, "Mn"}, {0x1342F, 0x1342F, "Lo"},
    {0x13440, 0x13440, "Mn"}, {0x13441, 0x13446, "Lo"}, {0x13447, 0x13455, "Mn"}, {0x13460, 0x143FA, "Lo"},
    {0x16100, 0x1611D, "Lo"}, {0x1611E, 0x16129, "Mn"}, {0x1612A, 0x1612C, "Mc"}, {0x1612D, 0x1612F, "Mn"},
    {0x16130, 0x16139, "Nd"}, {0x16D40, 0x16D42, "Lm"}, {0x16D43, 0x16D6A, "Lo"}, {0x16D6B, 0x16D6C, "Lm"},
    {0x16D6D, 0x16D6F, "Po"}, {0x16D70, 0x16D79, "Nd"}, {0x18CFF, 0x18CFF, "Lo"}, {0x1B132, 0x1B132, "Lo"},
    {0x1B155, 0x1B155, "Lo"}, {0x1CC00, 0x1CCEF, "So"}, {0x1CCF0, 0x1CCF9, "Nd"}, {0x1CD00, 0x1CEB3, "So"},
    {0x1D2C0, 0x1D2D3, "No"}, {0x1DF25, 0x1DF2A, "Ll"}, {0x1E030, 0x1E06D, "Lm"}, {0x1E08F, 0x1E08F, "Mn"},
    {0x1E4D0, 0x1E4EA, "Lo"}, {0x1E4EB, 0x1E4EB, "Lm"}, {0x1E4EC, 0x1E4EF, "Mn"}, {0x1E4F0, 0x1E4F9, "Nd"},
    {0x1E5D0, 0x1E5ED, "Lo"}, {0x1E5EE, 0x1E5EF, "Mn"}, {0x1E5F0, 0x1E5F0, "Lo"}, {0x1E5F1, 0x1E5FA, "Nd"},
    {0x1E5FF, 0x1E5FF, "Po"}, {0x1F6DC, 0x1F6DC, "So"}, {0x1F774, 0x1F776, "So"}, {0x1F77B, 0x1F77F, "So"},
    {0x1F7D9, 0x1F7D9, "So"}, {0x1F8B2, 0x1F8BB, "So"}, {0x1F8C0, 0x1F8C1, "So"}, {0x1FA75, 0x1FA77, "So"},
    {0x1FA87, 0x1FA89, "So"}, {0x1FA8F, 0x1FA8F, "So"}, {0x1FAAD, 0x1FAAF, "So"}, {0x1FABB, 0x1FABF, "So"},
    {0x1FAC6, 0x1FAC6, "So"}, {0x1FACE, 0x1FACF, "So"}, {0x1FADA, 0x1FADC, "So"}, {0x1FADF, 0x1FADF, "So"},
    {0x1FAE8, 0x1FAE9, "So"}, {0x1FAF7, 0x1FAF8, "So"}, {0x1FBCB, 0x1FBEF, "So"}, {0x2B739, 0x2B739, "Lo"},
    {0x2EBF0, 0x2EE5D, "Lo"}, {0x31350, 0x323AF, "Lo"}};

constexpr CodePointRange kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                      {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                      {0x205F, 0x205F}, {0x3000, 0x3000}};

// Word characters besides letters, marks, decimal digits, letter-like numbers and connectors: the joiners,
// and circled and squared letters.
constexpr CodePointRange kOtherWordCharacters[] = {
    {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Combining marks, and a composite's halves, that came after Unicode 9.
constexpr CodePointRange kUnknownMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

// Starters that may be the second half of a composite.
constexpr CodePointRange kSecondHalves[] = {
    {0x9BE, 0x9BE},     {0x9D7, 0x9D7},     {0xB3E, 0xB3E},     {0xB56, 0xB57},     {0xBBE, 0xBBE},
    {0xBD7, 0xBD7},     {0xCC2, 0xCC2},     {0xCD5, 0xCD6},     {0xD3E, 0xD3E},     {0xD57, 0xD57},
    {0xDCF, 0xDCF},     {0xDDF, 0xDDF},     {0x102E, 0x102E},   {0x1161, 0x1175},   {0x11A8, 0x11C2},
    {0x1B35, 0x1B35},   {0x11127, 0x11127}, {0x1133E, 0x1133E}, {0x11357, 0x11357}, {0x114B0, 0x114B0},
    {0x114BA, 0x114BA}, {0x114BD, 0x114BD}, {0x115AF, 0x115AF}};

void mark(UnicodeTable& table, std::span<const CodePointRange> ranges, int bits) {
  for (const CodePointRange range : ranges)
    for (uint32_t c = range.first; c <= range.last; ++c) table[c] = static_cast<uint8_t>(table[c] | bits);
}

// The canonical composition of the decomposition of `text`, both of utf8proc's Unicode version.
void compose(std::string_view text, std::vector<int32_t>& buffer, std::string& out) {
  buffer.resize(4 * text.size() + 1);  // a byte becomes at most 4 code points; one more, as utf8proc asks
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_ssize_t length = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                               static_cast<utf8proc_ssize_t>(text.size()), buffer.data(),
                                               static_cast<utf8proc_ssize_t>(buffer.size()), options);
  NEREID_CHECK(length >= 0 && length < static_cast<utf8proc_ssize_t>(buffer.size()), "valid UTF-8, got: {}",
               utf8proc_errmsg(length));
  length = utf8proc_normalize_utf32(buffer.data(), length, options);
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    append_code_point(static_cast<uint32_t>(buffer[static_cast<size_t>(i)]), out);
}

// Whether NFC changes this code point where it stands alone.
bool changes_alone(uint32_t c, const utf8proc_property_t& property, std::vector<int32_t>& buffer) {
  if (property.decomp_seqindex == UINT16_MAX || property.decomp_type != 0 || (c >= 0xAC00 && c <= 0xD7A3))
    return false;
  std::string before, after;
  append_code_point(c, before);
  compose(before, buffer, after);
  return before != after;
}

int category_bits(int category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kWordCharacter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return kWordCharacter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWordCharacter;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    default:
      return 0;
  }
}

std::unique_ptr<UnicodeTable> make_table() {
  auto made = std::make_unique<UnicodeTable>();
  UnicodeTable& table = *made;
  std::vector<int32_t> buffer;
  for (uint32_t c = 0; c < kUnicodeTableSize; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const utf8proc_property_t& property = *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    int bits = category_bits(property.category);
    if (property.combining_class != 0 || changes_alone(c, property, buffer)) bits |= kUnsettled;
    table[c] = static_cast<uint8_t>(bits);
  }
  for (const RecentRange& young : kYoung) {
    const int bits = young.category[0] == 'L'                   ? kLetter | kWordCharacter
                     : young.category[0] == 'M'                 ? kWordCharacter
                     : std::string_view(young.category) == "Nd" ? kNumber | kWordCharacter
                     : young.category[0] == 'N'                 ? kNumber
                                                                : 0;
    mark(table, std::array{CodePointRange{young.first, young.last}}, bits);
  }
  mark(table, kSpaces, kSpace);
  mark(table, kOtherWordCharacters, kWordCharacter);
  mark(table, kSecondHalves, kUnsettled);
  mark(table, kUnknownMarks, kUnknownMark);
  for (const CodePointRange range : kUnknownMarks)
    for (uint32_t c = range.first; c <= range.last; ++c)
      table[c] = static_cast<uint8_t>(table[c] & ~kUnsettled);
  return made;
}

}  // namespace

const UnicodeTable& unicode_table() {
  static const std::unique_ptr<UnicodeTable> table = make_table();
  return *table;
}

std::span<const RecentRange> recent_ranges() { return kYoung; }

bool may_need_nfc(std::string_view text) {
  const UnicodeTable& table = unicode_table();
  for (size_t at = 0; at < text.size();) {
    // What is below U+0300 is settled.
    if (static_cast<unsigned char>(text[at]) < 0xCC) {
      ++at;
      continue;
    }
    const CodePoint c = first_code_point(text.data() + at);
    if (unicode_class(table, c.value) & kUnsettled) return true;
    at += c.length;
  }
  return false;
}

void append_nfc(std::string_view text, std::string& out) {
  const UnicodeTable& table = unicode_table();
  std::vector<int32_t> buffer;
  size_t copied = 0,
         settled = 0;  // text[settled..at) is the last character that is settled, with what may join it
  bool unsettled = false;
  const auto flush = [&](size_t end) {
    if (!unsettled) return;
    out.append(text.substr(copied, settled - copied));
    compose(text.substr(settled, end - settled), buffer, out);
    copied = end, unsettled = false;
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.data() + at);
    const uint8_t bits = unicode_class(table, c.value);
    if (bits & kUnsettled) {
      unsettled = true;
    } else {
      flush(at);
      settled = bits & kUnknownMark ? at + c.length : at;
    }
    at += c.length;
  }
  flush(text.size());
  out.append(text.substr(copied));
}

}  // namespace nereid::lm
