// Our own Triton kernels (python/nereid/_compiler/engine_kernels.py): made for a model's shape once, kept in
// the cache on disk, launched on a GPU's stream, or by the executor of TTIR where tests want to see them on
// the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/dtype.h"
#include "nereid/tracer/compiled_kernel.h"

namespace nereid::lm {

// The next power of two: blocks are such.
inline int64_t padded(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

// The name of a model's type in a KernelRequest.
std::string element_name(lm::Dtype dtype);

struct KernelRequest {
  std::string name;
  std::string element;  // "bf16", "fp16", "fp32": the type of the model's tensors
  std::map<std::string, int64_t> constants;
  int warps = 4, stages = 3;
  int registers = 0;  // a thread's, at most; 0: as many as the compiler likes
};

struct BuiltKernel {
  std::string ttir;
  tracer::CompiledKernel image;  // empty where no architecture was asked for
};

// In the order of the requests. arch: 90 for an H200; 0: TTIR alone. What was not built before takes seconds:
// a Python process, and no GPU.
Result<std::vector<BuiltKernel>> build_kernels(const Installation& installation, int arch,
                                               const std::vector<KernelRequest>& requests);

using KernelArgument = std::variant<at::Tensor, int32_t, int64_t, float>;

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual int arch() const = 0;
  // Kernels for `launch`, after those that are loaded: the number of the first.
  virtual Result<size_t> load(std::vector<BuiltKernel> kernels) = 0;
  // Tensors are contiguous, and stay until the stream is done with them; where a kernel wants a descriptor it
  // gets one of [size(0), all the others]. Throws where a launch fails, as libtorch does.
  virtual void launch(size_t kernel, const std::array<int64_t, 3>& grid,
                      const std::vector<KernelArgument>& arguments) = 0;
};

}  // namespace nereid::lm
