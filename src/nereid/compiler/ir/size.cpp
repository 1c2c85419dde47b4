#include "nereid/compiler/ir/size.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "nereid/base/check.h"

namespace nereid::compiler {
namespace {

// Longer expressions say nothing to a reader: they become numbers.
constexpr size_t kMaxProducts = 4, kMaxSymbols = 6;

int64_t floored_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// In brackets where an operator around it would bind more tightly than its own.
std::string in_place(std::string text, Size::Place place) {
  int depth = 0;
  bool sum = text.front() == '-', operators = sum;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth > 0 || text[at] != ' ') continue;
    operators = true;
    sum = sum || text[at + 1] == '+' || text[at + 1] == '-';
  }
  const bool bracketed = place == Size::Place::kFactor ? operators : place == Size::Place::kTerm && sum;
  return bracketed ? "(" + text + ")" : text;
}

}  // namespace

Size Size::dimension(int64_t value) {
  return value < 2 ? Size(value) : Size(value, {{.scale = 1, .symbols = {{.value = value}}}});
}

Size Size::of_batch(int64_t batch, int64_t scale, int64_t shift) {
  return {batch * scale + shift,
          {{.scale = scale, .symbols = {{.value = batch, .batch = true}}}, {.scale = shift, .symbols = {}}}};
}

Size::Size(int64_t value, Sum sum) : value_(value) {
  std::erase_if(sum, [](const Product& product) { return product.scale == 0; });
  const bool literal =
      std::ranges::all_of(sum, [](const Product& product) { return product.symbols.empty(); });
  const bool short_enough =
      sum.size() <= kMaxProducts &&
      std::ranges::all_of(sum, [](const Product& product) { return product.symbols.size() <= kMaxSymbols; });
  const bool batch = std::ranges::any_of(
      sum, [](const Product& product) { return std::ranges::any_of(product.symbols, &Symbol::batch); });
  if (literal || !short_enough || (value < 2 && value > -2 && !batch)) return;
  made_of_ = std::make_shared<const Sum>(std::move(sum));
}

Size::Sum Size::sum() const {
  if (made_of_ != nullptr) return *made_of_;
  return value_ == 0 ? Sum{} : Sum{{.scale = value_, .symbols = {}}};
}

int64_t Size::value_of(const Sum& sum) {
  int64_t value = 0;
  for (const Product& product : sum) {
    int64_t one = product.scale;
    for (const Symbol& symbol : product.symbols) one *= symbol.value;
    value += one;
  }
  return value;
}

bool Size::same_symbols(const Product& a, const Product& b) {
  return a.symbols.size() == b.symbols.size() &&
         std::is_permutation(a.symbols.begin(), a.symbols.end(), b.symbols.begin());
}

Size operator+(const Size& a, const Size& b) {
  const int64_t value = a.value_ + b.value_;
  if (a.is_literal() && b.is_literal()) return value;
  if (a.value_ == 0 && a.is_literal()) return b;
  if (b.value_ == 0 && b.is_literal()) return a;
  Size::Sum sum = a.sum();
  for (const Size::Product& product : b.sum()) {
    const auto same =
        std::ranges::find_if(sum, [&](const auto& other) { return Size::same_symbols(other, product); });
    if (same == sum.end())
      sum.push_back(product);
    else
      same->scale += product.scale;
  }
  return {value, std::move(sum)};
}

Size operator-(const Size& a, const Size& b) { return b.value_ == 0 && b.is_literal() ? a : a + b * -1; }

Size operator*(const Size& a, const Size& b) {
  const int64_t value = a.value_ * b.value_;
  if (a.is_literal() && b.is_literal()) return value;
  if (a.value_ == 1 && a.is_literal()) return b;
  if (b.value_ == 1 && b.is_literal()) return a;
  Size::Sum sum;
  for (const Size::Product& left : a.sum())
    for (const Size::Product& right : b.sum()) {
      Size::Product product{.scale = left.scale * right.scale, .symbols = left.symbols};
      product.symbols.insert(product.symbols.end(), right.symbols.begin(), right.symbols.end());
      const auto same =
          std::ranges::find_if(sum, [&](const auto& other) { return Size::same_symbols(other, product); });
      if (same == sum.end())
        sum.push_back(std::move(product));
      else
        same->scale += product.scale;
    }
  return {value, std::move(sum)};
}

