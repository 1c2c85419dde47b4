// A byte-level BPE tokenizer, read from a `tokenizer.json` of Hugging Face's `tokenizers` package, and giving
// the same ids.
//
// Read are: the normalizer NFC (or none); the pre-tokenizers Split, Digits and ByteLevel, alone or in a
// Sequence that ends with ByteLevel; the model BPE, with ignore_merges; the post-processors ByteLevel and
// TemplateProcessing; the decoder ByteLevel; added tokens with all their flags. Anything else is an error
// that names the place in the file.
//
// Text is bytes. What is no valid UTF-8 in it is first replaced as Python's bytes.decode("utf-8", "replace")
// does it (utf8.h).
//
//   NEREID_TRY(const auto tokenizer, Tokenizer::load("tokenizer.json"));
//   Encoder encoder(*tokenizer);
//   std::vector<TokenId> ids;
//   NEREID_TRY_STATUS(encoder.encode("Hello", {}, ids));
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/text/pre_tokenizer.h"
#include "nereid/lm/tokenizer/added_tokens.h"
#include "nereid/lm/tokenizer/bpe.h"
#include "nereid/lm/tokenizer/token_table.h"
#include "nereid/lm/tokenizer/word_cache.h"

namespace nereid::lm {

// Immutable; threads share one.
class Tokenizer {
 public:
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path);
  // `what` names the document in errors.
  static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view json, std::string_view what);

  // One more than the highest id. Models may have more rows than that: the ids above decode to nothing.
  TokenId size() const { return static_cast<TokenId>(bytes_.size()); }
  // The token that is spelled so in the file ("Ġthe", "<|im_end|>").
  std::optional<TokenId> find(std::string_view spelling) const;
  // What a token adds to a decoded text: bytes, perhaps half a character. Empty where the id has no token.
  std::string_view bytes(TokenId id) const;
  bool special(TokenId id) const;

  // The text of the tokens, what is no valid UTF-8 replaced.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

 private:
  friend class Encoder;
  friend class TokenizerFile;
  Tokenizer() = default;

  bool nfc_ = false;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  TokenTable vocabulary_;   // by spelling, added tokens too
  TokenTable whole_words_;  // ignore_merges: by bytes, words that are one token whatever the merges say
  AddedTokenFinder raw_added_, normalized_added_;
  std::vector<TokenId> before_, after_;  // what the post-processor puts around a text
  std::vector<std::string> bytes_;
  std::vector<bool> special_;
};

struct EncodeOptions {
  bool add_special = true;     // what the post-processor adds: Llama 3's <|begin_of_text|>
  bool leave_special = false;  // special tokens in the text are not found: for untrusted text
};

// Encodes for one thread; remembers the tokens of words.
class Encoder {
 public:
  explicit Encoder(std::shared_ptr<const Tokenizer> tokenizer);
  // Appends the ids of `text`. An error: a regular expression gave up (never one of Qwen's or Llama 3's).
  Status encode(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& ids);

 private:
  Status encode_words(std::string_view text, std::vector<TokenId>& ids);
  void encode_word(std::string_view word, std::vector<TokenId>& ids);

  std::shared_ptr<const Tokenizer> tokenizer_;
  WordMerger merger_;
  PreTokenizerRun pre_tokenizer_;
  WordCache cache_;
  std::string lossless_, normalized_;
  std::vector<AddedTokenFinder::Piece> raw_pieces_, pieces_;
};

// Decodes tokens as they come, without ever giving half a character: the texts together are what decode()
// gives.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = false)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}
  // The text that is certain now; what may still become a character is held back.
  std::string push(TokenId id);
  // The end: what was held back is broken.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::string pending_;  // at most three bytes between calls
};

}  // namespace nereid::lm
