#include "nereid/verify/stages/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace nereid::verify {
namespace {

using std::string_view;

// Reads one logical line of assignments. Anything that is not names, integers and + - * // ** << stops it.
class LineParser {
 public:
  explicit LineParser(string_view line) : text_(line) {}

  // target (= target)* = expression(, expression)*
  std::vector<Constant> assignments() {
    std::vector<std::vector<std::string>> targets;
    while (true) {
      const size_t here = at_;
      auto names = target();
      if (!names) {
        at_ = here;
        break;
      }
      targets.push_back(std::move(*names));
    }
    if (targets.empty()) return {};
    std::vector<int64_t> values;
    do {
      const auto value = sum();
      if (!value) return {};
      values.push_back(*value);
    } while (eat(","));
    skip();
    if (at_ < text_.size() && text_[at_] != '#' && text_[at_] != ';') return {};
    std::vector<Constant> out;
    for (const auto& names : targets) {
      if (names.size() != values.size()) return {};
      for (size_t i = 0; i < names.size(); ++i) out.push_back({names[i], values[i]});
    }
    if (eat(";")) {
      auto rest = LineParser(text_.substr(at_)).assignments();
      out.insert(out.end(), rest.begin(), rest.end());
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool eat(string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> name() {
    skip();
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
      ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_]))) return std::nullopt;
    std::string found(text_.substr(at_, end - at_));
    at_ = end;
    return found;
  }
  // name(, name)* [: int] followed by a single '=', which is eaten.
  std::optional<std::vector<std::string>> target() {
    std::vector<std::string> names;
    do {
      auto next = name();
      if (!next) return std::nullopt;
      names.push_back(*next);
    } while (eat(","));
    if (eat(":") && name() != "int") return std::nullopt;
    if (!eat("=") || peek() == '=') return std::nullopt;
    return names;
  }
  std::optional<int64_t> integer() {
    skip();
    int64_t value = 0;
    size_t digits = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '_' && digits > 0) continue;
      if (!std::isdigit(static_cast<unsigned char>(c))) break;
      if (++digits > 12) return std::nullopt;
      value = 10 * value + (c - '0');
    }
    if (digits == 0 ||
        (at_ < text_.size() && (text_[at_] == '.' || std::isalpha(static_cast<unsigned char>(text_[at_])))))
      return std::nullopt;
    return value;
  }
  std::optional<int64_t> factor() {
    if (++depth_ > 32) return std::nullopt;
    std::optional<int64_t> value;
    if (eat("(")) {
      value = sum();
      if (!eat(")")) return std::nullopt;
    } else {
      value = integer();
    }
    --depth_;
    if (value && eat("**")) {
      const auto power = factor();
      if (!power || *power > 62) return std::nullopt;
      int64_t result = 1;
      for (int64_t i = 0; i < *power; ++i)
        if (__builtin_mul_overflow(result, *value, &result)) return std::nullopt;
      return result;
    }
    return value;
  }
  std::optional<int64_t> product() {
    auto left = factor();
    while (left) {
      const bool divide = eat("//");
      if (!divide && !eat("*")) break;
      const auto right = factor();
      if (!right || (divide && *right == 0)) return std::nullopt;
      if (divide) {
        left = *left / *right;
      } else if (__builtin_mul_overflow(*left, *right, &*left)) {
        return std::nullopt;
      }
    }
    return left;
  }
  std::optional<int64_t> sum() {
    auto left = product();
    while (left) {
      const char sign = peek();
      const bool shift = eat("<<");
      if (!shift && sign != '+' && sign != '-') break;
      if (!shift) ++at_;
      const auto right = product();
      if (!right || (shift && (*right > 40 || *left > (1 << 20)))) return std::nullopt;
      left = shift ? *left << *right : sign == '+' ? *left + *right : *left - *right;
    }
    return left;
  }

  string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

constexpr int64_t kKeptPower = 256;

// The largest power of two, up to 256, that divides a size.
int64_t power_of(int64_t size) {
  int64_t power = 1;
  while (power < kKeptPower && size % (2 * power) == 0) power *= 2;
  return power;
}

// The next smaller size of one that is alone: about half, a multiple of `power`, odd where that is 1. 0 where
// there is none.
int64_t halved(int64_t size, int64_t power) {
  if (size <= 2) return 0;
  if (power == 1) return ((size / 2) | 1) < size ? (size / 2) | 1 : 0;
  return size / 2 / power * power;
}

