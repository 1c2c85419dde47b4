// The guard at the end of a written file: where its kernels were not verified, a call raises or goes to
// PyTorch.
//
// The text is that of python/nereid/_written/guard.py, the same in every file; what is added here is data:
// shapes, dtypes, strides and devices of inputs and state, scalar arguments, the constructor's arguments, and
// whether training mode matters.
//
//   NEREID_TRY(compiler::Guard guard, compiler::Guard::read(installation.package));
//   NEREID_TRY(const std::string text, guard.around(source, {.reference = trace, .candidate = trace}));
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::compiler {

struct Assumptions {
  const trace::Trace& reference;  // what the constructor and forward are given
  const trace::Trace&
      candidate;  // what the module holds; the reference's where the constructor is the reference's
  bool state_known =
      true;           // false: the candidate was not traced, and its state is what its constructor makes
  bool modes = true;  // train() and eval() make a difference
  std::string fallback = {};  // the reference's source, to be used elsewhere; empty: a call elsewhere raises
  // Later calls launch without Triton's dispatch (python/nereid/_written/direct.py). Only for forwards that
  // the compiler wrote: their launches depend on nothing that the guard does not check.
  // Files without kernels have none.
  bool direct = false;
  // The module captures itself as a CUDA graph (python/nereid/_written/graphed.py). kFresh: each call returns
  // its own results; kStatic: all calls return the graph's buffers.
  enum class Graph : uint8_t { kNone, kFresh, kStatic } graph = Graph::kNone;
  // Of kernels for any batch: the reference at another batch, both batches (the reference's first), and the
  // least and the largest that pass. A size that differs is an affine function of the batch.
  const trace::Trace* other_batch = nullptr;
  std::pair<int64_t, int64_t> batches = {}, passing = {};
};

class Guard {
 public:
  static Result<Guard> read(const std::filesystem::path& package);  // Installation::package

  // The file with its guard. An Error (blamed on the input) where no fallback is possible: the candidate
  // lacks parameters of the reference's, or the reference's source cannot be put into a function.
  Result<std::string> around(const std::string& source, const Assumptions& assumptions) const;

 private:
  Guard(std::string text, std::string direct, std::string graph)
      : text_(std::move(text)), direct_(std::move(direct)), graph_(std::move(graph)) {}
  std::string text_, direct_, graph_;
};

// What holds of such a file, for its header: one line each for inputs, constructor, mode.
std::string assumptions_text(const Assumptions& assumptions);

// The file with its class in the mode (training or not) that its constructor does not leave it in; its trace
// is the file's own where the mode makes no difference.
std::string in_other_mode(const std::string& source, const std::string& class_name);

}  // namespace nereid::compiler
