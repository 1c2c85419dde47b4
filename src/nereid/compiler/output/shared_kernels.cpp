#include "nereid/compiler/output/shared_kernels.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <set>

#include "nereid/compiler/output/python_tokens.h"

namespace nereid::compiler {
namespace {

using std::string_view;

bool is_space(string_view token) { return token == " " || token == "\n"; }

bool is_fixed(string_view name) {
  static const std::set<string_view> names = {
      "and",    "as",     "assert", "break", "continue", "def",    "elif", "else",     "False", "for",
      "if",     "import", "in",     "is",    "lambda",   "None",   "not",  "or",       "pass",  "range",
      "return", "True",   "while",  "with",  "torch",    "triton", "tl",   "libdevice"};
  return names.contains(name) || is_decimal(name.front()) || !name_character(name.front());
}

// The tokens that mean something, each with the spaces at the beginning of its line.
class Canonical {
 public:
  explicit Canonical(string_view function) : tokens_(tokens_of(function)) {}

  std::string run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const string_view token = tokens_[i];
      if (token.starts_with('#')) continue;
      if (token == "(" || token == "[" || token == "{") ++depth_;
      if (token == ")" || token == "]" || token == "}") --depth_;
      text_ += is_fixed(token) || !is_own(i) ? std::string(token) : numbered(token);
    }
    drop_trailing_spaces();
    return std::move(text_);
  }

 private:
  string_view next_of(size_t at) const {
    while (++at < tokens_.size() && tokens_[at] == " ") continue;
    return at < tokens_.size() ? tokens_[at] : "";
  }
  string_view before(size_t at) const {
    while (at-- > 0)
      if (!is_space(tokens_[at])) return tokens_[at];
    return "";
  }

  bool is_own(size_t at) const {
    const string_view next = next_of(at);
    if (before(at) == ".") return false;
    if (next == "(") return before(at) == "def";  // of what it calls nothing is known: the name stays
    if (depth_ > 0 && next == "=" && !text_follows_equal(at)) return false;  // a keyword argument
    return true;
  }
  // Whether the "=" after the name at `at` is one of "==".
  bool text_follows_equal(size_t at) const {
    while (++at < tokens_.size() && tokens_[at] == " ") continue;
    return at + 1 < tokens_.size() && tokens_[at + 1] == "=";
  }

  std::string numbered(string_view name) {
    return fmt::format("${}", numbers_.try_emplace(name, numbers_.size()).first->second);
  }

  void drop_trailing_spaces() {
    std::string kept;
    for (const char c : text_) {
      if (c == '\n')
        while (!kept.empty() && kept.back() == ' ') kept.pop_back();
      if (c == '\n' && (kept.empty() || kept.back() == '\n')) continue;
      kept += c;
    }
    text_ = std::move(kept);
  }

  std::vector<string_view> tokens_;
  std::map<string_view, size_t> numbers_;
  std::string text_;
  int depth_ = 0;
};

bool same_constants(const KernelText& a, const KernelText& b) {
  if (a.constants.size() != b.constants.size() || a.pointers.size() != b.pointers.size()) return false;
  for (size_t i = 0; i < a.constants.size(); ++i)
    if (a.constants[i].name != b.constants[i].name) return false;
  return a.helpers == b.helpers && (a.steps > 0) == (b.steps > 0);
}

}  // namespace

std::string canonical_text(string_view function) { return Canonical(function).run(); }

void share_equal_kernels(std::vector<KernelText>& kernels) {
  std::multimap<std::string, const KernelText*> known;
  for (KernelText& kernel : kernels) {
    if (kernel.text.empty()) continue;
    const std::string canonical = canonical_text(kernel.text);
    const auto [first, last] = known.equal_range(canonical);
    const auto equal =
        std::find_if(first, last, [&](const auto& k) { return same_constants(*k.second, kernel); });
    if (equal == last) {
      known.emplace(canonical, &kernel);
      continue;
    }
    kernel.text.clear();
    kernel.name = equal->second->name;
  }
}

}  // namespace nereid::compiler
