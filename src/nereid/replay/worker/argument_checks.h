// Operators that trust their caller with arguments which PyTorch's own layers always pass correctly. With
// wrong ones they read or write beyond a tensor. A hostile trace is refused before it runs, where sizes show
// the fault, or before the call, where numbers in a tensor do.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// A call's arguments by the names of its operator's schema.
class GivenArguments {
 public:
  GivenArguments(const c10::FunctionSchema& schema, const trace::Call& call, const trace::Trace& trace)
      : schema_(schema), call_(call), trace_(trace) {}

  const trace::Arg* at(size_t index) const;  // null where it is left out
  // Null where the schema has no such argument, it is left out or None. Of a tensor that is a number: Failed.
  const trace::Value* tensor(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;
  bool flag(std::string_view name) const;                      // false where it is left out
  size_t items(std::string_view name) const;                   // of a list; 0 where there is none
  std::vector<int64_t> integers(std::string_view name) const;  // a list; empty where there is none
  bool has(std::string_view name) const { return schema_.argumentIndexWithName(name).has_value(); }
  size_t index_of(std::string_view name) const;  // of one that it has

 private:
  const trace::Arg* find(std::string_view name) const;
  const c10::FunctionSchema& schema_;
  const trace::Call& call_;
  const trace::Trace& trace_;
};

// Throws Failed (kRefused) where the sizes of the arguments of `op` ("native_batch_norm") do not fit
// together.
void check_sizes(std::string_view op, const GivenArguments& given);

// What the numbers of one argument must be.
struct ElementBounds {
  size_t argument = 0;
  std::string name;
  double first = 0, last = 0;           // both allowed
  std::optional<int64_t> or_else = {};  // allowed, too: an index that is passed over
};
std::optional<ElementBounds> element_bounds(std::string_view op, const GivenArguments& given);
// Looks at tensors on the CPU alone: on a GPU, asking would hold up what is queued, and its page tables keep
// every process to its own. Throws Failed (kRaised).
void check_numbers(const ElementBounds& within, const torch::jit::Stack& stack);

}  // namespace nereid::replay
