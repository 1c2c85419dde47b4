#include "nereid/compiler/output/symbolic_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kSmallFactor = 3, kSmall = 9;  // read at a glance: as factors and bounds, elsewhere
constexpr int64_t kSmallSum = 20;                // written as a sum it is harder to read
constexpr int64_t kLargest = int64_t{1} << 40;
constexpr int64_t kSmallDivisors = 64;  // of reciprocals: a window's elements

bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

struct Literal {
  size_t begin, end;
  bool whole;
};

// The numbers of Python text, outside of strings, comments and names.
std::vector<Literal> literals(const std::string& text) {
  std::vector<Literal> found;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      const std::string mark =
          text.compare(at, 3, std::string(3, c)) == 0 ? std::string(3, c) : std::string(1, c);
      size_t end = at + mark.size();
      while (end < text.size() && text.compare(end, mark.size(), mark) != 0) end += text[end] == '\\' ? 2 : 1;
      at = end + mark.size();
    } else if (digit(c)) {
      size_t end = at;
      bool whole = true;
      while (end < text.size() && (of_word(text[end]) || text[end] == '.' ||
                                   ((text[end] == '-' || text[end] == '+') && text[end - 1] == 'e'))) {
        whole = whole && digit(text[end]);
        ++end;
      }
      found.push_back({at, end, whole});
      at = end;
    } else if (of_word(c)) {
      while (at < text.size() && of_word(text[at])) ++at;
    } else {
      ++at;
    }
  }
  return found;
}

// A number that is no integer.
struct Word {
  const std::string& text;
  double value;
};

}  // namespace

class SymbolicSizes::Numbers {
 public:
  Numbers(const std::vector<Extents>& shapes, const std::set<std::string>& known,
          const std::vector<Extents>* elsewhere)
      : known_(known), elsewhere_(elsewhere) {
    for (const Extents& shape : shapes)
      for (const int64_t size : shape)
        if (sizes_.insert(size).second) in_order_.push_back(size);
    for (const Extents& shape : shapes) products_of(shape);
    for (const auto& [number, product] : products_)
      if (!sizes_.contains(number)) in_order_.push_back(number);
  }

  // Nothing: as it stands. `inner`: it is a factor, or has to be in brackets for another reason.
  std::optional<std::string> whole(const std::string& word, bool inner, bool after_sum, bool bound) const {
    int64_t number = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
    if (end.ec != std::errc()) return std::nullopt;
    if (number <= (bound ? kSmallFactor : kSmall) || sizes_.contains(number)) return std::nullopt;
    if (const auto product = products_.find(number); product != products_.end())
      return inner ? "(" + product->second + ")" : product->second;
    if (number <= kSmall) return std::nullopt;
    if (number > kSmallSum && !known_.contains(word))
      if (auto sum = as_sum(number, inner || after_sum)) return sum;
    for (const int64_t times : {2, 3})  // gates are adjacent
      if (number % times == 0 && sizes_.contains(number / times)) {
        const std::string product = fmt::format("{} * {}", times, number / times);
        return inner ? "(" + product + ")" : product;
      }
    return std::nullopt;
  }

  std::optional<std::string> real(const std::string& text) const {
    if (known_.contains(text)) return std::nullopt;
    if (text.ends_with(".0") && text.size() < 12)
      if (const auto product = products_.find(std::atoll(text.c_str())); product != products_.end())
        if (!sizes_.contains(product->first) && product->first > kSmall) return "(" + product->second + ")";
    const Word word{text, std::strtod(text.c_str(), nullptr)};
    for (const int64_t n : in_order_)
      if (auto written = of_size(word, n)) return written;
    for (int64_t n = 3; n <= kSmallDivisors; ++n)  // no powers of two: formulas have those
      if ((n & (n - 1)) != 0)
        if (auto written = as_power(word, n)) return written;
    return elsewhere(word);
  }

 private:
  // A last element's distance from the first, or a product or a size plus a small number.
  std::optional<std::string> as_sum(int64_t number, bool bracketed) const {
    if (const auto last = lasts_.find(number); last != lasts_.end()) return "(" + last->second + ")";
    for (const int step : {-1, 1, 2, 3, -2, -3}) {
      const int64_t near = number - step;
      const auto product = products_.find(near);
      if (!sizes_.contains(near) && product == products_.end()) continue;
      const std::string of = sizes_.contains(near) ? std::to_string(near) : product->second;
      const std::string sum = fmt::format("{} {} {}", of, step < 0 ? "-" : "+", std::abs(step));
      return bracketed ? "(" + sum + ")" : sum;
    }
    return std::nullopt;
  }

