// A CUDA driver for tests in Python: a shared library that is opened in libcuda.so.1's place. It keeps
// launches with their parameters, alone and in graphs, and computes the kernels that a test has named on the
// host.
//
// Functions that tests call themselves begin with fake_; ctypes calls them. A handle of a kernel is any
// number.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

// A kernel: the sizes of its parameters, in bytes, and whether the host computes it: out[i] = a[i] * scale +
// b[i % period], parameters (out, a, b, scale, period, count), all of float32 or int32.
struct Kernel {
  std::vector<int> sizes;
  bool computed = false;
};

struct Launch {
  uint64_t function = 0;
  unsigned grid[3] = {}, block[3] = {}, shared = 0;
  bool cooperative = false;
  std::vector<uint64_t> values;
};

struct Nodes {
  std::vector<Launch> launches;
};

struct State {
  std::mutex lock;
  std::map<uint64_t, Kernel> kernels;
  std::map<std::string, std::pair<int, int>> failures;  // of a function: the code, and calls before it
  std::map<CUgraph, Nodes> graphs;
  std::map<CUgraphExec, Nodes> executables;
  std::map<CUgraphExec, int> inside;  // launches of it that run now
  bool capturing = false, quiet = false, overlapped = false;
  uintptr_t next = 0x1000;
  std::string record;  // lines
};

State& state() {
  static State held;
  return held;
}

int failure(const char* name) {
  const auto found = state().failures.find(name);
  if (found == state().failures.end()) return 0;
  return found->second.second-- > 0 ? 0 : found->second.first;
}

Launch launch_of(uint64_t function, void** parameters) {
  Launch launch;
  launch.function = function;
  const std::vector<int>& sizes = state().kernels[function].sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i], static_cast<size_t>(sizes[i]));
    launch.values.push_back(value);
  }
  return launch;
}

void compute(const Launch& launch) {
  if (!state().kernels[launch.function].computed) return;
  auto* out = reinterpret_cast<float*>(launch.values[0]);
  const auto* a = reinterpret_cast<const float*>(launch.values[1]);
  const auto* b = reinterpret_cast<const float*>(launch.values[2]);
  float scale = 0;
  std::memcpy(&scale, &launch.values[3], sizeof scale);
  const auto period = static_cast<int32_t>(launch.values[4]), count = static_cast<int32_t>(launch.values[5]);
  for (int32_t i = 0; i < count; ++i) out[i] = a[i] * scale + b[i % period];
}

void note(const char* what, const Launch& launch, uint64_t stream) {
  std::string& text = state().record;
  text += what;
  for (const uint64_t number : {launch.function, stream}) text += ' ' + std::to_string(number);
  for (const unsigned* size : {launch.grid, launch.block})
    for (int i = 0; i < 3; ++i) text += ' ' + std::to_string(size[i]);
  text += ' ' + std::to_string(launch.shared) + ' ' + std::to_string(launch.cooperative ? 1 : 0);
  for (const uint64_t value : launch.values) text += ' ' + std::to_string(value);
  text += '\n';
}

void note(const char* what, uint64_t number) {
  state().record += std::string(what) + ' ' + std::to_string(number) + '\n';
}

template <typename Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(state().next += 16);
}

}  // namespace

