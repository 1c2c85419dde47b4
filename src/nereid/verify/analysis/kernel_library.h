// Kernels as the rules see them, each read once for its content. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/access.h"
#include "nereid/trace/trace.h"
#include "nereid/ttir/analysis/data_paths.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

struct ReadKernel {
  std::shared_ptr<const ttir::Kernel> kernel{};  // null where it is unreadable
  KernelAnalysis facts{};
  std::vector<trace::ParameterUse> uses{};
  ttir::DataPaths paths{};  // of a readable kernel
};

class KernelLibrary {
 public:
  explicit KernelLibrary(size_t most = 4096) : most_(most) {}

  ReadKernel read(const trace::Kernel& kernel);

 private:
  const size_t most_;
  std::mutex mutex_;
  std::map<std::string, ReadKernel> read_;
};

// A launch as the executor takes it, and the sizes of its buffers; each storage is one buffer.
struct SizedLaunch {
  ttir::Launch launch{};
  std::vector<int64_t> buffer_bytes{};
};
SizedLaunch launch_of(const trace::Trace& trace, const trace::Alternative& alternative,
                      const ttir::Kernel& kernel);

// What a launch moves and computes, counted without data.
ttir::Cost launch_cost(const trace::Trace& trace, const trace::Alternative& alternative,
                       const ttir::Kernel& kernel);

// What a text that is no kernel shows all the same.
KernelAnalysis facts_of_unreadable(const std::string& ttir, const std::string& trouble);

// The facts of a whole trace.
Result<TraceAnalysis> analyze_trace(const trace::Trace& trace, KernelLibrary& library);

}  // namespace nereid::verify
