// Some steps of a traced forward as a task of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::render {

// Every tensor that a call is given, in order.
std::vector<trace::ValueId> read_by(const trace::Call& call);

// Its elements are one after another, the last dimension fastest.
bool is_contiguous(const trace::Value& value);

// The name of a storage that holds nothing below zero, like those whose names end in "var".
inline constexpr std::string_view kPositive = "positive";

// The line of a subgraph's file that does its first step; the others follow, a line each.
inline constexpr int kFirstStepLine = 6;

// In KernelBench's format: forward takes `inputs` as x0, x1, ..., each contiguous whatever it is in the
// trace, a single number as a tensor of one element, and returns `outputs`; `steps` are those of `forward`,
// which are calls all of them. Integers are drawn below what the steps index with them. An error names what
// has no text: integers that are no such index, an argument that is none of Python's.
Result<std::string> subgraph_source(const trace::Trace& trace, const trace::Phase& forward,
                                    const std::vector<size_t>& steps,
                                    const std::vector<trace::ValueId>& inputs,
                                    const std::vector<trace::ValueId>& outputs);

// What the steps take this value for an index into is below this; nothing where none of them is known to
// take it for one.
std::optional<int64_t> bound_of(const trace::Trace& trace, const trace::Phase& forward,
                                const std::vector<size_t>& steps, const trace::Value& index);

// Python for random data as an operator meets it where this value stood: what is never negative there is not
// here, indices are below `bound`.
std::string sample_python(const trace::Value& value, bool never_negative, std::optional<int64_t> bound);

}  // namespace nereid::render
