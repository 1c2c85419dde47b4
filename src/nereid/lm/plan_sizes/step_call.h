// A traced step as a plan writes it: the operator's name and its arguments.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/plan_sizes/layout.h"

namespace nereid::lm {

// A tensor, a number, a list or another word, as "is_causal". Types, None and flags without a name are not
// written in plans.
struct StepArgument {
  enum class Kind : uint8_t { kTensor, kWhole, kReal, kList, kWord } kind = Kind::kWord;
  Value tensor = {};
  int64_t whole = 0;
  double real = 0;
  std::string word = {};
  std::vector<StepArgument> items = {};
};

struct StepCall {
  std::string name;
  std::vector<StepArgument> arguments;

  bool has(std::string_view word) const;
  // The number of a tensor among the arguments, those in lists included, from 0; nullptr where there are
  // fewer.
  const Value* tensor(size_t number) const;
  std::vector<const Value*> tensors() const;
  // The i-th list of whole numbers alone, the i-th whole number outside of lists.
  std::optional<Sizes> sizes(size_t i) const;
  std::optional<int64_t> whole(size_t i) const;
};

using ValueOf = std::function<const Value*(std::string_view name)>;
// "convolution(x, weight, [1, 1], [0, 0], [1, 1], [0, 0], 1)", with numbers that may be products, "8 * 32".
// nullopt: it is no call, or more comes after it.
std::optional<StepCall> parse_step_call(std::string_view text, const ValueOf& value_of);
// "[2, 8 * 32]", at the beginning of the text, which then begins after it; nullopt: there are no sizes.
std::optional<Sizes> take_sizes(std::string_view& text);

// The tensors that a call makes, in order; nullopt where its operator or its arguments are not known.
using StepResults = std::optional<std::vector<Value>>;
StepResults results_of(const StepCall& call);

// Parts of results_of.
StepResults view_results(const StepCall& call);
StepResults compute_results(const StepCall& call);
StepResults window_results(const StepCall& call);  // convolutions, pools, padding

// An axis from -rank to rank - 1 as one from 0 on.
inline std::optional<size_t> axis_of(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank == 0 ? 1 : rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace nereid::lm
