// Smaller sizes for a task that does not fit: which module-level integers of the reference to replace, and by
// what.
//
// The sizes of a task are written as `N = 4096` at the top level of its file. Halving such a constant and
// tracing both files again either works (the shapes are legal) or does not. The search makes the largest
// constant that lowers the cost smaller, and stops as soon as the task fits. It keeps what a kernel may rely
// on, and gives up rather than lose it:
//   * a size stays a multiple of the power of two, up to 256, that divides it; an odd size stays odd;
//   * what divides another size goes on dividing it;
//   * sizes keep their ratio, and with it a group's size, where one divides the other and they are equal,
//     double, or belong together: both are the constructor's (they occur in get_init_inputs), or the file
//     divides one by the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

struct Constant {
  std::string name{};
  int64_t value = 0;
  std::set<std::string> relatives{};  // that it belongs together with
  bool operator==(const Constant&) const = default;
};

// The names assigned an integer at the margin of a Python file: `N = 4096`, `M, K = 16, 2 * 1024`, `A = B =
// 8`, `H: int = 1 << 4`, with their relatives. A name that is assigned twice is left out.
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