// Sizes that keep their ratios are divided by one number, the smallest that leaves each its power of two. 0:
// there is none.
int64_t common_divisor(const std::vector<int64_t>& sizes) {
  for (const int64_t prime : {2, 3, 5, 7, 11, 13, 17, 19, 23})
    if (std::ranges::all_of(sizes, [&](int64_t size) {
          return size % prime == 0 && size / prime > 1 && power_of(size / prime) == power_of(size);
        }))
      return prime;
  return 0;
}

class Search {
 public:
  Search(const std::vector<Constant>& constants, const std::function<Result<Probe>(const Sizes&)>& probe,
         const Goal& goal)
      : constants_(constants), probe_(probe), goal_(goal) {
    for (const auto& c : constants) sizes_[c.name] = c.value;
  }

  Result<std::vector<Shrunk>> run() {
    NEREID_TRY(now_, probe_({}));
    if (!now_.legal) return input_error("the task cannot be traced at its own sizes");
    while (!fits()) {
      const auto* largest = pick();
      if (largest == nullptr) break;
      NEREID_TRY(const bool moved, lower(largest->name));
      if (!moved) frozen_.insert(largest->name);
    }
    if (!fits())
      return input_error(
          "--shrink: no smaller sizes keep the task legal, small enough, and as its author may rely on "
          "(multiples of powers of "
          "two up to 256, ratios, groups); the smallest found still needs {:.3g} MB and {:.3g} GFLOP "
          "(module-level integers: {}{})",
          now_.bytes / 1e6, now_.flops / 1e9, named(), smallest());
    std::vector<Shrunk> out;
    for (const auto& c : constants_)
      if (sizes_.at(c.name) != c.value) out.push_back({c.name, c.value, sizes_.at(c.name)});
    std::stable_sort(out.begin(), out.end(),
                     [](const Shrunk& a, const Shrunk& b) { return a.from > b.from; });
    return out;
  }

 private:
  bool fits() const { return now_.bytes <= goal_.bytes && now_.flops <= goal_.flops; }

  const Constant* pick() const {
    const Constant* best = nullptr;
    for (const auto& c : constants_)
      if (!frozen_.contains(c.name) && (best == nullptr || sizes_.at(c.name) > sizes_.at(best->name)))
        best = &c;
    return best;
  }

  static bool keep_ratio(const Constant& a, const Constant& b) {
    const auto [less, more] = std::minmax(a.value, b.value);
    if (less < 2 || more % less != 0) return false;
    return more / less <= 2 || a.relatives.contains(b.name) || b.relatives.contains(a.name);
  }
  // The constants whose ratios to it, or to each other, are kept, it among them.
  std::vector<const Constant*> family(const std::string& name) const {
    std::vector<const Constant*> found;
    for (const auto& c : constants_)
      if (c.name == name) found.push_back(&c);
    for (size_t i = 0; i < found.size(); ++i)
      for (const auto& c : constants_)
        if (std::ranges::find(found, &c) == found.end() && keep_ratio(*found[i], c)) found.push_back(&c);
    return found;
  }
  // The next smaller sizes of a family in `sizes`; false where there are none.
  bool lower_family(const std::string& name, Sizes& sizes) const {
    const auto members = family(name);
    if (members.size() == 1) {
      const int64_t half = halved(sizes.at(name), power_of(members[0]->value));
      if (half == 0) return false;
      sizes[name] = half;
      return true;
    }
    std::vector<int64_t> values;
    for (const auto* c : members) values.push_back(sizes.at(c->name));
    const int64_t divisor = common_divisor(values);
    for (const auto* c : members) sizes[c->name] /= std::max<int64_t>(divisor, 1);
    return divisor != 0;
  }

  // Makes one family smaller; where that is not legal or breaks a divisibility, those with it that it divides
  // or that divide it.
  Result<bool> lower(const std::string& name) {
    Sizes alone = sizes_;
    if (!lower_family(name, alone)) return false;
    if (keeps_divisibility(alone)) {
      NEREID_TRY(const bool moved, take(alone));
      if (moved) return true;
    }
    Sizes together = alone;
    const int64_t size = sizes_.at(name);
    for (const auto& c : constants_) {
      const int64_t other = sizes_.at(c.name);
      if (together.at(c.name) != other || other < 8 || (size % other != 0 && other % size != 0)) continue;
      Sizes more = together;
      if (lower_family(c.name, more)) together = more;
    }
    return together == alone || !keeps_divisibility(together) ? false : take(together);
  }

