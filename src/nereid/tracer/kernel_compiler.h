// TTIR text in, machine code out: a Python worker that has never run a candidate's Python
// (python/nereid/_compiler/kernel_compiler.py), jailed children that use all cores, and a cache on disk that
// all runs share.
//
//   NEREID_TRY(auto compiler, KernelCompiler::start({.installation = installation}));
//   NEREID_TRY(CompileAnswer answer, compiler->compile(kernel, 90, Deadline::after(120)));
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "nereid/base/deadline.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/sandbox/zygote/zygote.h"
#include "nereid/trace/trace.h"
#include "nereid/tracer/compiled_kernel.h"
#include "nereid/tracer/kernel_cache.h"

namespace nereid::tracer {

// Why there is no machine code: what the compiler said, or that it took too long or crashed. The kernel's
// fault.
struct CompileDiagnostics {
  std::string message;
};
using CompileAnswer = std::variant<CompiledKernel, CompileDiagnostics>;

struct KernelCompilerOptions {
  Installation installation;
  std::filesystem::path cache = {};  // empty: installation.cache / "kernels"
  int workers = 0;                   // compilations at a time; 0: one a core
  double seconds = 120;  // of one, without what it waited for a processor: then the kernel is to blame
  bool accept_weak_isolation = false;
  bool namespaces = true;  // false: behave as on a kernel without them
};

// Thread-safe: to use all cores, call `compile` from as many threads. The same kernel asked for twice at once
// is compiled once.
class KernelCompiler {
 public:
  // Finds out which compiler is there. Its worker starts with the first kernel that is not in the cache, or
  // `warm_up`.
  static Result<std::unique_ptr<KernelCompiler>> start(KernelCompilerOptions options);

  // Past `deadline` (in wall time: the caller's budget, or how long we are ready to wait) it is an Error.
  Result<CompileAnswer> compile(const trace::Kernel& kernel, int arch, Deadline deadline);

  // Starts the worker in the background.
  Status warm_up();

  // What the kernel is kept under: a hash of its text, its options, `arch`, and the versions of Triton and
  // ptxas.
  std::string key(const trace::Kernel& kernel, int arch) const;
  // Around a compiling child; an Error while no worker is warm.
  Result<sandbox::Isolation> isolation();
  KernelCache& cache() { return cache_; }
  const std::string& toolchain() const { return toolchain_; }
  int launcher_pid();  // of the worker, for tests that kill it; 0 before it starts

 private:
  using Shared = std::shared_future<Result<CompileAnswer>>;
  KernelCompiler(KernelCompilerOptions options, std::string toolchain);
  Result<CompileAnswer> compile_anew(const trace::Kernel& kernel, int arch, const std::string& key,
                                     Deadline deadline);
  Result<sandbox::Zygote*> worker();

  KernelCompilerOptions options_;
  std::string toolchain_;
  KernelCache cache_;
  std::mutex mutex_;
  std::unique_ptr<sandbox::Zygote> worker_;
  std::map<std::string, Shared> under_way_;
};

}  // namespace nereid::tracer
