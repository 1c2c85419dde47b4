// Learning a byte-level BPE vocabulary from texts: the merges that `tokenizers`' BpeTrainer finds on the same
// texts, among equal counts the pair with the lower ids first.
//
// Words are counted once; then the commonest pair is merged in the words that hold it, again and again, and
// only counts of pairs next to a merge change. Texts are cut as a file with that pre-tokenizer will cut them;
// special tokens in them are no words of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/text/pre_tokenizer.h"

namespace nereid::lm {

// Whose normalizer and pre-tokenizer the new file has.
enum class TokenizerFamily { kQwen, kLlama3, kCode };

// kCode's, for vocabularies of code alone: a digit, an end of line with the next line's indent, a name with
// its underscores (and the space or dot before it), all that stands between names. A fifth fewer tokens than
// Qwen's expression needs for Python, and any number is as many as it has digits.
inline constexpr std::string_view kCodePattern = R"(\p{N}|[\r\n]+ *|[ .]?[\p{L}_]+|[^\p{L}\p{N}_\r\n]+)";

struct TrainerOptions {
  TokenizerFamily family = TokenizerFamily::kQwen;
  size_t vocabulary =
      32768;  // tokens, special ones and the 256 bytes included; fewer where the texts give out
  uint64_t min_frequency = 0;             // pairs that are less common are not merged
  std::vector<std::string> special = {};  // they get the first ids
  // Of the vocabulary so many tokens are phrases: several words of a text, punctuation and the ends of lines
  // among them, in which all names are of `phrase_words` (without a space or a dot before them; some may
  // have digits, as float32). Those that spare the most tokens. They have the last ids and are added tokens
  // that are not special, so a text is first cut at them, and whatever else is a name or a number is cut as
  // everywhere. kCode alone.
  size_t phrases = 0;
  std::set<std::string> phrase_words = {};
  // Phrases as they are, whole functions for instance, besides those: texts are cut at them, the first and
  // then the longest where several begin, and nothing else is learnt from them. kCode alone.
  std::vector<std::string> whole_phrases = {};
};

class Trainer {
 public:
  explicit Trainer(TrainerOptions options);
  // A text of its own: no word reaches into the next. What is no valid UTF-8 is replaced.
  void add(std::string_view text);
  size_t distinct_words() const { return words_.size(); }
  // The text of a tokenizer.json. An error: a vocabulary too small for the bytes and special tokens, special
  // tokens that are empty, given twice, or single bytes' symbols.
  Result<std::string> train() const;

 private:
  void add_between_phrases(std::string_view text);
  void count(std::string_view word);
  // Words that phrases are of, one after the other; a word that is of none ends them.
  void join(std::string_view word);
  // As join, but words that make a phrase word with digits together are one.
  void join_compounds(std::string_view word);
  void end_compound();
  void end_phrase();
  std::vector<std::string> phrases() const;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  TrainerOptions options_;
  std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> words_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> joined_;  // what phrases are of
  std::vector<uint32_t> phrase_;
  std::set<std::string, std::less<>> compound_begins_;  // of phrase words with digits
  std::vector<std::string_view> compound_;              // words that begin one
  std::map<std::vector<uint32_t>, uint64_t> seen_phrases_;
  std::string lossless_, normalized_;
  std::optional<PreTokenizer> by_pattern_;  // kCode
};

}  // namespace nereid::lm
