#include "nereid/compiler/output/kernel_name.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {
namespace {

using std::string;
using std::string_view;

constexpr size_t kWords = 3;

template <size_t n>
bool contains_one_of(string_view word, const std::array<string_view, n>& parts) {
  return std::ranges::any_of(parts, [&](string_view part) { return word.find(part) != word.npos; });
}

enum Rank { kCopy, kArithmetic, kFunction, kLayer };

Rank rank_of(string_view word) {
  static constexpr std::array<string_view, 30> kLayers = {
      "linear", "matmul", "conv",   "attention", "embedding", "_norm",    "softmax", "loss",
      "pool",   "lstm",   "gru",    "rnn",       "cumsum",    "cumprod",  "cummax",  "cummin",
      "sort",   "topk",   "gather", "scatter",   "index",     "rank",     "arg",     "upsample",
      "einsum", "smooth", "scores", "place",     "bag",       "logsumexp"};
  static const std::set<string_view> copies = {"cast",   "copy", "clone",  "arange",        "zeros",
                                               "ones",   "fill", "number", "channels_last", "slice",
                                               "select", "view", "expand", "full",          "index_copy"};
  static const std::set<string_view> arithmetic = {
      "add", "sub",   "rsub", "mul",         "div",         "neg",        "where",       "masked_fill", "eq",
      "ne",  "lt",    "le",   "gt",          "ge",          "clamp",      "bitwise_not", "logical_not", "pow",
      "abs", "floor", "sign", "logical_and", "bitwise_and", "logical_or", "remainder",   "reciprocal"};
  if (copies.contains(word)) return kCopy;
  if (arithmetic.contains(word)) return kArithmetic;
  return contains_one_of(word, kLayers) ? kLayer : kFunction;
}

// "sub" of "sub_", "cast" of "_to_copy".
string plain_word(const string& word) {
  if (word == "_to_copy") return "cast";
  string made = identifier(word);
  const size_t first = made.find_first_not_of('_');
  made.erase(0, first == made.npos ? 0 : first);
  while (made.size() > 1 && made.back() == '_') made.pop_back();
  return made;
}

// Steps on the way to another word's result, which name nothing next to it.
bool is_on_the_way(string_view word, const std::vector<string>& words) {
  static constexpr std::array<string_view, 5> kEnds = {"_rest", "_scale", "_max", "_sum", "_parts"};
  if (std::ranges::any_of(kEnds, [&](string_view end) { return word.ends_with(end); })) return true;
  static const std::set<string_view> of_norms = {"mean", "variance", "mean_square", "running_mean",
                                                 "running_var"};
  return of_norms.contains(word) &&
         std::ranges::any_of(words, [](const string& other) { return other.ends_with("_norm"); });
}

}  // namespace

std::string name_of_work(const std::vector<std::string>& given) {
  std::vector<string> words;
  for (const string& word : given)
    if (string plain = plain_word(word); std::ranges::find(words, plain) == words.end())
      words.push_back(std::move(plain));
  const std::vector<string> all = words;
  const auto named_by_others = [&](const string& word) { return is_on_the_way(word, all); };
  if (!std::ranges::all_of(words, named_by_others)) std::erase_if(words, named_by_others);
  const auto copies = [](const string& word) { return rank_of(word) == kCopy; };
  if (!std::ranges::all_of(words, copies)) std::erase_if(words, copies);
  while (words.size() > kWords) {  // without the last of those that say least
    auto least = words.begin();
    for (auto word = words.begin(); word != words.end(); ++word)
      if (rank_of(*word) <= rank_of(*least)) least = word;
    words.erase(least);
  }
  string name;
  for (const string& word : words) name += (name.empty() ? "" : "_") + word;
  return name;
}

}  // namespace nereid::compiler
