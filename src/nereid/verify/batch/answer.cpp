#include "nereid/verify/batch/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "nereid/base/code_fences.h"
#include "nereid/base/text.h"

namespace nereid::verify {
namespace {

using std::string_view;

// The length of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none.
size_t utf8_length(string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0, beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::optional<NoCode> unfit(string_view text) {
  if (text.size() > kMaxAnswerBytes)
    return NoCode{"too-long", fmt::format("The candidate has {} bytes; at most {} are read.", text.size(),
                                          kMaxAnswerBytes)};
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 || text[at] == '\0')
      return NoCode{"not-text", fmt::format("The candidate is not UTF-8 text: byte {} is 0x{:02x}.", at,
                                            static_cast<unsigned char>(text[at]))};
    at += length;
  }
  return std::nullopt;
}

std::string plain(string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

// Code points of `raw` that become the first `plain_bytes` bytes of plain(raw), or come before them.
class PlainOffsets {
 public:
  explicit PlainOffsets(string_view raw) : raw_(raw) {
    if (raw_.starts_with("\xef\xbb\xbf")) at_ = 3, points_ = 1;
  }
  // Of growing offsets.
  size_t points_at(size_t plain_bytes) {
    while (plain_ < plain_bytes && at_ < raw_.size()) {
      const bool dropped = raw_[at_] == '\r' && at_ + 1 < raw_.size() && raw_[at_ + 1] == '\n';
      plain_ += dropped ? 0 : 1;
      points_ += (static_cast<unsigned char>(raw_[at_]) & 0xc0) != 0x80 ? 1 : 0;
      ++at_;
    }
    return points_;
  }

 private:
  string_view raw_;
  size_t at_ = 0, plain_ = 0, points_ = 0;
};

std::vector<string_view> lines_of(string_view text) {
  std::vector<string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether a line at the margin can only be Python (or is so in every answer that we want to read).
bool begins_like_python(string_view line) {
  for (string_view word : {"class ", "def ", "async def ", "@", "\"\"\"", "'''", "if __name__"})
    if (line.starts_with(word)) return true;
  if (line.starts_with("import ") && line.size() > 7 && is_name(line[7]))
    return line.find(". ") == string_view::npos;
  if (line.starts_with("from ")) return line.find(" import ") != string_view::npos;
  size_t name = 0;
  while (name < line.size() && is_name(line[name])) ++name;
  return name > 0 && line.substr(name).starts_with(" = ");
}

struct Block {
  size_t first = 0, last = 0;  // lines [first, last)
  size_t indent = 0;
  Language language{};
};

std::vector<Block> complete_blocks(const std::vector<string_view>& lines) {
  std::vector<Block> blocks;
  Fence open;
  bool inside = false;
  Language language{};
  TripleQuotes quotes;
  size_t first = 0;
  const auto begin_at = [&](const Fence& fence, size_t line) {
    open = fence, inside = true, first = line + 1, language = language_of(fence.info), quotes = {};
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto fence = fence_at(lines[i]);
    if (!inside) {
      if (fence) begin_at(*fence, i);
      continue;
    }
    const bool quoted = language != Language::kOther && quotes.open();
    const bool fits = fence && !quoted && fence->mark == open.mark && fence->length >= open.length;
    if (fits && fence->info.empty()) {
      blocks.push_back({first, i, open.indent, language});
      inside = false;
    } else if (fence && !fence->info.empty() && (fits || language == Language::kOther)) {
      // A block that names its language begins inside another: that one was never closed, or only held this
      // one.
      begin_at(*fence, i);
    } else {
      quotes.read(lines[i]);
    }
  }
  return blocks;
}

bool looks_like_python(const std::vector<string_view>& lines, const Block& block) {
  for (size_t i = block.first; i < block.last; ++i) {
    string_view line = lines[i];
    line.remove_prefix(std::min(block.indent, std::min(line.find_first_not_of(' '), line.size())));
    if (begins_like_python(line)) return true;
  }
  return false;
}

std::string code_of(const std::vector<string_view>& lines, const Block& block) {
  std::string source(block.first, '\n');
  for (size_t i = block.first; i < block.last; ++i) {
    const size_t spaces = std::min(lines[i].find_first_not_of(' '), lines[i].size());
    source += lines[i].substr(std::min(block.indent, spaces));
    source += '\n';
  }
  return source;
}

// Blanks out [from, to), keeping the lines.
void blank(std::string& text, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i)
    if (text[i] != '\n') text[i] = ' ';
}

constexpr string_view kThink = "<think>", kEnd = "</think>";

// Thinking runs from <think>, or from the start where a chat template has already written that, to the first
// </think>. Returns false where it never ends. `end_of_thinking`: where it ended, 0 where there is none.
bool drop_thinking(std::string& text, size_t& end_of_thinking) {
  size_t from = 0;
  while (true) {
    const size_t begin = text.find(kThink, from), end = text.find(kEnd, from);
    if (begin == std::string::npos && end == std::string::npos) return true;
    if (end == std::string::npos) return false;
    const bool headless = end < begin;
    if (headless && from > 0) return true;  // a stray end mark in the answer itself
    blank(text, headless ? 0 : begin, end + kEnd.size());
    from = end_of_thinking = end + kEnd.size();
    // Later ones count only while no code has begun: an answer's code may speak of <think> as it likes.
    const size_t next = text.find(kThink, from);
    if (next == std::string::npos || text.substr(from, next - from).find("```") != std::string::npos)
      return true;
  }
}

}  // namespace

Answer read_source(string_view text) {
  if (auto trouble = unfit(text)) return *trouble;
  std::string source = plain(text);
  PlainOffsets offsets(text);
  const size_t begin = offsets.points_at(0);
  return Code{.source = source, .code = {begin, offsets.points_at(source.size())}};
}

Answer read_answer(string_view raw) {
  if (auto trouble = unfit(raw)) return *trouble;
  std::string text = plain(raw);
  size_t end_of_thinking = 0;
  if (!drop_thinking(text, end_of_thinking))
    return NoCode{"no-code-block", "The answer ends inside <think>: it never came to its code."};
  const auto lines = lines_of(text);
  const auto blocks = complete_blocks(lines);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (block->language == Language::kOther) continue;
    if (block->language == Language::kUnspecified && !looks_like_python(lines, *block)) continue;
    const auto offset_of = [&](size_t line) {
      return line < lines.size() ? static_cast<size_t>(lines[line].data() - text.data()) : text.size();
    };
    const size_t fence = offset_of(block->first - 1),
                 plan_end = end_of_thinking > 0 ? end_of_thinking : fence;
    PlainOffsets offsets(raw);
    Code code{.source = code_of(lines, *block)};
    code.plan = Span{0, offsets.points_at(plan_end)};
    code.code.begin = offsets.points_at(offset_of(block->first));
    code.code.end = offsets.points_at(offset_of(block->last));
    return code;
  }
  if (!blocks.empty())
    return NoCode{"no-code-block",
                  fmt::format("None of the answer's {} code blocks is Python.", blocks.size())};
  const bool opened =
      std::any_of(lines.begin(), lines.end(), [](string_view line) { return fence_at(line).has_value(); });
  return NoCode{"no-code-block",
                opened ? "The answer's code block is never closed." : "The answer holds no code block."};
}

Answer read_either(string_view text) {
  if (auto trouble = unfit(text)) return *trouble;
  const std::string clean = plain(text);
  bool marked = clean.find(kThink) != std::string::npos || clean.find(kEnd) != std::string::npos,
       python = false;
  bool first = true;
  for (const auto line : lines_of(clean)) {
    marked |= fence_at(line).has_value();
    if (first && !trimmed(line).empty() && !line.starts_with("#")) {
      if (begins_like_python(line)) return read_source(text);
      first = false;
    }
    python |= begins_like_python(line);
  }
  return marked || !python ? read_answer(text) : read_source(text);
}

}  // namespace nereid::verify
