#include "nereid/lm/tokenizer/tokenizer.h"

#include "nereid/base/check.h"
#include "nereid/lm/text/unicode.h"
#include "nereid/lm/text/utf8.h"
#include "nereid/lm/text/word_scanner.h"

namespace nereid::lm {

std::optional<TokenId> Tokenizer::find(std::string_view spelling) const {
  const TokenId id = vocabulary_.find(spelling);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::bytes(TokenId id) const {
  return id >= 0 && id < size() ? std::string_view(bytes_[static_cast<size_t>(id)]) : std::string_view();
}

bool Tokenizer::special(TokenId id) const {
  return id >= 0 && id < size() && special_[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string joined, text;
  for (const TokenId id : ids)
    if (!skip_special || !special(id)) joined += bytes(id);
  append_lossy(joined, text);
  return text;
}

Encoder::Encoder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      merger_(tokenizer_->model_),
      pre_tokenizer_(tokenizer_->pre_tokenizer_) {}

Status Encoder::encode(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& ids) {
  const Tokenizer& t = *tokenizer_;
  if (options.add_special) ids.insert(ids.end(), t.before_.begin(), t.before_.end());
  if (!is_utf8(text)) {
    lossless_.clear();
    append_lossy(text, lossless_);
    text = lossless_;
  }
  raw_pieces_.clear();
  t.raw_added_.split(text, options.leave_special, raw_pieces_);
  for (const auto& raw : raw_pieces_) {
    if (raw.token != kNoToken) {
      ids.push_back(raw.token);
      continue;
    }
    std::string_view normal = raw.text;
    if (t.nfc_ && may_need_nfc(normal)) {
      normalized_.clear();
      append_nfc(normal, normalized_);
      normal = normalized_;
    }
    if (t.normalized_added_.empty()) {
      NEREID_TRY_STATUS(encode_words(normal, ids));
      continue;
    }
    pieces_.clear();
    t.normalized_added_.split(normal, options.leave_special, pieces_);
    for (const auto& piece : pieces_) {
      if (piece.token != kNoToken) {
        ids.push_back(piece.token);
      } else {
        NEREID_TRY_STATUS(encode_words(piece.text, ids));
      }
    }
  }
  if (options.add_special) ids.insert(ids.end(), t.after_.begin(), t.after_.end());
  return ok_status();
}

Status Encoder::encode_words(std::string_view text, std::vector<TokenId>& ids) {
  const auto encode = [&](std::string_view word, size_t readable) {
    if (cache_.append(word, readable, ids)) return;
    const size_t before = ids.size();
    encode_word(word, ids);
    cache_.keep(word, readable, std::span(ids).subspan(before));
  };
  const int digits = tokenizer_->pre_tokenizer_.scanner_digits;
  if (digits == 0)
    return pre_tokenizer_.words(text, [&](std::string_view word) { encode(word, word.size()); });
  const char* end = text.data() + text.size();
  for (WordScanner scanner(text, digits); !scanner.done();) {
    const std::string_view word = scanner.next();
    encode(word, static_cast<size_t>(end - word.data()));
  }
  return ok_status();
}

void Encoder::encode_word(std::string_view word, std::vector<TokenId>& ids) {
  if (const TokenId whole = tokenizer_->whole_words_.find(word); whole != kNoToken) {
    ids.push_back(whole);
  } else {
    merger_.encode(word, ids);
  }
}

std::string StreamDecoder::push(TokenId id) {
  if (skip_special_ && tokenizer_->special(id)) return {};
  pending_ += tokenizer_->bytes(id);
  // Back to where the last character begins: if it is cut, it waits.
  size_t whole = pending_.size();
  for (size_t back = 1; back <= 3 && back <= pending_.size(); ++back) {
    const size_t begin = pending_.size() - back;
    if ((static_cast<unsigned char>(pending_[begin]) & 0xC0) == 0x80) continue;
    if (utf8_step(std::string_view(pending_).substr(begin)).kind == Utf8Step::kCut) whole = begin;
    break;
  }
  std::string text;
  append_lossy(std::string_view(pending_).substr(0, whole), text);
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  append_lossy(pending_, text);
  pending_.clear();
  return text;
}

}  // namespace nereid::lm
