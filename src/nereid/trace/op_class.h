// What kind of work an operator is: the table behind the question who does the work of a module, Triton or
// PyTorch.
//
// The table (op_table.inc) names every ATen operator of the pinned PyTorch; tools/op_table.py makes it and
// holds the lists. An operator that is not in it (another library's, a later PyTorch's) is kOther, which is
// work.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::trace {

// From the least to the most serious: a composite counts as the most serious of what it is and what it
// became.
enum class OpClass : uint8_t {
  kQuery,       // asks about shapes and flags, seeds a generator: no work on data
  kView,        // another look at the same bytes
  kAllocation,  // unwritten bytes
  kFill,        // values that depend on no tensor: zeros, arange, eye
  kCast,
  kCopy,  // the same values elsewhere, in another order or repeated: clone, flip, pad with a constant
  kConcatenation,
  kBookkeeping,  // pointwise, reduction, scan, sort, indexing over data that is integers and nothing else
  kRandom,
  kPointwise,
  kIndexing,   // gather, scatter without accumulation, embedding
  kPooling,    // and resampling
  kSort,       // topk, unique, quantile, median too
  kReduction,  // scatter with accumulation and losses too
  kScan,
  kNormalisation,  // softmax too
  kRecurrent,
  kContraction,
  kConvolution,
  kAttention,
  kOther,  // none of these, or unknown: FFT, linear algebra, sparse tensors, other libraries
};
std::string_view to_string(OpClass c);  // "contraction", "index bookkeeping"
// Free under every policy: up to and including kBookkeeping.
bool is_free(OpClass c);
// What may remain PyTorch's under `mostly` where it is small: pointwise work, random draws and indexing.
bool may_be_small(OpClass c);

// By the name alone ("aten::add.Tensor", "aten::add_"), as if over floating-point data.
OpClass listed_class(std::string_view op);

// With what the call was given: dtypes, what it became (`parts`), whether it moved any data at all. Answers
// for one trace, which must outlive it.
class OpFacts {
 public:
  explicit OpFacts(const Trace& trace);
  OpClass classify(const Call& call) const;
  // What it is when work over integers is not set aside as bookkeeping.
  OpClass classify_as_work(const Call& call) const;
  // True for a storage that no value of the trace looks at as floating-point data: only such data counts as
  // integers.
  bool holds_integers_only(StorageId storage) const { return integers_only_[static_cast<size_t>(storage)]; }

 private:
  bool over_integers_only(const Call& call) const;
  bool as_large_as_its_input(const Call& call) const;

  const Trace& trace_;
  std::vector<bool> integers_only_;
};

}  // namespace nereid::trace
