// The compiler, from a reference to a file with `ModelNew`.
//
//   Lowering task(trace, source);
//   NEREID_TRY(compiler::Module module, task.module());
//   Choices other{.kernels = {{module.kernels[0].name, {.m = 128}}}};
//   NEREID_TRY(compiler::Module variant, task.module(other));
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "nereid/base/result.h"
#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/estimate.h"

namespace nereid::compiler {

// What a launch passes.
struct KernelArgument {
  std::string name;  // as the kernel has it, without "_ptr"
  std::vector<int64_t> sizes = {}, strides = {};
  bool written = false;
};

struct LoweredKernel {
  std::string name, does;            // "linear_gelu_kernel", which no other has; "linear, gelu"
  std::string function;              // in the file; several may share one (shared_kernels.h)
  KernelChoice choice;               // as it was cut
  std::vector<KernelChoice> others;  // other ways that fit the target, the cheapest by the model first
  Estimate estimate;
  int64_t programs = 1;
  int64_t steps = 0;                // launches one after the other; 0: one
  std::set<int> covers;             // of the traced forward, that it does; one may be done in several kernels
  std::vector<StepWord> work = {};  // what it does, in the order of the steps
  std::vector<int64_t> rows = {}, columns = {};  // what its programs share out, and what each goes over
  bool reduces = false;                          // over the columns
  std::vector<KernelArgument> arguments = {};
};

struct Module {
  std::string text;  // Python: the plan, what the constructor needs, our kernels, ModelNew
  std::string plan;  // in words, as it stands at the top of the file
  std::vector<LoweredKernel> kernels;
  std::vector<std::string> kept;   // operators that stay PyTorch's: "aten::sort (model.py:12)"
  std::vector<std::string> draws;  // random draws, which are PyTorch's: "aten::dropout (line 12)"
  double seconds = 0;              // of all kernels, by the cost model
};

// One task in several ways: what is the same in them is worked out once.
class Lowering {
 public:
  // `source` is the text that was traced; it and the trace are referred to. Without `prose` nothing is taken
  // over, nor concluded, from its comments and docstrings. With `other` what depends on the batch is written
  // with its name (any_batch.h).
  Lowering(const trace::Trace& trace, const std::string& source, bool prose = true,
           const OtherBatch& other = {});
  ~Lowering();
  // An error names the operator or the kernel that cannot be lowered.
  Result<Module> module(const Choices& choices = {});

 private:
  struct Read;
  struct Cut;
  Result<const Cut*> cut(const Choices& choices);

  const trace::Trace& trace_;
  const std::string& source_;
  const bool prose_;
  const OtherBatch other_;
  std::unique_ptr<Result<Read>> read_;  // once it was asked for
  std::deque<Cut> cuts_;                // the latest few, the newest first
};

// In one way alone.
Result<Module> lower_module(const trace::Trace& trace, const std::string& source, const Choices& choices = {},
                            const OtherBatch& other = {});

}  // namespace nereid::compiler
