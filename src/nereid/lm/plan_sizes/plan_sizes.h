// The sizes of traced steps, while a model writes its plan.
//
// A plan begins with the shapes of what is given, then has a line for each operator
// (docs/language_model.md, "Plans"):
//
//   given x [2, 32, 15, 15], y [2, 96, 15, 15], conv_weight [64, 32, 3, 3]
//   #1 convolution(x, conv_weight, [1, 1], [1, 1], [1, 1], [0, 0], 1) [2, 64, 15, 15]
//   #2 cat([#1, y], 1) [2, 160, 15, 15]
//   returns #2
//
// What comes after a call's bracket follows from what is before it. `PlanSizes` reads the text as it comes
// and says what follows, in the words of compiler/output/trace_summary.h. It knows nothing of the task but
// the numbers in its text, which decide how sizes are written (compiler/output/collapsed_dims.h). Two words
// are in these plans that traces do not have: `keepdim` after a reduction's arguments, and `transposed` after
// a convolution's. An operator without a rule, an unknown name or arguments that PyTorch refuses leave the
// line to the model.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nereid/lm/plan_sizes/step_call.h"

namespace nereid::lm {

class PlanSizes {
 public:
  // `task`: the Python text that the plan is for.
  explicit PlanSizes(const std::string& task);

  // The next piece of the answer, as the model writes it. The result is what the answer goes on with, ""
  // where that is the model's to say; it is not pushed by the caller, and ends with its line.
  std::string push(std::string_view piece);

 private:
  void read_line(std::string_view line);
  void read_given(std::string_view line);
  void read_step(std::string_view line);
  void define(const std::string& number, std::vector<Value> results);
  const Value* find(std::string_view name) const;
  // Of a call that is whole, what comes after it, and its results.
  struct Completed {
    std::string number, text;
    std::vector<Value> results;
  };
  std::optional<Completed> complete(std::string_view begun);
  void note_products(const StepCall& call, const std::vector<Value>& results);

  enum class At : uint8_t { kStart, kSteps, kOver } at_ = At::kStart;
  std::string line_;  // the one that is being written
  std::unordered_map<std::string, Value> values_;
  std::set<std::string> known_;              // numbers of the task
  std::set<int64_t> seen_;                   // sizes until now
  std::map<int64_t, std::string> products_;  // as collapsed_dims has them
};

}  // namespace nereid::lm
