#include "nereid/python/launch_sequence.h"

namespace nereid::python {

LaunchSequence::LaunchSequence(const std::vector<KernelLaunch>& launches) {
  for (const KernelLaunch& one : launches) {
    launches_.push_back({.function = one.function,
                         .grid = {one.grid[0], one.grid[1], one.grid[2]},
                         .threads = one.threads,
                         .shared_bytes = one.shared_bytes,
                         .cooperative = one.cooperative,
                         .first = values_.size()});
    for (const KernelParameter& parameter : one.parameters) {
      if (parameter.slot >= 0) patches_.push_back({values_.size(), static_cast<uint32_t>(parameter.slot)});
      values_.push_back(parameter.value);
    }
  }
}

// Memory of the thread: the driver copies parameters before a launch, or the adding of a node, returns.
const LaunchSequence::Packed& LaunchSequence::packed(const uint64_t* pointers) const {
  thread_local Packed packed;
  packed.values.assign(values_.begin(), values_.end());
  for (const Patch& patch : patches_) packed.values[patch.parameter] += pointers[patch.slot];
  packed.addresses.resize(packed.values.size() + 1);  // a kernel without parameters has an address, too
  for (size_t i = 0; i < packed.values.size(); ++i) packed.addresses[i] = &packed.values[i];
  return packed;
}

CUresult LaunchSequence::launch(const CudaDriver& driver, CUstream stream, const uint64_t* pointers) const {
  void* const* addresses = packed(pointers).addresses.data();
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{};
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  for (const Launch& one : launches_) {
    config.gridDimX = one.grid[0], config.gridDimY = one.grid[1], config.gridDimZ = one.grid[2];
    config.blockDimX = one.threads;
    config.sharedMemBytes = one.shared_bytes;
    config.attrs = one.cooperative ? &cooperative : nullptr;
    config.numAttrs = one.cooperative ? 1 : 0;
    const CUresult code =
        driver.cuLaunchKernelEx(&config, one.function, const_cast<void**>(addresses + one.first), nullptr);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult LaunchSequence::add_nodes(const CudaDriver& driver, const uint64_t* pointers, CUgraph graph) const {
  void* const* addresses = packed(pointers).addresses.data();
  CUgraphNode last = nullptr;
  for (const Launch& one : launches_) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = one.function;
    node.gridDimX = one.grid[0], node.gridDimY = one.grid[1], node.gridDimZ = one.grid[2];
    node.blockDimX = one.threads, node.blockDimY = node.blockDimZ = 1;
    node.sharedMemBytes = one.shared_bytes;
    node.kernelParams = const_cast<void**>(addresses + one.first);
    CUgraphNode made = nullptr;
    CUresult code = driver.cuGraphAddKernelNode(&made, graph, last == nullptr ? nullptr : &last,
                                                last == nullptr ? 0 : 1, &node);
    if (code == CUDA_SUCCESS && one.cooperative) {
      CUlaunchAttributeValue cooperative{};
      cooperative.cooperative = 1;
      code = driver.cuGraphKernelNodeSetAttribute(made, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
    }
    if (code != CUDA_SUCCESS) return code;
    last = made;
  }
  return CUDA_SUCCESS;
}

CUresult LaunchSequence::instantiate(const CudaDriver& driver, const uint64_t* pointers,
                                     CUgraphExec* graph) const {
  // A capture of another thread is not disturbed.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (const CUresult code = driver.cuThreadExchangeStreamCaptureMode(&mode); code != CUDA_SUCCESS)
    return code;
  CUgraph nodes = nullptr;
  CUresult code = driver.cuGraphCreate(&nodes, 0);
  if (code == CUDA_SUCCESS) {
    code = add_nodes(driver, pointers, nodes);
    if (code == CUDA_SUCCESS) code = driver.cuGraphInstantiateWithFlags(graph, nodes, 0);
    driver.cuGraphDestroy(nodes);
  }
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  return code;
}

}  // namespace nereid::python
