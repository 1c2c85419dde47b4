// Where a replay runs: memory, launches, and blocks that another process can map. One implementation for the
// CPU (cpu_machine.h), one for CUDA. Everything else in this folder is the same for both.
//
// Errors are exceptions here (c10::Error or Failed, replay.h): caught once per request.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/trace/trace.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::replay {

// One storage as a launch sees it.
struct LaunchBuffer {
  trace::StorageId storage = -1;
  std::byte* data = nullptr;  // on the machine
  int64_t bytes = 0;
  int64_t element_bytes = 1;   // of the first view that a launch passes
  uint8_t* written = nullptr;  // one bit a byte, or null: all written (ttir::Buffer). Null on CUDA
  std::string_view name;       // "input 0", "parameter fc.weight", "temporary 12"
};

// An alternative of a launch, with its pointers resolved to (buffer, byte offset).
struct LaunchRequest {
  const trace::Alternative* alternative = nullptr;
  std::vector<ttir::Argument> arguments;  // one for each TTIR parameter; see ttir::Launch
  std::vector<LaunchBuffer> buffers;
  bool sanitize = false;
  bool shuffled = false;  // programs in an order of no meaning (ttir::RunOptions); ignored on CUDA
  Deadline deadline = Deadline::never();
};

// The kernels of one trace, loaded for a machine.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // The TTIR function's parameters: types as in the text, and which pointers are read and written.
  virtual std::vector<ttir::Parameter> parameters(trace::KernelId kernel) = 0;
  // Whether the order of a kernel's programs may matter without a race, and can be chosen here.
  virtual bool communicates(trace::KernelId) { return false; }
  // Findings go into `findings`; throws Failed where the launch does not fit the kernel or ran out of time.
  virtual void launch(const LaunchRequest& request, std::vector<ttir::Finding>& findings,
                      int64_t& finding_count) = 0;
};

// Memory that one process fills and another reads.
struct SharedBlock {
  at::Tensor bytes;  // u8, on the machine
  Fd fd;             // to be passed to the other process; invalid in the process that opened it
};

class Machine {
 public:
  virtual ~Machine() = default;

  virtual c10::Device device(trace::Device device) const = 0;

  // A new storage with undefined contents. A fenced machine puts it at the end of a mapping of its own.
  virtual c10::Storage allocate(int64_t bytes, trace::Device device) = 0;
  bool fenced = false;                           // set by the caller for the next replay; ignored on the CPU
  virtual bool fences() const { return false; }  // and whether it is

  virtual std::unique_ptr<Launcher> load_kernels(const trace::Trace& trace) = 0;

  virtual SharedBlock share(int64_t bytes) = 0;
  // Checks that the block is at least as large and cannot be cut short by its owner. It can be written to
  // only with `to_write`, or where this GPU cannot map memory for reading alone.
  virtual SharedBlock open(const Fd& fd, int64_t bytes, bool to_write) = 0;

  virtual void synchronize() = 0;  // surfaces the errors of asynchronous work
  virtual void trim() = 0;  // memory kept for later, of which there is much, goes back for others to have
  // A candidate's limit from now on, and the seconds of work in so much wall and processor time: of what this
  // process computes, or on a device of wall time.
  virtual Deadline limit(double seconds) const { return Deadline::after_work(seconds); }
  virtual double work(double wall, double processor) const { return std::min(wall, processor); }
  // Whether uninitialised memory is tracked with `written` bitmaps.
  virtual bool tracks_written() const = 0;
};

}  // namespace nereid::replay
