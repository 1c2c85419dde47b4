#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "nereid/lm/engine/cuda/torch_cuda.h"

namespace nereid::lm {
namespace {

// Before the first, cuBLAS makes its handles and workspaces; before others, other kernels are loaded.
constexpr int kWarmUps = 2;

int living = 0;  // graphs

void* record(void (*work)(void*), void* argument) {
  static at::cuda::MempoolId_t pool;
  if (living == 0) pool = at::cuda::graph_pool_handle();  // a pool ends with the last graph in it
  static const auto stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
  c10::cuda::getCurrentCUDAStream().synchronize();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    static int missing = kWarmUps;
    do work(argument);
    while (--missing > 0);
    stream.synchronize();
    graph->capture_begin(pool);
    work(argument);
    graph->capture_end();
  }
  c10::cuda::CUDACachingAllocator::emptyCache();  // what the warm-ups held
  graph->replay();
  ++living;
  return graph.release();
}

void replay(void* recorded) { static_cast<at::cuda::CUDAGraph*>(recorded)->replay(); }
void forget(void* recorded) {
  delete static_cast<at::cuda::CUDAGraph*>(recorded);
  --living;
}
void* current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

}  // namespace
}  // namespace nereid::lm

extern "C" const nereid::lm::TorchCuda* nereid_torch_cuda() {
  static const nereid::lm::TorchCuda table = {nereid::lm::record, nereid::lm::replay, nereid::lm::forget,
                                              nereid::lm::current_stream};
  return &table;
}
