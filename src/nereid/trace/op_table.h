// Look-ups in the generated table (op_table.inc); the parts of an operator's name.
#pragma once

#include <optional>
#include <string_view>

namespace nereid::trace {

// The lists of tools/op_table.py. A loss is a reduction unless its result is as large as its input.
enum class Listed : unsigned char {
  kQuery,
  kView,
  kAllocation,
  kFill,
  kCast,
  kCopy,
  kConcatenation,
  kRandom,
  kPointwise,
  kLoss,
  kReduction,
  kScan,
  kContraction,
  kConvolution,
  kAttention,
  kNormalisation,
  kPooling,
  kRecurrent,
  kIndexing,
  kSort,
  kOther,
};

struct OpName {
  std::string_view space;     // "aten"
  std::string_view name;      // "add"
  std::string_view overload;  // "Tensor"; empty for the default
  bool in_place = false;      // the name was "add_"
};
OpName split_name(std::string_view op);

std::optional<Listed> listed(std::string_view op);
// "3 running_mean,4 running_var?5": positions and names of arguments that are written though no general rule
// says so;
// "?5" where only if the argument at position 5 is true. Empty where there are none.
std::string_view listed_writes(std::string_view op);
bool is_out_name(std::string_view keyword);
bool is_seeded(std::string_view op);

}  // namespace nereid::trace
