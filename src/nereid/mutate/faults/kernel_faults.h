// Faults of one kernel, as edits of its text.
#pragma once

#include <string>
#include <vector>

#include "nereid/mutate/faults/fault.h"
#include "nereid/mutate/kernel_text.h"

namespace nereid::mutate {

// Lines [first, first + count) become `lines`.
struct LineEdit {
  int first = 0, count = 1;
  std::vector<std::string> lines;
};

struct KernelFault {
  Fault fault{};
  std::string what;             // "arith.addf becomes arith.subf"
  int line = 0;                 // in the text, from 0: the operation that is at fault
  std::vector<LineEdit> edits;  // in the order of their lines, apart from each other
};

// All faults that can be made in this text: hundreds for an ordinary kernel. Many need the verifier's word
// that they are legal.
std::vector<KernelFault> kernel_faults(const KernelText& kernel);

// Edits that keep what the kernel computes up to rounding, as an author could as well have written it: e^x by
// 2^x, a quotient by a reciprocal, a product and a sum by one multiply-add. `fault` says nothing.
std::vector<KernelFault> kernel_rewrites(const KernelText& kernel);

std::string edited(const KernelText& kernel, const std::vector<LineEdit>& edits);

}  // namespace nereid::mutate
