#include "nereid/verify/shrink.h"

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

// The next smaller size: half, and still a multiple of the largest power of two up to 128 that divides it;
// odd stays odd. 0 where there is none. `loose`: the power may be lost.
int64_t halved(int64_t size, bool loose) {
  if (size <= 2) return 0;
  if (size % 2 != 0) return std::max<int64_t>((size / 2) | 1, 1) < size ? (size / 2) | 1 : 0;
  int64_t power = 1;
  while (power < 128 && size % (2 * power) == 0) power *= 2;
  const int64_t kept = size / 2 / power * power;
  if (kept > 0) return kept;
  return loose && size > 16 ? size / 2 : 0;
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
    for (const bool loose : {false, true}) {
      frozen_.clear();
      while (!fits()) {
        const auto* largest = pick(loose);
        if (largest == nullptr) break;
        NEREID_TRY(const bool moved, halve(largest->name, loose));
        if (!moved) frozen_.insert(largest->name);
      }
    }
    if (!fits())
      return input_error(
          "--shrink: no smaller sizes keep the task legal and small enough; the smallest found still needs "
          "{:.3g} MB "
          "and {:.3g} GFLOP (module-level integers: {})",
          now_.bytes / 1e6, now_.flops / 1e9, named());
    std::vector<Shrunk> out;
    for (const auto& c : constants_)
      if (sizes_.at(c.name) != c.value) out.push_back({c.name, c.value, sizes_.at(c.name)});
    std::stable_sort(out.begin(), out.end(),
                     [](const Shrunk& a, const Shrunk& b) { return a.from > b.from; });
    return out;
  }

 private:
  bool fits() const { return now_.bytes <= goal_.bytes && now_.flops <= goal_.flops; }

  const Constant* pick(bool loose) const {
    const Constant* best = nullptr;
    for (const auto& c : constants_)
      if (!frozen_.contains(c.name) && halved(sizes_.at(c.name), loose) > 0 &&
          (best == nullptr || sizes_.at(c.name) > sizes_.at(best->name)))
        best = &c;
    return best;
  }

  // Halves one constant; where that is not legal or breaks a divisibility, those related to it with it.
  Result<bool> halve(const std::string& name, bool loose) {
    Sizes alone = sizes_;
    alone[name] = halved(sizes_.at(name), loose);
    if (keeps_divisibility(alone)) {
      NEREID_TRY(const bool moved, take(alone));
      if (moved) return true;
    }
    Sizes together = alone;
    const int64_t size = sizes_.at(name);
    for (const auto& c : constants_) {
      const int64_t other = sizes_.at(c.name);
      if (c.name == name || other < 8 || (size % other != 0 && other % size != 0)) continue;
      if (const int64_t half = halved(other, loose); half > 0) together[c.name] = half;
    }
    return together == alone ? false : take(together);
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

}  // namespace

std::vector<Constant> module_constants(string_view source) {
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
  return found;
}

Result<std::vector<Shrunk>> find_smaller_sizes(const std::vector<Constant>& constants,
                                               const std::function<Result<Probe>(const Sizes&)>& probe,
                                               const Goal& goal) {
  return Search(constants, probe, goal).run();
}

}  // namespace nereid::verify