// Whether it comes out even.
bool Size::divide(Product& product, const Product& by) {
  if (product.scale % by.scale != 0) return false;
  Product divided{.scale = product.scale / by.scale, .symbols = product.symbols};
  for (const Symbol& symbol : by.symbols) {
    const auto last = std::find(divided.symbols.rbegin(), divided.symbols.rend(), symbol);
    if (last == divided.symbols.rend()) return false;
    divided.symbols.erase(std::next(last).base());
  }
  product = std::move(divided);
  return true;
}

Size floor_divide(const Size& a, const Size& b) {
  const int64_t value = floored_quotient(a.value_, b.value_);
  if (b.value_ == 1 && b.is_literal()) return a;
  const Size::Sum by = b.sum();
  if (a.is_literal() || by.size() != 1) return value;
  Size::Sum divided;  // of the products of which it comes out even; the rest is less than the divisor
  for (Size::Product product : a.sum())
    if (Size::divide(product, by.front())) divided.push_back(std::move(product));
  if (Size::value_of(divided) != value) return value;
  return {value, std::move(divided)};
}

std::string Size::text_of(const Product& product) {
  const int64_t scale = product.scale < 0 ? -product.scale : product.scale;
  std::string text = scale != 1 || product.symbols.empty() ? std::to_string(scale) : "";
  for (const Symbol& symbol : product.symbols)
    text +=
        (text.empty() ? "" : " * ") + (symbol.batch ? std::string(kBatchName) : std::to_string(symbol.value));
  return text;
}

std::string Size::text_of(const Sum& sum) {
  std::string text;
  for (const bool negative : {false, true})
    for (const Product& product : sum)
      if ((product.scale < 0) == negative)
        text += (text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ") + text_of(product);
  return text;
}

std::string Size::text(Place place) const {
  if (is_literal()) return in_place(std::to_string(value_), place);
  // Where something is subtracted, what all products have in common is taken out: (50 - 1) * 6.
  Sum rest = *made_of_;
  Product common;
  const bool subtracts =
      rest.size() > 1 && std::ranges::any_of(rest, [](const Product& product) { return product.scale < 0; });
  for (const Symbol& symbol : made_of_->front().symbols) {
    Sum without = rest;
    const Product one{.scale = 1, .symbols = {symbol}};
    if (!subtracts || !std::ranges::all_of(without, [&](Product& product) { return divide(product, one); }))
      continue;
    rest = std::move(without);
    common.symbols.push_back(symbol);
  }
  return in_place(common.symbols.empty() ? text_of(rest) : "(" + text_of(rest) + ") * " + text_of(common),
                  place);
}

std::string Hole::written() const {
  const char mark = place == Size::Place::kFactor ? '*' : place == Size::Place::kTerm ? '+' : '=';
  return fmt::format("{{{}{}{}}}", value, mark, text);
}

std::string Hole::filled() const { return in_place(text, place); }

std::string hole(const Size& size, Size::Place place) {
  return size.is_literal() ? size.text(place) : Hole{size, place, size.text()}.written();
}

std::string hole_of_number(int64_t number) {
  if (number == std::numeric_limits<int64_t>::min() || (number > -2 && number < 2))
    return std::to_string(number);
  return number < 0 ? "-" + hole_of_number(-number) : fmt::format("{{{0}!{0}}}", number);
}

bool is_number_hole(std::string_view written) {
  return written.front() == '{' &&
         written[std::min(written.find_first_of("=+*!"), written.size() - 1)] == '!';
}

Hole read_hole(std::string_view written) {
  const size_t mark = written.find_first_of("=+*!");
  NEREID_CHECK(mark != written.npos && written.front() == '{' && written.back() == '}', "a hole");
  return {.value = std::stoll(std::string(written.substr(1, mark - 1))),
          .place = written[mark] == '*'   ? Size::Place::kFactor
                   : written[mark] == '+' ? Size::Place::kTerm
                                          : Size::Place::kAlone,
          .text = std::string(written.substr(mark + 1, written.size() - mark - 2))};
}

std::string filled(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find('{', at), text.size());
    made += text.substr(at, begin - at);
    if (begin == text.size()) break;
    const size_t end = text.find('}', begin) + 1;
    made += read_hole(text.substr(begin, end - begin)).filled();
    at = end;
  }
  return made;
}

std::string sizes_text(const Extents& sizes) {
  std::string text;
  for (const Size& size : sizes) text += (text.empty() ? "" : ", ") + size.text();
  return fmt::format("({}{})", text, sizes.size() == 1 ? "," : "");
}

Extents as_dimensions(const std::vector<int64_t>& sizes) {
  Extents all;
  for (const int64_t size : sizes) all.push_back(Size::dimension(size));
  return all;
}

}  // namespace nereid::compiler
