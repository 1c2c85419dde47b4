#include "nereid/lm/plan_sizes/step_call.h"

#include <algorithm>
#include <charconv>

#include "nereid/base/text.h"

namespace nereid::lm {
namespace {

constexpr int kMaxDepth = 4;
constexpr int64_t kLargest = int64_t{1} << 40;  // factors of products

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// "8 * 32" or "8", the whole of `text`.
std::optional<int64_t> whole_of(std::string_view text) {
  int64_t product = 1;
  for (bool more = true; more;) {
    const size_t end = text.find(" * ");
    more = end != text.npos;
    const std::string_view factor = more ? text.substr(0, end) : text;
    int64_t number = 0;
    const auto [at, error] = std::from_chars(factor.data(), factor.data() + factor.size(), number);
    if (error != std::errc() || at != factor.data() + factor.size() || factor.empty()) return std::nullopt;
    const bool alone = !more && product == 1;
    if (!alone && (number < 0 || number > kLargest || product > kLargest)) return std::nullopt;
    product *= number;
    if (more) text.remove_prefix(end + 3);
  }
  return product;
}

std::optional<double> real_of(std::string_view text) {
  double number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || at != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

class CallReader {
 public:
  CallReader(std::string_view text, const ValueOf& value_of) : rest_(text), value_of_(value_of) {}

  // Up to and with `close`.
  bool arguments(char close, std::vector<StepArgument>& into, int depth) {
    skip_spaces(rest_);
    if (take(close)) return true;
    while (argument(into.emplace_back(), depth)) {
      skip_spaces(rest_);
      if (take(close)) return true;
      if (!take(',')) return false;
      skip_spaces(rest_);
    }
    return false;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool argument(StepArgument& into, int depth) {
    if (take('[')) {
      into.kind = StepArgument::Kind::kList;
      return depth < kMaxDepth && arguments(']', into.items, depth + 1);
    }
    const size_t end = std::min(rest_.find_first_of(",)]["), rest_.size());
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    word = trimmed(word);
    if (word.empty()) return false;
    if (const auto whole = whole_of(word)) {
      into.kind = StepArgument::Kind::kWhole, into.whole = *whole;
    } else if (const auto real = real_of(word)) {
      into.kind = StepArgument::Kind::kReal, into.real = *real;
    } else if (const Value* value = value_of_(word)) {
      into.kind = StepArgument::Kind::kTensor, into.tensor = *value;
    } else {
      into.word = word;  // an unknown tensor, or a flag
    }
    return true;
  }

  std::string_view rest_;
  const ValueOf& value_of_;
};

void collect(const std::vector<StepArgument>& arguments, std::vector<const Value*>& into) {
  for (const StepArgument& argument : arguments) {
    if (argument.kind == StepArgument::Kind::kTensor) into.push_back(&argument.tensor);
    collect(argument.items, into);
  }
}

}  // namespace

bool StepCall::has(std::string_view word) const {
  return std::ranges::any_of(arguments, [&](const StepArgument& each) { return each.word == word; });
}

std::vector<const Value*> StepCall::tensors() const {
  std::vector<const Value*> found;
  collect(arguments, found);
  return found;
}

const Value* StepCall::tensor(size_t number) const {
  const auto found = tensors();
  return number < found.size() ? found[number] : nullptr;
}

std::optional<Sizes> StepCall::sizes(size_t i) const {
  for (const StepArgument& argument : arguments) {
    if (argument.kind != StepArgument::Kind::kList) continue;
    Sizes list;
    for (const StepArgument& item : argument.items)
      if (item.kind == StepArgument::Kind::kWhole) list.push_back(item.whole);
    if (list.size() != argument.items.size()) continue;
    if (i-- == 0) return list;
  }
  return std::nullopt;
}

std::optional<int64_t> StepCall::whole(size_t i) const {
  for (const StepArgument& argument : arguments)
    if (argument.kind == StepArgument::Kind::kWhole && i-- == 0) return argument.whole;
  return std::nullopt;
}

std::optional<StepCall> parse_step_call(std::string_view text, const ValueOf& value_of) {
  const auto open = static_cast<size_t>(std::ranges::find_if_not(text, in_name) - text.begin());
  if (open == 0 || open == text.size() || text[open] != '(') return std::nullopt;
  StepCall call{.name = std::string(text.substr(0, open)), .arguments = {}};
  CallReader reader(text.substr(open + 1), value_of);
  if (!reader.arguments(')', call.arguments, 0) || !reader.at_end()) return std::nullopt;
  return call;
}

std::optional<Sizes> take_sizes(std::string_view& text) {
  const size_t end = text.find(']');
  if (!text.starts_with('[') || end == text.npos) return std::nullopt;
  Sizes sizes;
  std::string_view inner = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  while (!inner.empty()) {
    const size_t comma = std::min(inner.find(", "), inner.size());
    const auto size = whole_of(inner.substr(0, comma));
    if (!size || *size < 0) return std::nullopt;
    sizes.push_back(*size);
    inner.remove_prefix(std::min(comma + 2, inner.size()));
  }
  return sizes;
}

StepResults results_of(const StepCall& call) {
  // An unknown tensor is a word: nothing follows from it.
  if (auto made = view_results(call)) return made;
  if (auto made = window_results(call)) return made;
  return compute_results(call);
}

}  // namespace nereid::lm
