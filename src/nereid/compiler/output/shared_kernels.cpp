#include "nereid/compiler/output/shared_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "nereid/compiler/output/forward_text.h"
#include "nereid/render/python_tokens.h"

namespace nereid::compiler {
namespace {

using render::is_decimal;
using render::name_character;
using render::tokens_of;
using std::string;
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

constexpr size_t kMaxParameters = 4;  // a kernel with more of them is hard to read

// A whole number that may be a parameter: 0 and 1 are no sizes.
std::optional<int64_t> size_of(string_view token) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), number);
  const bool whole = failure == std::errc() && end == token.data() + token.size();
  return whole && number > 1 ? std::optional(number) : std::nullopt;
}

bool is_hole(string_view token) { return token.front() == '{'; }

// A kernel's tokens, of which a hole is one.
std::vector<string_view> tokens_with_holes(string_view text) {
  std::vector<string_view> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find('{', at), text.size());
    for (const string_view token : tokens_of(text.substr(at, begin - at))) tokens.push_back(token);
    at = begin == text.size() ? begin : text.find('}', begin) + 1;
    if (at > begin) tokens.push_back(text.substr(begin, at - begin));
  }
  return tokens;
}

// A kernel's tokens with the places of its sizes among them: whole numbers and holes.
struct Sized {
  std::vector<string_view> tokens;
  std::vector<size_t> places;
  std::vector<int64_t> sizes;

  explicit Sized(string_view text) : tokens(tokens_with_holes(text)) {
    for (size_t t = 0; t < tokens.size(); ++t) {
      if (is_number_hole(tokens[t])) continue;
      const auto size = is_hole(tokens[t]) ? std::optional(read_hole(tokens[t]).value) : size_of(tokens[t]);
      if (size) places.push_back(t), sizes.push_back(*size);
    }
  }
  // The text with "2" for each size, which is none.
  string without_sizes() const {
    string text;
    size_t next = 0;
    for (size_t t = 0; t < tokens.size(); ++t) {
      const bool size = next < places.size() && places[next] == t;
      text += size ? "2" : string(tokens[t]);
      next += size ? 1 : 0;
    }
    return text;
  }
  // The numbers that the size at a place is made of, and the text between them.
  std::pair<std::vector<int64_t>, string> parts(size_t place) const {
    std::vector<int64_t> numbers;
    string form;
    const string_view token = tokens[places[place]];
    const string made = is_hole(token) ? read_hole(token).text : string(token);
    for (const string_view each : tokens_of(made)) {
      const auto number = size_of(each);
      if (number) numbers.push_back(*number);
      form += number ? "2" : string(each);
    }
    return {numbers, form};
  }
};

string upper(string_view text) {
  string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char c) { return std::toupper(c); });
  return made;
}

// "ROWS" of row, "K" of k_left.
string extent_of(string_view index) {
  if (index == "i") return "ELEMENTS";
  if (index.size() == 1 || (index.size() > 1 && index[1] == '_')) return upper(index.substr(0, 1));
  return upper(index) + "S";
}

// What a size is, from the tokens around it, and how sure that is: the least is the surest.
std::pair<int, string> role_of(const std::vector<string_view>& tokens, size_t at) {
  std::vector<string_view> before, after;
  for (size_t t = at; t-- > 0 && before.size() < 5;)
    if (tokens[t] != " " && tokens[t] != "(") before.push_back(tokens[t]);
  for (size_t t = at + 1; t < tokens.size() && after.size() < 2; ++t)
    if (tokens[t] != " " && tokens[t] != ")") after.push_back(tokens[t]);
  if (before.size() < 5 || after.size() < 2) return {9, "SIZE"};
  const bool blocks = after[0] == "," && after[1].starts_with("BLOCK_");
  if (before[0] == "<" && size_of(before[1])) return {5, "LENGTH"};  // of i % 1608
  if (before[0] == "<" && name_character(before[1][0])) return {0, extent_of(before[1])};
  if (before[0] == "+") return {4, "OFFSET"};
  if (blocks) return {1, upper(after[1].substr(6))};
  if (before[0] == "*" && name_character(before[1][0])) return {2, upper(before[1]) + "_STRIDE"};
  if ((before[0] == "/" || before[0] == "%") && name_character(before[before[0] == "/" ? 2 : 1][0]))
    return {3, upper(before[before[0] == "/" ? 2 : 1]) + "_PERIOD"};
  return {9, "SIZE"};
}

// Kernels that are one but for some sizes, the first of them the one that is kept.
//
// Its parameters are sizes by their values in all members. Where the members' sizes at a place are made of
// numbers in the same way, 5 * 96 and 7 * 32, and these are parameters, the place is written with them, ROWS
// * COLUMNS; else it is a parameter of its own.
class Family {
 public:
  explicit Family(KernelText& first) : members_{&first}, sized_{Sized(first.text)} {}

  const KernelText& first() const { return *members_.front(); }

  // False where they would differ in too many sizes.
  bool add(KernelText& kernel) {
    Sized sized(kernel.text);
    if (sized.sizes.size() != sized_.front().sizes.size()) return false;
    sized_.push_back(std::move(sized));
    if (!parameters()) {
      sized_.pop_back();
      return false;
    }
    members_.push_back(&kernel);
    return true;
  }