  // What a mean over n elements, or a variance, is multiplied by.
  std::optional<std::string> of_size(const Word& word, int64_t n) const {
    if (auto written = as_power(word, n)) return written;
    const auto number = static_cast<double>(n);
    if (n < 3) return std::nullopt;
    const bool less = n != 3 && n != 5 && n != 9 && is(word, 1.0 / (number - 1.0));  // halves are formulas'
    if (!less && !is(word, number / (number - 1.0))) return std::nullopt;
    const std::string of = written(n);
    return less ? fmt::format("(1 / ({} - 1))", of) : fmt::format("({} / ({} - 1))", of, of);
  }

  // The same with a number of elements of another shape.
  std::optional<std::string> elsewhere(const Word& word) const {
    constexpr double kLeast = 1e-9;
    if (elsewhere_ == nullptr || word.value < kLeast || word.value > 1.5) return std::nullopt;
    if (others_ == nullptr) {
      static const std::set<std::string> none;
      others_ = std::make_unique<Numbers>(*elsewhere_, none, nullptr);
    }
    const double inverse = 1 / word.value;
    const int64_t n = std::llround(inverse);
    const double of_ratio = word.value > 1 ? 1 / (1 - inverse) : 0;  // the n of n / (n - 1)
    for (const int64_t each :
         {n, n + 1, int64_t{std::llround(inverse * inverse)}, int64_t{std::llround(of_ratio)}})
      if (each > kSmall && (others_->sizes_.contains(each) || others_->products_.contains(each)))
        if (auto written = others_->of_size(word, each)) return written;
    return std::nullopt;
  }

  std::string written(int64_t n) const {
    const auto product = products_.find(n);
    return sizes_.contains(n) || product == products_.end() ? std::to_string(n) : product->second;
  }

  void products_of(const Extents& shape) {
    Extents sizes;
    for (const int64_t size : shape)
      if (size > 1) sizes.push_back(size);
    for (size_t length = 2; length <= sizes.size(); ++length)
      for (size_t first = sizes.size() - length + 1; first-- > 0;) {
        int64_t number = 1;
        std::string text;
        for (size_t d = first; d < first + length && number < kLargest; ++d) {
          number *= sizes[d];
          text += fmt::format("{}{}", text.empty() ? "" : " * ", sizes[d]);
        }
        if (number < kLargest) products_.emplace(number, text);
      }
    // How far the last of a dimension lies from the first.
    for (size_t d = 0; d + 1 < sizes.size(); ++d) {
      int64_t number = sizes[d] - 1;
      std::string text = fmt::format("({} - 1)", sizes[d]);
      for (size_t e = d + 1; e < sizes.size() && number < kLargest; ++e) {
        number *= sizes[e];
        text += fmt::format(" * {}", sizes[e]);
      }
      if (number < kLargest) lasts_.emplace(number, text);
    }
  }

  // The string is how the number is written. Most numbers differ without writing them.
  static bool is(const Word& word, double number) {
    return word.value == number && number_text(number) == word.text;
  }

  std::optional<std::string> as_power(const Word& word, int64_t n) const {
    // A half and a quarter are formulas' more often.
    if (n < 3 || n == 4) return std::nullopt;
    const auto number = static_cast<double>(n), root = std::sqrt(number);
    const bool reciprocal = is(word, 1.0 / number);
    if (!reciprocal && (root == std::floor(root) || !is(word, 1.0 / std::pow(number, 0.5))))
      return std::nullopt;
    const std::string plain = written(n), of = plain.find('*') == plain.npos ? plain : "(" + plain + ")";
    return reciprocal ? fmt::format("(1 / {})", of) : fmt::format("(1 / {} ** 0.5)", of);
  }

  const std::set<std::string>& known_;
  const std::vector<Extents>* elsewhere_;
  mutable std::unique_ptr<const Numbers> others_{};  // of those, made on first use
  std::set<int64_t> sizes_;
  std::vector<int64_t> in_order_;
  std::map<int64_t, std::string> products_, lasts_;
};

namespace {

// A block's size: the value of a keyword, or what something is divided by in triton.cdiv.
bool is_block(const std::string& text, size_t begin, char left, char right) {
  if (left == '=')
    return text.find_last_of("=<>!", text.find_last_not_of(' ', begin - 1) - 1) !=
           text.find_last_not_of(' ', begin - 1) - 1;
  if (left != ',' || right != ')') return false;
  int depth = 0;
  for (size_t at = begin; at-- > 0;) {
    if (text[at] == ')') ++depth;
    if (text[at] == '(' && depth-- == 0) return text.compare(at < 4 ? 0 : at - 4, 4, "cdiv") == 0;
  }
  return false;
}

// A load's or a store's address, x_ptr + ...: up to the first comma that is not in brackets.
struct Address {
  size_t begin, end;
  const Extents* sizes;
  bool backwards;
};

std::vector<Address> addresses(const std::string& text, const std::map<std::string, Extents>& pointers) {
  std::vector<Address> found;
  if (pointers.empty()) return found;
  for (const std::string_view call : {"tl.load(", "tl.store("})
    for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
      const size_t begin = at + call.size();
      size_t end = begin;
      while (end < text.size() && of_word(text[end])) ++end;
      const auto pointer = pointers.find(text.substr(begin, end - begin));
      if (pointer == pointers.end()) continue;
      for (int depth = 0; end < text.size() && (depth > 0 || (text[end] != ',' && text[end] != ')')); ++end)
        depth += text[end] == '(' || text[end] == '[' ? 1 : text[end] == ')' || text[end] == ']' ? -1 : 0;
      const bool backwards = text.substr(begin, end - begin).find('-') != text.npos;
      found.push_back({begin, end, &pointer->second, backwards});
    }
  return found;
}