  bool keeps_divisibility(const Sizes& next) const {
    for (const auto& a : constants_)
      for (const auto& b : constants_)
        if (a.value > b.value && b.value > 2 && a.value % b.value == 0 &&
            next.at(a.name) % next.at(b.name) != 0)
          return false;
    return true;
  }

  // Moves there where it is legal and cheaper.
  Result<bool> take(const Sizes& next) {
    if (++probes_ > goal_.max_probes) return false;
    Sizes changed;
    for (const auto& c : constants_)
      if (next.at(c.name) != c.value) changed[c.name] = next.at(c.name);
    NEREID_TRY(const Probe there, probe_(changed));
    if (!there.legal || (there.bytes >= now_.bytes && there.flops >= now_.flops)) return false;
    sizes_ = next, now_ = there;
    return true;
  }

  std::string smallest() const {
    std::string text;
    for (const auto& c : constants_)
      if (sizes_.at(c.name) != c.value)
        text += fmt::format("{}{} = {}", text.empty() ? "; tried down to " : ", ", c.name, sizes_.at(c.name));
    return text;
  }
  std::string named() const {
    std::string text;
    for (const auto& c : constants_)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", c.name, c.value);
    return text.empty() ? "none" : text;
  }

  const std::vector<Constant>& constants_;
  const std::function<Result<Probe>(const Sizes&)>& probe_;
  const Goal goal_;
  Sizes sizes_;
  Probe now_;
  std::set<std::string> frozen_;
  int probes_ = 0;
};

// Calls f(word) for each name in a text.
template <class F>
void for_each_word(string_view text, const F& f) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      ++at;
      continue;
    }
    const size_t first = at;
    while (at < text.size() && in_name(text[at])) ++at;
    f(text.substr(first, at - first));
  }
}

// Marks constants that occur in get_init_inputs, and those that a line divides by one another, as relatives.
void find_relatives(string_view source, std::vector<Constant>& constants) {
  std::map<std::string, Constant*, std::less<>> by_name;
  for (auto& c : constants) by_name.emplace(c.name, &c);
  const auto relate = [&](const std::set<std::string>& names) {
    for (const auto& a : names)
      for (const auto& b : names)
        if (a != b) by_name.at(a)->relatives.insert(b);
  };
  std::set<std::string> constructor;
  bool in_constructor = false;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    const string_view line = source.substr(0, std::min(end, source.find('#')));
    source.remove_prefix(std::min(end + 1, source.size()));
    if (!line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != ')' && line[0] != ']')
      in_constructor = line.starts_with("def get_init_inputs");
    std::set<std::string> here;
    for_each_word(line, [&](string_view word) {
      if (by_name.contains(word)) here.insert(std::string(word));
    });
    if (in_constructor) constructor.insert(here.begin(), here.end());
    if (line.find('/') != line.npos || line.find('%') != line.npos) relate(here);
  }
  relate(constructor);
}

}  // namespace

std::vector<Constant> module_constants(string_view source) {
  const string_view whole = source;
  std::vector<Constant> found;
  std::set<std::string> seen, twice;
  char quote = 0;  // of an open triple-quoted string
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    const string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    const bool inside = quote != 0;
    for (size_t i = 0; i + 2 < line.size(); ++i) {
      if ((line[i] != '"' && line[i] != '\'') || line[i + 1] != line[i] || line[i + 2] != line[i]) continue;
      quote = quote == 0 ? line[i] : quote == line[i] ? 0 : quote;
      i += 2;
    }
    if (inside || line.empty() || line[0] == ' ' || line[0] == '\t') continue;
    for (auto& constant : LineParser(line).assignments()) {
      if (!seen.insert(constant.name).second) twice.insert(constant.name);
      found.push_back(std::move(constant));
    }
  }
  std::erase_if(found, [&](const Constant& c) { return twice.contains(c.name); });
  find_relatives(whole, found);
  return found;
}

Result<std::vector<Shrunk>> find_smaller_sizes(const std::vector<Constant>& constants,
                                               const std::function<Result<Probe>(const Sizes&)>& probe,
                                               const Goal& goal) {
  return Search(constants, probe, goal).run();
}

}  // namespace nereid::verify
