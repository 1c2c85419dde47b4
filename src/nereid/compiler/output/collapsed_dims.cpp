#include "nereid/compiler/output/collapsed_dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "nereid/render/python_tokens.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kLeast = 10;  // smaller ones anybody multiplies

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The second argument of a call of this name ends right before `at`.
bool behind(const std::string& text, size_t at, std::string_view call) {
  int depth = 0;
  for (size_t i = at; i-- > 0 && text[i] != '\n';) {
    if (text[i] == ')' || text[i] == ']') ++depth;
    if ((text[i] == '(' || text[i] == '[') && depth-- == 0)
      return i >= call.size() && std::string_view(text).substr(i - call.size(), call.size()) == call;
  }
  return false;
}

}  // namespace

std::string product_of_neighbours(const std::vector<int64_t>& sizes, int64_t number) {
  if (number < kLeast) return "";
  for (size_t first = 0; first < sizes.size(); ++first) {
    int64_t product = 1;
    std::string text;
    int factors = 0;
    for (size_t d = first; d < sizes.size() && product < number; ++d) {
      product *= sizes[d];
      if (sizes[d] == 1) continue;
      text += fmt::format("{}{}", text.empty() ? "" : " * ", sizes[d]);
      ++factors;
    }
    if (product == number && factors > 1) return text;
  }
  return "";
}

std::map<int64_t, std::string> collapsed_dims(const trace::Trace& trace, const std::set<std::string>& known) {
  std::map<int64_t, std::string> merged;
  std::set<int64_t> seen;  // of what was there before
  const auto see = [&](trace::ValueId id) {
    for (const int64_t size : trace.values[static_cast<size_t>(id)].sizes) seen.insert(size);
  };
  for (const trace::ValueId id : trace::tensors_in(trace.phases.back().inputs)) see(id);
  for (const auto& state : trace.state) see(state.value);
  for (const auto& step : trace.phases.back().steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) continue;
    for (const trace::ValueId id : trace::tensors_in(call->result)) {
      const trace::Value& made = trace.values[static_cast<size_t>(id)];
      for (const int64_t size : made.sizes) {
        if (seen.contains(size) || known.contains(std::to_string(size))) continue;
        for (const auto& arg : call->args)
          for (const trace::ValueId from : trace::tensors_in(arg))
            if (const std::string text =
                    product_of_neighbours(trace.values[static_cast<size_t>(from)].sizes, size);
                !text.empty())
              merged.emplace(size, text);
      }
      see(id);
    }
  }
  return merged;
}

std::set<std::string> numbers_in(const std::string& source) {
  std::set<std::string> numbers;
  for (const std::string_view token : render::tokens_of(source))
    if (render::is_decimal(token.front())) numbers.emplace(token);
  return numbers;
}

std::string with_collapsed_dims(const std::string& text, const std::map<int64_t, std::string>& merged) {
  if (merged.empty()) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (c == '#') {  // a comment, or a step's number
      end = text[at + 1 < text.size() ? at + 1 : at] == ' ' ? std::min(text.find('\n', at), text.size())
                                                            : at + 1;
      while (end < text.size() && is_digit(text[end])) ++end;
    } else if (c == '"') {
      const std::string mark = text.compare(at, 3, "\"\"\"") == 0 ? "\"\"\"" : "\"";
      end = text.find(mark, at + mark.size());
      end = end == text.npos ? text.size() : end + mark.size();
    } else if (in_word(c)) {
      while (end < text.size() && (in_word(text[end]) || (is_digit(c) && text[end] == '.'))) ++end;
    }
    const std::string word = text.substr(at, end - at);
    const bool number = is_digit(c) && word.size() < 19 && std::ranges::all_of(word, is_digit) &&
                        (at == 0 || text[at - 1] != '.');
    const auto found = number ? merged.find(std::stoll(word)) : merged.end();
    const size_t before = text.find_last_not_of(' ', at == 0 ? text.npos : at - 1),
                 after = text.find_first_not_of(' ', end);
    const char left = at == 0 || before == text.npos ? '\n' : text[before],
               right = after == text.npos ? '\n' : text[after];
    const bool block = (left == '=' && before > 0 &&
                        std::string_view("=<>! ").find(text[before - 1]) == std::string_view::npos) ||
                       (left == ',' && (behind(text, at, "arange") || behind(text, at, "cdiv")));
    if (found == merged.end() || block)
      out += word;
    else if (left == '/' || left == '%' || left == '-' || right == '%' ||
             text.compare(std::min(after, text.size()), 2, "**") == 0)
      out += "(" + found->second + ")";
    else
      out += found->second;
    at = end;
  }
  return out;
}

}  // namespace nereid::compiler
