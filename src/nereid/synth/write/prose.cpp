#include "nereid/synth/write/prose.h"

#include <cctype>
#include <iterator>
#include <string_view>

#include "nereid/synth/write/words.h"

namespace nereid::synth {
namespace {

constexpr std::string_view kSmall[] = {
    "the",      "a",          "of",       "is",     "with",      "and",     "for",     "each",
    "every",    "only",       "that",     "so",     "then",      "from",    "to",      "in",
    "on",       "at",         "by",       "as",     "not",       "are",     "all",     "its",
    "over",     "no",         "one",      "two",    "three",     "when",    "where",   "which",
    "this",     "here",       "it",       "be",     "has",       "have",    "but",     "or",
    "if",       "than",       "into",     "after",  "before",    "same",    "other",   "both",
    "along",    "per",        "out",      "up",     "down",      "through", "between", "under",
    "without",  "more",       "less",     "most",   "never",     "always",  "may",     "must",
    "can",      "used",       "uses",     "given",  "made",      "takes",   "gives",   "returns",
    "computes", "performs",   "applies",  "simple", "model",     "module",  "input",   "output",
    "tensor",   "layer",      "value",    "values", "dimension", "last",    "first",   "operation",
    "followed", "normalised", "computed", "sums",   "products",  "shapes",  "function"};

constexpr std::string_view kScraps[] = {
    "x + y",      "x @ w",       "q @ k.T",   "[0, 1)",    "(N, C)",    "(B, T, D)",  "[batch, seq, dim]",
    "-1e9",       "1e-5",        "a * b + c", "O(n)",      "`x`",       "`forward`",  "y = f(x)",
    "3x3",        "fp32",        "GPU",       "NCHW",      "x.mean()",  "softmax(x)", "exp(x - max)",
    "W x + b",    "(see below)", "i.e.",      "e.g.",      "don't",     "isn't",      "--",
    "->",         "x / 8",       "2 * n",     "n // 2",    "x[:, 1:]",  "dim=-1",     "eps",
    "'same'",     "ReLU",        "GELU",      "LayerNorm", "nn.Linear", "x ** 2",     "sqrt(d)",
    "self.scale", "max(0, x)",   "[-1, 1]",   "50 %",      "A:",        "NOTE:",      "TODO:",
    "cf.",        "vs."};

}  // namespace

Prose::Prose(uint32_t number) : rng_(number, 1) {}

std::string Prose::number() {
  static constexpr std::string_view kSome[] = {"0",  "1",   "2",   "0.5", "1e-5", "1e-6",
                                               "-1", "1.0", "0.1", "100", "1024", "3.14"};
  return one_in(3) ? std::to_string(below(one_in(2) ? 100 : 10000))
                   : std::string(kSome[below(std::size(kSome))]);
}

std::string Prose::scrap() {
  switch (below(4)) {
    case 0:
      return number();
    case 1:
      return invented_word(rng_) + '_' + invented_word(rng_);
    default:
      return std::string(kScraps[below(std::size(kScraps))]);
  }
}

std::string Prose::phrase(uint32_t words) {
  std::string text;
  for (uint32_t i = 0; i < words; ++i) {
    if (i > 0) text += one_in(10) ? (one_in(3) ? ": " : ", ") : " ";
    const uint32_t which = below(9);
    text += which < 5   ? std::string(kSmall[below(std::size(kSmall))])
            : which < 8 ? invented_word(rng_)
                        : scrap();
  }
  return text;
}

std::string Prose::sentence() {
  std::string text = phrase(2 + below(one_in(3) ? 16 : 8));
  if (!one_in(6)) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!one_in(6)) text += '.';
  return text;
}

std::string Prose::remark() { return one_in(3) ? scrap() : phrase(1 + below(6)); }

}  // namespace nereid::synth
