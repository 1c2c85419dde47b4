#include "nereid/lm/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "nereid/lm/text/unicode.h"

namespace nereid::lm {
namespace {

// White_Space as the members of a set; PCRE2's own \s has U+180E besides.
constexpr std::string_view kSpaceSet =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

constexpr std::array kCategories = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",
                                    "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
                                    "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
constexpr std::array kScripts = {"Han",      "Hiragana", "Katakana",   "Hangul",  "Latin",
                                 "Greek",    "Cyrillic", "Arabic",     "Hebrew",  "Thai",
                                 "Armenian", "Bengali",  "Devanagari", "Georgian"};
// Two letters that are one character to a fold: ß is ss, and the ligatures of Latin.
constexpr std::array kLongFolds = {"ss", "ff", "fi", "fl", "st"};

// Of a category or a group of them.
std::string young_members(std::string_view category) {
  std::string text;
  for (const RecentRange& r : recent_ranges())
    if (std::string_view(r.category).starts_with(category))
      text += fmt::format(R"(\x{{{:X}}}-\x{{{:X}}})", r.first, r.last);
  return text;
}

// One pass over the pattern; `ignore_case_` follows (?i: ...) into and out of its group.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '(') {
        NEREID_TRY_STATUS(group());
      } else if (c == ')') {
        if (groups_.empty()) return wrong("a ')' that nothing opened");
        ignore_case_ = groups_.back();
        groups_.pop_back();
        literal_ = 0;
        copy(1);
      } else if (c == '[') {
        NEREID_TRY_STATUS(set());
      } else if (c == '\\') {
        NEREID_TRY_STATUS(escape());
      } else if (c == '^' || c == '$') {
        out_ += fmt::format("(?m:{})", c);
        literal_ = 0, ++at_;
      } else if (c == '{') {
        NEREID_TRY_STATUS(interval());
      } else {
        NEREID_TRY_STATUS(plain());
      }
    }
    if (!groups_.empty()) return wrong("the end of the pattern inside a group");
    return std::move(out_);
  }

 private:
  Error wrong(std::string_view what) const {
    return input_error("at character {} of {}: {}, which this program does not read as Oniguruma does", at_,
                       in_, what);
  }
  std::string_view rest() const { return in_.substr(at_); }
  void copy(size_t n) {
    out_ += in_.substr(at_, n);
    at_ += n;
  }

  Status plain() {
    const char c = in_[at_];
    if (c == '#' || c == '*' || c == '+' || c == '?' || c == '|' || c == '.') {
      literal_ = 0;
      copy(1);
      return ok_status();
    }
    const uint32_t length = first_code_point(in_.data() + at_).length;
    if (ignore_case_) {
      if (length > 1) return wrong("a case-insensitive character outside ASCII");
      const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const std::array<char, 2> two = {literal_, lower};
      if (std::ranges::find(kLongFolds, std::string_view(two.data(), 2)) != kLongFolds.end())
        return wrong(fmt::format("case-insensitive '{}{}', which is one character too", literal_, lower));
      literal_ = lower;
    }
    copy(length);
    return ok_status();
  }

  Status group() {
    static constexpr std::array kOpenings = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    groups_.push_back(ignore_case_);
    literal_ = 0;
    for (const std::string_view opening : kOpenings)
      if (rest().starts_with(opening)) return copy(opening.size()), ok_status();
    if (!rest().starts_with("(?")) return copy(1), ok_status();
    // (?i:...), of i and m alone; (?i) without a group reaches over '|' in one engine and not in the other.
    size_t end = at_ + 2;
    bool off = false;
    std::string flags;
    for (; end < in_.size() && in_[end] != ':'; ++end) {
      if (in_[end] == '-') {
        off = true;
        flags += '-';
      } else if (in_[end] == 'i') {
        ignore_case_ = !off;
        flags += 'i';
      } else if (in_[end] == 'm') {
        flags += 's';
      } else {
        return wrong("a group of this kind");
      }
    }
    if (end == in_.size()) return wrong("the end of the pattern inside a group");
    out_ += fmt::format("(?{}:", flags);
    at_ = end + 1;
    return ok_status();
  }

  Status interval() {
    size_t end = at_ + 1;
    while (end < in_.size() && (std::isdigit(static_cast<unsigned char>(in_[end])) || in_[end] == ',')) ++end;
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    if (end == in_.size() || in_[end] != '}' || inside.empty() || inside.front() == ',' ||
        std::ranges::count(inside, ',') > 1)
      return wrong("a '{' that is not an interval such as {1,3}");
    const char next = end + 1 < in_.size() ? in_[end + 1] : '\0';
    if (next == '+') return wrong("an interval followed by '+'");
    if (next == '?' && inside.find(',') == std::string_view::npos)
      return wrong("an exact interval followed by '?'");
    literal_ = 0;
    copy(end + 1 - at_);
    return ok_status();
  }

  // \p{...}, \P{...}, \p{^...}: members for a set, or nothing but an error.
  Status property(bool in_set) {
    const size_t close = in_.find('}', at_);
    if (in_.size() < at_ + 4 || in_[at_ + 2] != '{' || close == std::string_view::npos)
      return wrong("\\p without {...}");
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    bool negative = in_[at_ + 1] == 'P';
    if (name.starts_with('^')) negative = !negative, name.remove_prefix(1);
    std::string members;
    if (std::ranges::find(kCategories, name) != kCategories.end()) {
      members = fmt::format("\\p{{{}}}{}", name, young_members(name));
    } else if (std::ranges::find(kScripts, name) != kScripts.end()) {
      members = fmt::format("\\p{{sc:{}}}", name);
    } else {
      return wrong(fmt::format("the property '{}'", name));
    }
    if (ignore_case_ && name.size() == 2 && name[0] == 'L') return wrong("a case-insensitive category");
    if (negative && in_set) return wrong("a property's complement inside a set");
    out_ += in_set ? members : fmt::format("[{}{}]", negative ? "^" : "", members);
    at_ = close + 1;
    return ok_status();
  }

  static std::string decimal() { return "\\p{Nd}" + young_members("Nd"); }

  Status hexadecimal(size_t digits) {
    const std::string_view text = rest().substr(2, digits);
    if (text.size() < digits || text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return wrong("an escape without its hexadecimal digits");
    out_ += fmt::format("\\x{{{}}}", text);
    at_ += 2 + digits;
    return ok_status();
  }

  Status escape(bool in_set = false) {
    literal_ = 0;
    if (at_ + 1 == in_.size()) return wrong("a lone '\\' at the end");
    const char c = in_[at_ + 1];
    switch (c) {
      case 'p':
      case 'P':
        return property(in_set);
      case 's':
        out_ += in_set ? std::string(kSpaceSet) : fmt::format("[{}]", kSpaceSet);
        break;
      case 'S':
        if (in_set) return wrong("\\S inside a set");
        out_ += fmt::format("[^{}]", kSpaceSet);
        break;
      case 'd':
        out_ += in_set ? decimal() : fmt::format("[{}]", decimal());
        break;
      case 'D':
        if (in_set) return wrong("\\D inside a set");
        out_ += fmt::format("[^{}]", decimal());
        break;
      case 'v':
        out_ += "\\x{B}";
        break;
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return copy(2), ok_status();
      case 'A':
      case 'z':
        if (in_set) return wrong("an anchor inside a set");
        return copy(2), ok_status();
      default:
        if (static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)))
          return wrong(fmt::format("the escape \\{}", c));
        return copy(2), ok_status();
    }
    at_ += 2;
    return ok_status();
  }

  Status set() {
    literal_ = 0;
    if (ignore_case_) return wrong("a case-insensitive set");
    copy(rest().starts_with("[^") ? 2 : 1);
    bool empty = true;
    for (; at_ < in_.size() && in_[at_] != ']'; empty = false) {
      if (in_[at_] == '[') return wrong("a set in a set");
      if (rest().starts_with("&&")) return wrong("an intersection of sets");
      if (in_[at_] == '\\') {
        NEREID_TRY_STATUS(escape(true));
      } else {
        copy(first_code_point(in_.data() + at_).length);
      }
    }
    if (at_ == in_.size()) return wrong("the end of the pattern inside a set");
    if (empty) return wrong("an empty set");
    copy(1);
    return ok_status();
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  bool ignore_case_ = false;
  std::vector<bool> groups_;  // what `ignore_case_` was outside each open group
  char literal_ = 0;          // the case-insensitive letter before this one, 0 where there is none
};

