// From what a model or a person handed in to the Python source that is judged.
//
// A .py file is its own source. A raw answer is text: thinking between <think> and </think> is left out, and
// of what remains the last complete code block counts. A block is fenced as in CommonMark (``` or ~~~, three
// or more, closed by at least as many); a fence that was never closed is no block; a fence inside a Python
// triple-quoted string is text. Blocks in other languages (a ```bash line about installing) do not count.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace nereid::verify {

inline constexpr size_t kMaxAnswerBytes = size_t{8} << 20;

// Characters [begin, end) of a text, counted in Unicode code points, as Python's str counts them.
struct Span {
  size_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

// The code, with as many empty lines before it as stood before it in the answer, so that line numbers are the
// answer's.
struct Code {
  std::string source;
  // Where it stood in the text that was handed in. The plan is what an answer says before its code: up to and
  // including </think> where it thinks, else up to the fence's line; none of a text that is source.
  Span code{};
  std::optional<Span> plan{};
};
struct NoCode {
  std::string rule;    // "no-code-block", "not-text", "too-long"
  std::string reason;  // one sentence
};
using Answer = std::variant<Code, NoCode>;

// Python source as it is: line ends and a byte order mark are made plain. NoCode where it is too long or not
// UTF-8.
Answer read_source(std::string_view text);

// A model's raw answer.
Answer read_answer(std::string_view text);

// Text of unknown kind: source where it begins like Python or holds no fence and no thinking,
// else an answer.
Answer read_either(std::string_view text);

}  // namespace nereid::verify
