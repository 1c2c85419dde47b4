// Characters of TTIR text to words of it. Trouble is remembered, not thrown: after the first error every call
// fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::ttir {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool failed() const { return failed_; }
  const std::string& message() const { return message_; }
  // Remembers the first error, with the line and column where the scanner stands. Always false.
  bool fail(const std::string& what);
  bool unsupported(const std::string& what);  // the message begins "Unsupported: "

  size_t position() const { return position_; }
  void rewind(size_t position) { position_ = position; }
  int line() const;
  bool at_end();

  // Skips blanks and comments, then takes `word` if it comes next (a word that ends in a letter or digit is
  // taken only where it ends there).
  bool accept(std::string_view word);
  bool expect(std::string_view word);
  bool peek(std::string_view word);
  char peek_char();

  std::optional<std::string> identifier();  // a bare one: letters, digits, _ . $ (not a digit first)
  std::optional<std::string> suffix_identifier(
      char sigil);                      // %x, @f, ^bb0, #loc, with the sigil taken and left out
  std::optional<std::string> quoted();  // a string with its escapes undone
  std::optional<int64_t> integer();     // decimal or 0x, a sign allowed; wraps at 64 bits
  // A number as its text, where the caller knows the type: 12, -1.5e+00, 0x7FC00000.
  std::optional<std::string_view> number();
  // One dimension and its `x`, as in tensor<4x8xf32>.
  std::optional<int64_t> dimension();
  // Skips a balanced <...>, (...), [...] or {...} that comes next, and gives its text.
  std::optional<std::string_view> balanced();

 private:
  void skip_blanks();
  std::string_view text_;
  size_t position_ = 0;
  bool failed_ = false;
  std::string message_;
};

}  // namespace nereid::ttir
