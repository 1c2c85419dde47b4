#include "nereid/tracer/kernel_compiler.h"

#include <chrono>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::tracer {
namespace {

constexpr std::chrono::milliseconds kTurn{50};  // between looks for an interrupt
constexpr int kCacheVersion = 1;  // of what kernel_compiler.py makes of the same text and the same Triton

// Versions only, without importing Triton: a run whose kernels are all in the cache never needs it.
constexpr const char* kToolchainQuestion = R"(
import importlib.metadata, importlib.util, os, re, subprocess
triton = importlib.util.find_spec('triton')
if triton is None: raise SystemExit('no triton here; install triton 3.6')
folder = os.path.join(triton.submodule_search_locations[0], 'backends', 'nvidia', 'bin')
words = ['triton ' + importlib.metadata.version('triton')]
for name in ('ptxas', 'ptxas-blackwell'):
    said = subprocess.run([os.path.join(folder, name), '--version'], capture_output=True, text=True).stdout
    words.append(name + ' ' + ''.join(re.findall(r'V[0-9.]+', said)))
print(', '.join(words), end='')
)";

std::string request_of(const trace::Kernel& kernel, int arch) {
  Json options = kernel.options;
  for (const auto& [name, value] : kernel.text_options) options[name] = value;
  return Json{{"ttir", kernel.ttir}, {"arch", arch}, {"options", options}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Result<CompileAnswer> decode(const std::string& bytes) {
  auto json = parse_json(bytes, "the kernel compiler's answer");
  if (!json.ok()) return CompileAnswer(CompileDiagnostics{json.error().message});
  for (const char* word : {"error", "failed"})
    if (json->is_object() && json->contains(word) && (*json)[word].is_string())
      return CompileAnswer(CompileDiagnostics{(*json)[word].get<std::string>()});
  auto kernel = compiled_kernel_from_json(*json);
  if (!kernel.ok()) return CompileAnswer(CompileDiagnostics{kernel.error().message});
  return CompileAnswer(std::move(kernel).value());
}

}  // namespace

KernelCompiler::KernelCompiler(KernelCompilerOptions options, std::string toolchain)
    : options_(std::move(options)),
      toolchain_(std::move(toolchain)),
      cache_(options_.cache.empty() ? options_.installation.cache / "kernels" : options_.cache) {}

Result<std::unique_ptr<KernelCompiler>> KernelCompiler::start(KernelCompilerOptions options) {
  sandbox::SpawnSpec spec{.words = {options.installation.python.string(), "-c", kToolchainQuestion},
                          .environment = sandbox::own_environment()};
  NEREID_TRY(auto toolchain, sandbox::run_program(std::move(spec), Deadline::after(60)));
  return std::unique_ptr<KernelCompiler>(new KernelCompiler(std::move(options), std::move(toolchain)));
}

std::string KernelCompiler::key(const trace::Kernel& kernel, int arch) const {
  return sha256_hex(fmt::format("{} {} {}", kCacheVersion, toolchain_, request_of(kernel, arch)));
}

Result<sandbox::Isolation> KernelCompiler::isolation() {
  const std::lock_guard lock(mutex_);
  if (!worker_) return our_error("no kernel was compiled yet");
  return worker_->isolation(Deadline::after(0));
}

Result<sandbox::Zygote*> KernelCompiler::worker() {
  const std::lock_guard lock(mutex_);
  if (worker_) return worker_.get();
  sandbox::ZygoteOptions zygote{.installation = options_.installation,
                                .module = "nereid._compiler.kernel_compiler"};
  zygote.executables = {"triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/bin/ptxas-blackwell"};
  zygote.children = options_.workers;
  zygote.needs_scratch = true;
  zygote.namespaces = options_.namespaces;
  zygote.accept_weak_isolation = options_.accept_weak_isolation;
  zygote.max_answer_bytes = kMaxCubinBytes / 3 * 4 + (size_t{1} << 20);
  zygote.limits.memory_bytes = int64_t{12} << 30;
  zygote.limits.scratch_bytes = zygote.limits.file_bytes = int64_t{256} << 20;
  NEREID_TRY(worker_, sandbox::Zygote::start(std::move(zygote)));
  return worker_.get();
}

Status KernelCompiler::warm_up() {
  const auto started = worker();
  if (!started.ok()) return started.error();
  return ok_status();
}

int KernelCompiler::launcher_pid() {
  const std::lock_guard lock(mutex_);
  return worker_ ? worker_->launcher_pid() : 0;
}

Result<CompileAnswer> KernelCompiler::compile(const trace::Kernel& kernel, int arch, Deadline deadline) {
  const std::string name = key(kernel, arch);
  std::promise<Result<CompileAnswer>> promise;
  Shared other;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = under_way_.try_emplace(name);
    if (is_new)
      found->second = promise.get_future().share();
    else
      other = found->second;
  }
  if (other.valid()) {
    while (other.wait_for(kTurn) != std::future_status::ready) {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      if (deadline.passed())
        return our_error("{} was being compiled for another verdict when the time for it was over",
                         kernel.name);
    }
    const auto& answer = other.get();
    // The other's time may have been up, or its worker lost, and ours not.
    const bool ours = !answer.ok() && answer.error().blame == Blame::kOurs;
    return !ours || deadline.passed() ? answer : compile(kernel, arch, deadline);
  }
  auto answer = compile_anew(kernel, arch, name, deadline);
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(name);
  }
  promise.set_value(answer);
  return answer;
}

Result<CompileAnswer> KernelCompiler::compile_anew(const trace::Kernel& kernel, int arch,
                                                   const std::string& key, Deadline deadline) {
  if (auto found = cache_.find(key)) return CompileAnswer(std::move(*found));
  NEREID_TRY(auto* worker, worker());
  NEREID_TRY(auto outcome, worker->run(request_of(kernel, arch), options_.seconds, deadline));
  if (const auto* late = std::get_if<sandbox::OutOfTime>(&outcome))
    return CompileAnswer(CompileDiagnostics{
        fmt::format("{} was not compiled within {:g} s of work", kernel.name, late->seconds)});
  if (const auto* killed = std::get_if<sandbox::Killed>(&outcome))
    return CompileAnswer(
        CompileDiagnostics{fmt::format("the compiler broke down over {}: {}", kernel.name, killed->limit)});
  auto answer = decode(std::get<sandbox::Answer>(outcome).bytes);
  if (answer.ok() && std::holds_alternative<CompiledKernel>(*answer))
    cache_.keep(key, std::get<CompiledKernel>(*answer));
  return answer;
}

}  // namespace nereid::tracer
