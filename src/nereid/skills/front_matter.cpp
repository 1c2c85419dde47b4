#include "nereid/skills/front_matter.h"

#include <charconv>

#include "nereid/base/printable.h"
#include "nereid/lm/text/utf8.h"

namespace nereid::skills {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, size_t line)
      : text_(text), file_(file), line_(line) {}

  Result<std::map<std::string, FrontMatterValue>> read() {
    std::map<std::string, FrontMatterValue> values;
    for (skip(true); at_ < text_.size(); skip(true)) {
      const size_t line = line_;
      std::string key;
      while (at_ < text_.size() && is_key(text_[at_])) key += text_[at_++];
      if (key.empty()) return expected("a key as in name = \"...\"");
      skip(false);
      if (!take('=')) return expected(fmt::format("= after {}", key));
      skip(false);
      FrontMatterValue value{.line = line};
      NEREID_TRY_STATUS(read_value(key, value));
      skip(false);
      if (at_ < text_.size() && text_[at_] != '\n') return expected("the end of the line");
      if (!values.emplace(key, std::move(value)).second)
        return input_error("{}:{}: expected each key once, got another '{}'", file_, line, key);
    }
    return values;
  }

 private:
  static bool is_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }

  // Blanks and comments; line ends too where `lines`.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == ' ' || c == '\t')
        ++at_;
      else if (c == '\n' && lines)
        ++at_, ++line_;
      else
        return;
    }
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Error expected(const std::string& what) const {
    const std::string_view rest = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
    return input_error("{}:{}: expected {}, got {}", file_, line_, what,
                       rest.empty() ? "the end of the line" : "'" + printable(rest.substr(0, 60)) + "'");
  }

  Status read_value(const std::string& key, FrontMatterValue& value) {
    if (!take('[')) {
      NEREID_TRY(value.texts.emplace_back(), read_text(key + ": a text or a list of texts in quotes"));
      return ok_status();
    }
    value.list = true;
    for (skip(true); !take(']'); skip(true)) {
      NEREID_TRY(value.texts.emplace_back(), read_text(key + ": texts in quotes and a ] after them"));
      skip(true);
      if (take(',')) continue;
      if (!take(']')) return expected(key + ": , or ] after a text");
      break;
    }
    return ok_status();
  }

  Result<std::string> read_text(const std::string& what) {
    if (!take('"')) return expected(what);
    std::string out;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_] : '\n';
      ++at_;
      uint32_t code = 0;
      if (escape == '"' || escape == '\\') {
        out += escape;
      } else if (escape == 't' || escape == 'n') {
        out += escape == 't' ? '\t' : '\n';
      } else if (escape == 'u' && hexadecimal(code)) {
        lm::append_code_point(code, out);
      } else {
        at_ = std::min(at_, text_.size()) - 1;
        return expected("\\\", \\\\, \\t, \\n or \\uXXXX after a backslash");
      }
    }
    return expected("a quote at the end of the text");
  }

  // Four digits of a character that UTF-8 has.
  bool hexadecimal(uint32_t& code) {
    if (at_ + 4 > text_.size()) return false;
    const char* from = text_.data() + at_;
    const auto [end, failure] = std::from_chars(from, from + 4, code, 16);
    if (failure != std::errc() || end != from + 4 || (code >= 0xD800 && code < 0xE000)) return false;
    at_ += 4;
    return true;
  }

  const std::string_view text_;
  const std::string& file_;
  size_t at_ = 0, line_;
};

}  // namespace

Result<std::map<std::string, FrontMatterValue>> parse_front_matter(std::string_view text,
                                                                   const std::string& file,
                                                                   size_t first_line) {
  return Reader(text, file, first_line).read();
}

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\t' || c == '\n')
      out += c == '\t' ? "\\t" : "\\n";
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace nereid::skills