// Nothing around it but the call: a term of the address, or a factor of one.
bool stands_alone(const std::string& text, size_t begin, size_t at) {
  const auto count = [&](char c) {
    return std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                      text.begin() + static_cast<std::ptrdiff_t>(at), c);
  };
  return count('(') == count(')');
}

int64_t from_text(const std::string& word) {
  int64_t number = 0;
  const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
  return end.ec == std::errc() ? number : 0;
}

// A stride, or so many of one, or the distance from the first element. Nothing: no such number, or too small
// to be rewritten.
std::optional<std::string> in_address(const Address& address, int64_t number, char left, char right) {
  Extents sizes;
  for (const int64_t size : *address.sizes)
    if (size > 1) sizes.push_back(size);
  const auto operates = [](char c) { return c == '*' || c == '/' || c == '%'; };
  if (sizes.empty() || (left != '*' && left != '+') || operates(right)) return std::nullopt;
  const bool last = left == '+' && address.backwards && number + 1 == sizes.back() && number > kSmall;
  if (number < sizes.back() && !last) return std::nullopt;
  const std::string text = element_text(sizes, number, left == '+' && address.backwards);
  if (left == '*' && text.find('+') != text.npos) return std::nullopt;
  const bool bracketed = text.front() == '(' && text.find(')') == text.size() - 1;
  return text.find(' ') == text.npos || bracketed ? text : "(" + text + ")";
}

}  // namespace

std::string element_text(const Extents& sizes, int64_t offset, bool lasts) {
  std::string text;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t stride = 1;
    std::string factors;
    for (size_t inner = d + 1; inner < sizes.size(); ++inner) {
      stride *= sizes[inner];
      if (sizes[inner] != 1) factors += fmt::format(" * {}", sizes[inner]);
    }
    const int64_t steps = offset / stride;
    offset %= stride;
    if (steps == 0) continue;
    if (!text.empty()) text += " + ";
    if (lasts && steps > 1 && steps == sizes[d] - 1)
      text += fmt::format("({} - 1){}", sizes[d], factors);
    else
      text += steps == 1 && !factors.empty() ? factors.substr(3) : fmt::format("{}{}", steps, factors);
  }
  return text;
}

SymbolicSizes::SymbolicSizes(const std::vector<Extents>& shapes, const std::set<std::string>& known,
                             const std::vector<Extents>* elsewhere,
                             const std::map<std::string, Extents>& pointers)
    : numbers_(std::make_unique<Numbers>(shapes, known, elsewhere)), pointers_(pointers) {}
SymbolicSizes::~SymbolicSizes() = default;

std::set<std::string> numbers_in(const std::string& source) {
  std::set<std::string> numbers;
  for (const auto& each : literals(source)) numbers.insert(source.substr(each.begin, each.end - each.begin));
  return numbers;
}

std::string SymbolicSizes::rewrite(const std::string& text) const {
  std::string written;
  size_t done = 0;
  const std::vector<Address> in = addresses(text, pointers_);
  for (const auto& each : literals(text)) {
    const std::string word = text.substr(each.begin, each.end - each.begin);
    const size_t before = text.find_last_not_of(' ', each.begin == 0 ? text.npos : each.begin - 1);
    const char left = each.begin == 0 || before == text.npos ? '\n' : text[before];
    const size_t after = text.find_first_not_of(' ', each.end);
    const char right = after == text.npos ? '\n' : text[after];
    const auto factor = [](char c) { return std::string_view("*/%.").find(c) != std::string_view::npos; };
    const bool inner = factor(left) || factor(right) || left == '-';
    const bool sum = left == '+' || right == '+' || right == '-';
    const bool bound = factor(left) || left == '<' || left == ',' || left == '(';
    const auto address =
        std::ranges::find_if(in, [&](const Address& a) { return a.begin < each.begin && each.end <= a.end; });
    std::optional<std::string> other;
    if (each.whole && address != in.end() && stands_alone(text, address->begin, each.begin))
      other = in_address(*address, from_text(word), left, right);
    if (!other)
      other = !each.whole                               ? numbers_->real(word)
              : is_block(text, each.begin, left, right) ? std::nullopt
                                                        : numbers_->whole(word, inner, sum, bound);
    written += text.substr(done, each.begin - done) + other.value_or(word);
    done = each.end;
  }
  return written + text.substr(done);
}

}  // namespace nereid::compiler
