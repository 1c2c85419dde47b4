// Integer outputs that are places in a tensor (argmax, top-k, sort and their kin): an answer is right where
// the value that it points to is as good as the reference's, whichever of several equal ones it chose.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::replay {

// A call of the judged forward that gives places in its first operand.
struct IndexMaker {
  int step = -1;
  trace::ValueId operand = -1, result = -1;
  std::optional<int64_t> dim = {};  // none: in the flattened operand
  bool one = false;                 // one place for each row, among equals any; else an order of several
  bool largest = false;             // the greatest first
  bool stable = false;              // equals in the order in which they come; of one, the first
  bool open_order = false;          // topk(sorted=False): any order of the places
  trace::ValueId values = -1;       // of topk: its other result
};
std::vector<IndexMaker> index_makers(const trace::Trace& trace);
// Whether the places themselves are used, by a later call or as an output: of top-k and its kin they may not.
bool uses_places(const trace::Trace& trace, const std::vector<IndexMaker>& makers);

// The way from a maker's result to an output: copies that keep the order of elements, and views.
struct IndexOutput {
  IndexMaker maker;
  std::vector<std::pair<trace::ValueId, trace::ValueId>> copies;  // from, to; the first one is the earliest
};
// None where the output is anything but a maker's places, moved and converted.
std::optional<IndexOutput> index_output(const trace::Trace& trace, const std::vector<IndexMaker>& makers,
                                        trace::ValueId output);

// What one index output is judged by.
class Places {
 public:
  // `values`: the maker's operand in float64.
  Places(const IndexOutput& output, const trace::Trace& trace, trace::ValueId id, const at::Tensor& values);

  // The operand as another run of the reference has it: by how much it may differ is forgiven, row by row,
  // and what rows differ by as a rule in every row.
  void widen(const at::Tensor& values, double factor, double epsilon);

  // Of flat indices, which point to other values than the reference's do, are outside, or come twice in a
  // row. Where the value wanted is NaN any index is right; with `odd_inputs`, in rows that hold an infinity
  // or a NaN, for how a kernel comes to its values decides what it makes of them.
  at::Tensor wrong(const at::Tensor& got, const at::Tensor& want, bool odd_inputs) const;

 private:
  IndexMaker maker_;
  at::Tensor values_;     // [rows, size]
  at::Tensor rows_;       // of each element of the output, flat
  at::Tensor tolerance_;  // [rows]
};

// The places that the maker could as well have chosen among equals: the `choice`-th of them, or another
// order.
at::Tensor other_choice(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& result,
                        int choice, at::Generator generator);
// The order of an answer to a maker that leaves the order open, from the places or from the values in it: for
// each of a row's elements, which of the sorted ones it is. In the shape of the maker's result; undefined
// where the answer has another shape. `values`: the maker's operand.
at::Tensor order_of_places(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& places);
at::Tensor order_of_values(const IndexMaker& maker, const at::Tensor& found);
// A result of the maker's in that order.
at::Tensor in_order(const IndexMaker& maker, const at::Tensor& result, const at::Tensor& order);
// Whether there is anything to choose.
bool has_ties(const IndexMaker& maker, const at::Tensor& values);

// The same for a maker of one place, among numbers that differ by `within` of their size at most: the first
// or the last of those that are as near to the one that `result` points to.
at::Tensor choice_within(const IndexMaker& maker, const at::Tensor& values, const at::Tensor& result,
                         double within, bool last);
bool has_near_ties(const IndexMaker& maker, const at::Tensor& values, double within);

}  // namespace nereid::replay
