// Tokens that are found in a text as they stand, before anything else is done to it: <|im_end|> and its kind.
//
// Of several that begin at one place the longest is taken, of places the first, and what was taken is not
// looked at again; `single_word` then throws some away, `lstrip` and `rstrip` take white space in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool single_word = false;  // only where no word character is next to it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in normalized text; else in the text as it came
  bool special = false;      // left out by decode(skip_special)
};

// A set of such tokens to look for.
class AddedTokenFinder {
 public:
  // `text` of a token is what is looked for: its content, normalized where it asks for that.
  void add(const AddedToken& token, std::string text);
  bool empty() const { return nodes_.empty(); }

  struct Piece {
    std::string_view text;
    TokenId token;  // kNoToken: text between tokens
  };
  // Appends the pieces of `text` in order. `leave_special`: special tokens are text like any other.
  void split(std::string_view text, bool leave_special, std::vector<Piece>& pieces) const;

 private:
  struct Node {
    uint32_t child = 0, sibling = 0;  // 0: none
    uint32_t token = UINT32_MAX;      // into tokens_
    char byte = 0;
  };
  uint32_t child_of(uint32_t node, char byte) const;
  // The longest token that `text` begins with: its index and length.
  struct Found {
    uint32_t token;
    size_t length;
  };
  Found longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;  // a trie; [0] is its root
  std::array<bool, 256> begins_{};
  std::string first_bytes_;  // those of begins_
};

}  // namespace nereid::lm
