// Which samples of a question branch off from its first, and where. Pure: it knows boundaries and numbers
// alone.
//
// The first sample is the trunk. Half of the others, rounded up, may go on from it: half of these, rounded
// up, from the end of its plan, and one from the end of each kernel. The rest begin from the question, for a
// branch repeats what is wrong before its cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nereid/lm/speculation/answer_boundaries.h"

namespace nereid::lm {

// When samples other than the trunk are written. A GPU has room for all at once. On a CPU they would slow the
// trunk, and are written while it is judged.
enum class BranchStart : uint8_t { kNone, kAtOnce, kAfterTrunk };

class BranchPolicy {
 public:
  // Samples that may branch off, in the order in which they do.
  explicit BranchPolicy(std::vector<size_t> samples)
      : waiting_(std::move(samples)), branches_((waiting_.size() + 1) / 2) {}

  // The trunk came to a boundary: the samples that go on from there.
  std::vector<size_t> branch_at(Boundary::Kind kind) {
    const size_t wanted = kind == Boundary::Kind::kPlan     ? (branches_ + 1) / 2
                          : kind == Boundary::Kind::kKernel ? 1
                                                            : 0;
    const size_t taken = std::min({wanted, branches_, waiting_.size()});
    branches_ -= taken;
    return take(0, taken);
  }
  // Those that begin from the question without waiting for the trunk.
  std::vector<size_t> fresh() { return take(branches_, waiting_.size()); }
  // The trunk has ended: all that have not begun.
  std::vector<size_t> rest() { return take(0, waiting_.size()); }

 private:
  // Branches are taken from the front and others from the back, so that it does not depend on `fresh` which
  // samples branch off.
  std::vector<size_t> take(size_t from, size_t to) {
    const auto begin = waiting_.begin() + static_cast<ptrdiff_t>(std::min(from, to));
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(to);
    std::vector<size_t> taken(begin, end);
    waiting_.erase(begin, end);
    return taken;
  }

  std::vector<size_t> waiting_;
  size_t branches_ = 0;  // that may still branch off
};

// Of answers that are written and not judged the one to be judged next: that which began last, with the most
// of the trunk; of equals the one that was written first. `shared`: tokens of the trunk of each, of the trunk
// all.
inline size_t newest(std::span<const int64_t> shared) {
  return static_cast<size_t>(std::ranges::max_element(shared) - shared.begin());
}

}  // namespace nereid::lm
