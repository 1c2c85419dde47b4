// Training pairs of measured choices: of each program the fastest Verified answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

namespace nereid::dataset {

struct BestPairs {
  std::string lines{};  // a pair each, as `nereid train data` reads them
  int64_t pairs = 0;
  int64_t first = 0;     // of these, where no other choice was faster than the compiler's own by kFaster
  double gain = 1;       // geometric mean of the first choice's seconds over the best's
  bool measured = true;  // false: by the cost model's seconds
};

// What is nearer to the compiler's own choice is noise.
inline constexpr double kFaster = 1.02;

// `text`: lines of a measurement (measurement.h); `where` names it in errors. Programs that were left out or
// have no Verified answer give no pair. By measured seconds where the line names a device, else by modelled
// ones, which the pair says.
Result<BestPairs> best_pairs(std::string_view text, const std::string& where);

}  // namespace nereid::dataset
