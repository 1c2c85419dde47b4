// Makes forks cheap: a fork copies the tables of every small page that a process has written, some 80,000 of
// them after importing PyTorch, and the child pays again when it ends. Moved into 2 MiB pages they are some
// 200 entries. And it finds every page of code anew that it runs: that costs a fault for each 64 KiB, and
// their entries at the end. Code that children run for sure is copied into huge pages of memory, which a fork
// shares.
//
// Measured on a busy 2-core virtual machine, 640 MB resident: fork 12 ms -> 4.5 ms of processor time, the
// child's end 10 ms -> 4 ms, for 0.2 to 0.9 s of work once. So it is done in steps, between other things, and
// only by a process that has forked often enough to fork often again (kForksBeforeCompaction).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace nereid::sandbox {

// Start addresses of the 2 MiB pieces of mapped files, code or constants, of which this process has at least
// a few pages in its own tables. In a process that was forked, these are what it has used since; asked for in
// a child that did what all children do, they are worth copying. Empty where /proc does not say.
std::vector<uint64_t> file_pieces_in_use();

// The same of a forked child that does `work`.
std::vector<uint64_t> file_pieces_used_by(const std::function<void()>& work);

// After so many forks what compaction would have saved is what it costs, so it costs at most as much again.
inline constexpr int kForksBeforeCompaction = 16;

class Compaction {
 public:
  // Takes note of the anonymous memory that this process has now. `file_pieces`: see above.
  explicit Compaction(std::vector<uint64_t> file_pieces = {});
  // Moves one huge page's worth, in a few milliseconds; false when all is done, or this kernel (before 6.1)
  // cannot.
  bool step();

 private:
  std::vector<uint64_t> file_pieces_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // [first, last) address, multiples of the huge page
};

}  // namespace nereid::sandbox