std::string pcre2_message(int code) {
  std::array<char, 256> text{};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  return text.data();
}

}  // namespace

Result<std::string> to_pcre2(std::string_view pattern) { return Translation(pattern).run(); }

std::string quoted_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}-#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

struct Pattern::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Pattern::Pattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::compile(std::string pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP, &error, &offset, context.get());
  if (code->code == nullptr)
    return input_error("at byte {} of {}: {}", offset, pattern, pcre2_message(error));
  uint32_t matches_empty = 0;
  pcre2_pattern_info(code->code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) return input_error("{} matches the empty text: it cannot split", pattern);
  // Without the JIT (a system may forbid it) the same is found more slowly.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  return Pattern(std::move(code));
}

struct Pattern::Matcher::State {
  const pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Pattern::Matcher::Matcher(const Pattern& pattern) : state_(std::make_unique<State>()) {
  state_->code = pattern.code_->code;
  state_->data = pcre2_match_data_create(1, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  state_->stack = pcre2_jit_stack_create(size_t{32} << 10, size_t{16} << 20, nullptr);
  pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
}
Pattern::Matcher::Matcher(Matcher&&) noexcept = default;
Pattern::Matcher::~Matcher() = default;

Result<Pattern::Matcher::Match> Pattern::Matcher::find(std::string_view text, size_t from) {
  State& s = *state_;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int count = pcre2_match(s.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, s.data, s.context);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT)
    count =
        pcre2_match(s.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s.data, s.context);
  if (count == PCRE2_ERROR_NOMATCH) return Match{npos, npos};
  if (count < 0)
    return input_error("the regular expression gave up at byte {} of the text: {}", from,
                       pcre2_message(count));
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(s.data);
  return Match{offsets[0], offsets[1]};
}

}  // namespace nereid::lm
