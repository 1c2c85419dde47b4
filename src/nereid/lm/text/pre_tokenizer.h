// How a text is cut into words before the merges, as a tokenizer file says: splits by patterns, digits, then
// the bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/text/pattern.h"

namespace nereid::lm {

// What becomes of what a pattern matched: a piece of its own, gone, part of the piece before it or of the one
// after it, or one piece with adjacent matches.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// One cut. `invert`: what is between the matches is what is meant.
struct SplitStep {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

struct PreTokenizer {
  std::vector<SplitStep> steps;  // in order, each on the pieces of the one before
  // Then, of "ByteLevel": a space before every piece that has none, and GPT-2's pattern.
  bool add_prefix_space = false;
  std::optional<Pattern> byte_level_pattern;
  // Not 0: the steps are the expression of WordScanner with so many digits and nothing else, so that it may
  // do the work.
  int scanner_digits = 0;
};

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Runs a PreTokenizer by its patterns; keeps buffers, so one for each thread. The PreTokenizer must outlive
// it.
class PreTokenizerRun {
 public:
  explicit PreTokenizerRun(const PreTokenizer& pre_tokenizer);
  // Hands each word of `text` (valid UTF-8), in order, to `word`. An error: a pattern gave up.
  Status words(std::string_view text, const std::function<void(std::string_view)>& word);

 private:
  struct Span {
    size_t begin, end;
    bool match;
  };
  // The matches in `text` and what is between them, covering it.
  Status matches(std::string_view text, Pattern::Matcher& matcher);
  Status cut(const SplitStep& step, Pattern::Matcher& matcher, std::string_view text);

  const PreTokenizer& pre_tokenizer_;
  std::vector<Pattern::Matcher> matchers_;  // of the steps
  std::optional<Pattern::Matcher> byte_level_matcher_;
  std::vector<Span> spans_;
  std::vector<std::string_view> pieces_, next_;
  std::string prefixed_;
};

}  // namespace nereid::lm