  // One text, and each launch with its own sizes.
  void merge() {
    if (members_.size() == 1) return;
    const Parameters varying = *parameters();
    const Sized& first = sized_.front();
    std::set<string> taken;
    for (const string_view token : first.tokens) taken.emplace(token);
    std::map<Values, string> names;
    std::vector<BlockConstant> added;
    for (const Values& values : varying) {
      std::pair<int, string> role = {10, "SIZE"};
      for (size_t place = 0; place < first.places.size(); ++place)
        if (at(place) == values) role = std::min(role, role_of(first.tokens, first.places[place]));
      const string name = names[values] = unique_name(role.second, taken);
      for (size_t m = 0; m < members_.size(); ++m) {
        auto& constants = members_[m]->constants;
        const auto end = constants.begin() + static_cast<std::ptrdiff_t>(added.size());
        constants.insert(end, {name, values[m], text_at(values, m)});
      }
      added.push_back({name});
    }
    string text = with_names(names);
    const size_t end = text.find("):\n");
    size_t begin = text.find(": tl.constexpr");  // before the first of them
    begin = begin < end ? text.rfind(' ', begin) + 1 : end;
    for (const BlockConstant& each : added) {
      const string parameter = each.name + ": tl.constexpr, ";
      text.insert(begin, parameter);
      begin += parameter.size();
    }
    for (size_t m = 1; m < members_.size(); ++m) {
      members_[m]->text.clear();
      members_[m]->name = members_.front()->name;
    }
    members_.front()->text = std::move(text);
  }

 private:
  using Values = std::vector<int64_t>;  // one of each member
  using Parameters = std::set<Values>;

  Values at(size_t place) const {
    Values values;
    for (const Sized& sized : sized_) values.push_back(sized.sizes[place]);
    return values;
  }
  // How a launch writes a member's size; empty: as a number.
  string text_at(const Values& values, size_t member) const {
    const Sized& sized = sized_[member];
    for (size_t place = 0; place < sized.places.size(); ++place)
      if (const string_view token = sized.tokens[sized.places[place]]; is_hole(token) && at(place) == values)
        return read_hole(token).text;
    return "";
  }
  static bool varies(const Values& values) {
    return std::ranges::any_of(values, [&](int64_t value) { return value != values[0]; });
  }
  // The numbers at a place, one after the other. Nothing where the members' sizes are not made in the same
  // way, or of one number.
  std::vector<Values> parts(size_t place) const {
    std::vector<Values> all;
    string form;
    for (const Sized& sized : sized_) {
      auto [numbers, own_form] = sized.parts(place);
      if (all.empty()) all.resize(numbers.size()), form = own_form;
      if (numbers.size() < 2 || own_form != form) return {};
      for (size_t i = 0; i < numbers.size(); ++i) all[i].push_back(numbers[i]);
    }
    return all;
  }

  // The fewest of two ways: whole sizes, or the numbers that they are made of. Nothing: too many of them.
  std::optional<Parameters> parameters() const {
    for (const bool whole : {true, false}) {
      Parameters found;
      std::vector<size_t> composed;
      for (size_t place = 0; place < sized_.front().sizes.size(); ++place) {
        if (!varies(at(place))) continue;
        if (parts(place).empty())
          found.insert(at(place));
        else
          composed.push_back(place);
      }
      for (const size_t place : composed) {
        if (found.contains(at(place))) continue;
        const auto missing = [&](const Values& part) { return varies(part) && !found.contains(part); };
        const std::vector<Values> made_of = parts(place);
        if (std::ranges::none_of(made_of, missing)) continue;
        if (whole)
          found.insert(at(place));
        else
          std::ranges::copy_if(made_of, std::inserter(found, found.end()), missing);
      }
      if (found.size() <= kMaxParameters) return found;
    }
    return std::nullopt;
  }

  // The first member's text with names for what varies.
  string with_names(const std::map<Values, string>& names) const {
    const Sized& first = sized_.front();
    std::map<size_t, string> written;  // by token
    for (size_t place = 0; place < first.places.size(); ++place) {
      if (!varies(at(place))) continue;
      const string_view token = first.tokens[first.places[place]];
      string& made = written[first.places[place]];
      if (const auto name = names.find(at(place)); name != names.end()) {
        made = name->second;
        continue;
      }
      Hole hole = read_hole(token);
      const std::vector<Values> made_of = parts(place);
      size_t next = 0;
      string text;
      for (const string_view each : tokens_of(hole.text)) {
        const auto name = size_of(each) ? names.find(made_of[next++]) : names.end();
        text += name == names.end() ? string(each) : name->second;
      }
      hole.text = std::move(text);
      made = hole.written();
    }
    string text;
    for (size_t t = 0; t < first.tokens.size(); ++t)
      text += written.contains(t) ? written.at(t) : string(first.tokens[t]);
    return text;
  }

  std::vector<KernelText*> members_;
  std::vector<Sized> sized_;  // of each member
};

}  // namespace

std::string canonical_text(string_view function) { return Canonical(function).run(); }

void share_equal_kernels(std::vector<KernelText>& kernels) {
  std::map<string, std::vector<Family>> families;  // by canonical text without sizes
  for (KernelText& kernel : kernels) {
    if (kernel.text.empty()) continue;
    auto& same = families[canonical_text(Sized(kernel.text).without_sizes())];
    const bool joined = std::ranges::any_of(
        same, [&](Family& family) { return same_constants(family.first(), kernel) && family.add(kernel); });
    if (!joined) same.emplace_back(kernel);
  }
  for (auto& [text, same] : families)
    for (Family& family : same) family.merge();
}

}  // namespace nereid::compiler
