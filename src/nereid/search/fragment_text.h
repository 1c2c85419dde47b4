// Some steps of a traced forward as a task of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::search {

// Every tensor that a call is given, in order.
std::vector<trace::ValueId> read_by(const trace::Call& call);

// Its elements lie one after another, the last dimension fastest.
bool is_contiguous(const trace::Value& value);

// The line of a fragment's file that does its first step; the others follow, a line each.
inline constexpr int kFirstStepLine = 6;

// In KernelBench's format: forward takes `inputs` as x0, x1, ..., each contiguous whatever it is in the trace,
// a single number as a tensor of one element, and returns `outputs`; `steps` are those of `forward`, which are calls all of them. Integers are drawn below
// what the steps index with them. An error names what has no text: integers that are no such index, an
// argument that is none of Python's.
Result<std::string> fragment_text(const trace::Trace& trace, const trace::Phase& forward,
                                  const std::vector<size_t>& steps, const std::vector<trace::ValueId>& inputs,
                                  const std::vector<trace::ValueId>& outputs);

// How many steps from this one on are one operator to people, which PyTorch computes by several calls and partly in place: a cosine similarity. 0 where they are not.
size_t composite_at(const trace::Phase& forward, size_t step);

// As people write it, where the steps are one operator by mask, by index or by signs, or a composite; nothing where they are not. Its
// inputs are the same in the same order, but indices have the sizes that it is told with. Small models know
// such operators so.
struct PlainText {
  std::string source{};
  std::vector<std::vector<int64_t>> sizes{};  // of the inputs
};
std::optional<PlainText> plain_text(const trace::Trace& trace, const trace::Phase& forward,
                                    const std::vector<size_t>& steps,
                                    const std::vector<trace::ValueId>& inputs,
                                    const std::vector<trace::ValueId>& outputs);

}  // namespace nereid::search
