// The text of a tokenizer.json, with its two long lists apart: 150,000 tokens and as many merges as a tree of
// JSON values take a quarter of a second to make and a tenth to throw away; read as they come they take a
// fifth of that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

// Texts after each other.
class TextList {
 public:
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct TokenizerDocument {
  static constexpr TokenId kIdLimit = 1 << 24;

  Json rest;  // model.vocab is {} and model.merges is [] in it, where they were objects and arrays
  TextList spellings;
  std::vector<TokenId> ids;  // of each spelling, from 0 to kIdLimit - 1
  TextList lefts, rights;    // of each merge, neither empty

  // `what` names the document in errors.
  static Result<TokenizerDocument> parse(std::string_view text, std::string_view what);
};

}  // namespace nereid::lm