extern "C" {

// -- what tests call ----------------------------------------------------------------------------------------

__attribute__((visibility("default"))) void fake_reset() {
  const std::lock_guard<std::mutex> held(state().lock);
  state().failures.clear(), state().record.clear();
  state().capturing = state().quiet = state().overlapped = false;
}

__attribute__((visibility("default"))) void fake_kernel(uint64_t function, int count, const int* sizes,
                                                        int computed) {
  const std::lock_guard<std::mutex> held(state().lock);
  state().kernels[function] = {std::vector<int>(sizes, sizes + count), computed != 0};
}

// The function fails with `code` after `before` more calls; 0: no more.
__attribute__((visibility("default"))) void fake_fail(const char* name, int code, int before) {
  const std::lock_guard<std::mutex> held(state().lock);
  if (code == 0)
    state().failures.erase(name);
  else
    state().failures[name] = {code, before};
}

__attribute__((visibility("default"))) void fake_capturing(int capturing) {
  state().capturing = capturing != 0;
}

// Nothing is kept and computed.
__attribute__((visibility("default"))) void fake_quiet(int quiet) { state().quiet = quiet != 0; }

// The number of executable graphs that are not destroyed; negative where one was launched by two threads at
// once.
__attribute__((visibility("default"))) int fake_executables() {
  const std::lock_guard<std::mutex> held(state().lock);
  return state().overlapped ? -1 : static_cast<int>(state().executables.size());
}

// What was called since, a line each; kept until the next call of this function.
__attribute__((visibility("default"))) const char* fake_record() {
  const std::lock_guard<std::mutex> held(state().lock);
  static std::string taken;
  taken = std::move(state().record);
  state().record.clear();
  return taken.c_str();
}

// -- the driver's -------------------------------------------------------------------------------------------

__attribute__((visibility("default"))) CUresult cuLaunchKernelEx(const CUlaunchConfig* config,
                                                                 CUfunction function, void** parameters,
                                                                 void** /*extra*/) {
  if (state().quiet) return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> held(state().lock);
  if (const int code = failure("cuLaunchKernelEx"); code != 0) return static_cast<CUresult>(code);
  Launch launch = launch_of(reinterpret_cast<uint64_t>(function), parameters);
  launch.grid[0] = config->gridDimX, launch.grid[1] = config->gridDimY, launch.grid[2] = config->gridDimZ;
  launch.block[0] = config->blockDimX, launch.block[1] = config->blockDimY;
  launch.block[2] = config->blockDimZ, launch.shared = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    launch.cooperative |= config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  note("launch", launch, reinterpret_cast<uint64_t>(config->hStream));
  compute(launch);
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGetErrorName(CUresult code, const char** name) {
  *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuStreamIsCapturing(CUstream /*stream*/,
                                                                    CUstreamCaptureStatus* status) {
  *status = state().capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, own);
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGraphCreate(CUgraph* graph, unsigned /*flags*/) {
  const std::lock_guard<std::mutex> held(state().lock);
  if (const int code = failure("cuGraphCreate"); code != 0) return static_cast<CUresult>(code);
  *graph = new_handle<CUgraph>();
  state().graphs[*graph] = {};
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGraphDestroy(CUgraph graph) {
  const std::lock_guard<std::mutex> held(state().lock);
  return state().graphs.erase(graph) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Nodes have to be a chain.
__attribute__((visibility("default"))) CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph,
                                                                     const CUgraphNode* before, size_t count,
                                                                     const CUDA_KERNEL_NODE_PARAMS* of) {
  const std::lock_guard<std::mutex> held(state().lock);
  if (const int code = failure("cuGraphAddKernelNode"); code != 0) return static_cast<CUresult>(code);
  const auto found = state().graphs.find(graph);
  if (found == state().graphs.end()) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<Launch>& launches = found->second.launches;
  if (count != (launches.empty() ? 0U : 1U)) return CUDA_ERROR_INVALID_VALUE;
  if (count == 1 && reinterpret_cast<uintptr_t>(*before) != launches.size()) return CUDA_ERROR_INVALID_VALUE;
  Launch launch = launch_of(reinterpret_cast<uint64_t>(of->func), of->kernelParams);
  launch.grid[0] = of->gridDimX, launch.grid[1] = of->gridDimY, launch.grid[2] = of->gridDimZ;
  launch.block[0] = of->blockDimX, launch.block[1] = of->blockDimY, launch.block[2] = of->blockDimZ;
  launch.shared = of->sharedMemBytes;
  launches.push_back(launch);
  *node = reinterpret_cast<CUgraphNode>(launches.size());  // of the last graph that was created
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult
cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id, const CUlaunchAttributeValue* value) {
  const std::lock_guard<std::mutex> held(state().lock);
  if (state().graphs.empty() || id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Launch>& launches = state().graphs.rbegin()->second.launches;
  launches[reinterpret_cast<uintptr_t>(node) - 1].cooperative = value->cooperative == 1;
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable,
                                                                            CUgraph graph,
                                                                            unsigned long long /*flags*/) {
  const std::lock_guard<std::mutex> held(state().lock);
  if (const int code = failure("cuGraphInstantiate"); code != 0) return static_cast<CUresult>(code);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;  // the thread's is read by an exchange
  cuThreadExchangeStreamCaptureMode(&mode);
  if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *executable = new_handle<CUgraphExec>();
  state().executables[*executable] = state().graphs[graph];
  note("instantiate", reinterpret_cast<uint64_t>(*executable));
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const std::lock_guard<std::mutex> held(state().lock);
  note("destroy", reinterpret_cast<uint64_t>(executable));
  return state().executables.erase(executable) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

__attribute__((visibility("default"))) CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (state().quiet) return CUDA_SUCCESS;
  std::vector<Launch> launches;
  {
    const std::lock_guard<std::mutex> held(state().lock);
    if (const int code = failure("cuGraphLaunch"); code != 0) return static_cast<CUresult>(code);
    const auto found = state().executables.find(executable);
    if (found == state().executables.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (state().inside[executable]++ != 0) state().overlapped = true;
    launches = found->second.launches;
    note("replay", reinterpret_cast<uint64_t>(executable));
    for (const Launch& launch : launches) note("node", launch, reinterpret_cast<uint64_t>(stream));
  }
  for (const Launch& launch : launches) compute(launch);
  const std::lock_guard<std::mutex> held(state().lock);
  --state().inside[executable];
  return CUDA_SUCCESS;
}
}
