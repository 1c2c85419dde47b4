// Where an answer that is still being written can be cut: after its plan, after each kernel, after its
// program.
//
// Fences are read as verify/batch/answer.h reads them, so an answer that is cut after its program is judged
// as that program. Kernels are functions of a Python block, at its margin, that are decorated with
// triton.jit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/code_fences.h"

namespace nereid::lm {

struct Boundary {
  enum class Kind : uint8_t {
    kPlan,     // after </think>; of an answer that does not think, where its first Python block opens
    kKernel,   // after a kernel's last line
    kProgram,  // after the block that holds class ModelNew with a forward
  } kind = Kind::kPlan;
  size_t at = 0;  // bytes of the answer before it
  bool operator==(const Boundary&) const = default;
};
std::string_view to_string(Boundary::Kind kind);

class AnswerBoundaries {
 public:
  // More of the answer: the boundaries that are certain now, in order. Each comes once; there is one plan and
  // at most one program.
  std::vector<Boundary> push(std::string_view piece);
  const std::string& text() const { return text_; }

 private:
  void read_thoughts(std::vector<Boundary>& found);
  void read_line(std::string_view line, size_t end, std::vector<Boundary>& found);
  void read_code(std::string_view line, size_t end, std::vector<Boundary>& found);
  void close_kernel(std::vector<Boundary>& found);

  std::string text_;
  size_t line_ = 0;  // where the line begins that is not whole yet
  bool planned_ = false, thinking_ = false, thought_ = false, finished_ = false;
  // The open block.
  bool inside_ = false, python_ = false, in_model_ = false;
  bool program_ = false;  // it holds a ModelNew with a forward
  Fence fence_{};
  TripleQuotes quotes_;
  enum class Part : uint8_t { kOther, kDecorated, kKernel } part_ = Part::kOther;
  size_t kernel_end_ = 0;  // after the last line of the kernel that is being read
};

}  // namespace nereid::lm
