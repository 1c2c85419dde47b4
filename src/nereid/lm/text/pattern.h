// A tokenizer file's regular expression. Such files are written for Oniguruma in its Ruby syntax; ours run in
// PCRE2 with its JIT.
//
// Where both engines agree the text is handed on; where PCRE2 spells it otherwise it is translated: \s is
// White_Space alone, categories are Unicode 16's (PCRE2 10.42 knows 14), ^ and $ are those of a line, (?m) is
// PCRE2's (?s), a script's name is no script extension. What they read differently and we do not translate is
// an error that names the place: back references, \b, \h, \R, \X, sets in sets, possessive intervals,
// case-insensitive text with a fold of several characters.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

namespace nereid::lm {

// The translation alone; the error begins with "at character N of PATTERN".
Result<std::string> to_pcre2(std::string_view pattern);

// The text with everything that means something to PCRE2 escaped.
std::string quoted_pattern(std::string_view text);

class Pattern {
 public:
  // `pattern` is PCRE2's. One that matches the empty text is refused: it cannot split.
  static Result<Pattern> compile(std::string pattern);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // What one thread needs to match.
  class Matcher {
   public:
    explicit Matcher(const Pattern& pattern);
    Matcher(Matcher&&) noexcept;
    ~Matcher();
    struct Match {
      size_t begin, end;  // both npos: there is none
    };
    static constexpr size_t npos = static_cast<size_t>(-1);
    // The first match at or after `from` in `text`, which is valid UTF-8. An error: PCRE2's limit of steps
    // was reached.
    Result<Match> find(std::string_view text, size_t from);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  explicit Pattern(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace nereid::lm
