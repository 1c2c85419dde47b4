// Numbers as in a kernel that is written by hand: not 480, but 5 * 96.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nereid/compiler/ir/index.h"

namespace nereid::compiler {

// Of Python text: an integer that is no size itself, but a product of sizes that are adjacent in one of
// `shapes` (the first that fits, the fewest factors), is written as that product; else, where it is larger
// than 20 and not among `known`, the task's own numbers, as the distance of a dimension's last element from
// its first, one close to a product or a size (up to three away) as a sum, and two or three times a size so;
// 1 / n, 1 / n ** 0.5, 1 / (n - 1) and n / (n - 1) likewise, where the number is exactly that and not among
// `known`, with n of `elsewhere` where it is of none of `shapes` (both are referred to): what is summed in
// two steps is divided by what the second goes over no more. Blocks' sizes and small numbers stay as they
// are, and so do strings and comments. Values are the same: Python and Triton's front end compute them from
// constants. `pointers`: what is in row-major order at x_ptr. In the address of a load or a store its
// strides are written by its own sizes, and so is an offset, as element_text() has it, with (50 - 1) for the
// last of 50 where the address runs backwards.
class SymbolicSizes {
 public:
  SymbolicSizes(const std::vector<Extents>& shapes, const std::set<std::string>& known,
                const std::vector<Extents>* elsewhere = nullptr,
                const std::map<std::string, Extents>& pointers = {});
  ~SymbolicSizes();
  std::string rewrite(const std::string& text) const;

 private:
  class Numbers;
  std::unique_ptr<const Numbers> numbers_;
  std::map<std::string, Extents> pointers_;
};

// Where an element is in what is in row-major order: "2 * 24 * 16 + 5" is the third row of 24 by 16, the
// sixth element; "" the first one. `lasts`: "(24 - 1) * 16" for 23 * 16.
std::string element_text(const Extents& sizes, int64_t offset, bool lasts = false);

// The numbers that stand in Python text, as they are written.
std::set<std::string> numbers_in(const std::string& source);

}  // namespace nereid::compiler
