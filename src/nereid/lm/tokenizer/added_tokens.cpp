#include "nereid/lm/tokenizer/added_tokens.h"

#include <cstring>

#include "nereid/lm/text/unicode.h"

namespace nereid::lm {
namespace {

size_t leading_space(std::string_view text) {
  const UnicodeTable& table = unicode_table();
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = first_code_point(text.data() + at);
    if ((unicode_class(table, c.value) & kSpace) == 0) break;
    at += c.length;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  const UnicodeTable& table = unicode_table();
  size_t left = text.size();
  while (left > 0) {
    const CodePoint c = last_code_point(text.substr(0, left));
    if ((unicode_class(table, c.value) & kSpace) == 0) break;
    left -= c.length;
  }
  return text.size() - left;
}

bool is_single_word(std::string_view before, std::string_view after) {
  const UnicodeTable& table = unicode_table();
  const auto word = [&](CodePoint c) { return (unicode_class(table, c.value) & kWordCharacter) != 0; };
  return (before.empty() || !word(last_code_point(before))) &&
         (after.empty() || !word(first_code_point(after.data())));
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string text) {
  if (text.empty()) return;
  if (nodes_.empty()) nodes_.emplace_back();
  uint32_t node = 0;
  for (const char byte : text) {
    uint32_t next = child_of(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.sibling = nodes_[node].child, .byte = byte});
      nodes_[node].child = next;
    }
    node = next;
  }
  // Of two with one text the first is found.
  if (nodes_[node].token == UINT32_MAX) {
    nodes_[node].token = static_cast<uint32_t>(tokens_.size());
    tokens_.push_back(token);
  }
  if (!begins_[static_cast<unsigned char>(text[0])]) first_bytes_ += text[0];
  begins_[static_cast<unsigned char>(text[0])] = true;
}

uint32_t AddedTokenFinder::child_of(uint32_t node, char byte) const {
  uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

AddedTokenFinder::Found AddedTokenFinder::longest_at(std::string_view text) const {
  Found found = {UINT32_MAX, 0};
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child_of(node, text[i]);
    if (node == 0) break;
    if (nodes_[node].token != UINT32_MAX) found = {nodes_[node].token, i + 1};
  }
  return found;
}

void AddedTokenFinder::split(std::string_view text, bool leave_special, std::vector<Piece>& pieces) const {
  size_t done = 0;  // text before it is in pieces
  for (size_t at = 0; !nodes_.empty() && at < text.size();) {
    if (first_bytes_.size() == 1) {
      const void* next = std::memchr(text.data() + at, first_bytes_[0], text.size() - at);
      if (next == nullptr) break;
      at = static_cast<size_t>(static_cast<const char*>(next) - text.data());
    } else {
      while (at < text.size() && !begins_[static_cast<unsigned char>(text[at])]) ++at;
    }
    const Found found = longest_at(text.substr(at));
    if (found.token == UINT32_MAX) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found.length;
    at = end;
    const AddedToken& token = tokens_[found.token];
    if (leave_special && token.special) continue;
    if (token.single_word && !is_single_word(text.substr(0, begin), text.substr(end))) continue;
    if (token.lstrip) begin = std::max(begin - trailing_space(text.substr(0, begin)), done);
    if (token.rstrip) end += leading_space(text.substr(end));
    if (done < begin) pieces.push_back({text.substr(done, begin - done), kNoToken});
    pieces.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), kNoToken});
}

}  // namespace nereid::lm
