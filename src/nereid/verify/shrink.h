// Smaller sizes for a task that does not fit: which module-level integers of the reference to replace, and by
// what.
//
// The sizes of a task are written as `N = 4096` at the top level of its file. Halving such a constant and
// tracing both files again either works (the shapes are legal) or does not. The search halves the largest
// constant that lowers the cost, keeps what a kernel may rely on (a multiple of 16 stays one, an odd size
// stays odd, what divides another size goes on dividing it), and stops as soon as the task fits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

struct Constant {
  std::string name{};
  int64_t value = 0;
  bool operator==(const Constant&) const = default;
};

// The names assigned an integer at the margin of a Python file: `N = 4096`, `M, K = 16, 2 * 1024`, `A = B =
// 8`, `H: int = 1 << 4`. A name that is assigned twice is left out.
std::vector<Constant> module_constants(std::string_view source);

using Sizes = std::map<std::string, int64_t>;

// What the task needs with `sizes` in place of its constants. An Error stops the search.
struct Probe {
  bool legal = false;  // both files could be traced
  double bytes = 0, flops = 0;
};
struct Goal {
  double bytes = 0, flops = 0;  // both at most
  int max_probes = 200;
};

// The constants to replace, largest first. An error blamed on the input where no legal sizes reach the goal.
Result<std::vector<Shrunk>> find_smaller_sizes(const std::vector<Constant>& constants,
                                               const std::function<Result<Probe>(const Sizes&)>& probe,
                                               const Goal& goal);

}  // namespace nereid::verify
