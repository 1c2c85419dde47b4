// A compiled Triton kernel: loading it, packing its parameters as Triton 3.6's own launcher does, launching
// it.
//
// The cubin's parameters are the TTIR function's, in order, with these differences
// (triton/backends/nvidia/driver.py):
//   !tt.tensordesc<...>   a CUtensorMap by value, 128 bytes; the shape (i32) and stride (i64) parameters
//   behind it stay i1                    one byte f16, bf16             two bytes: f16 rounded to nearest
//   even, bf16 cut off, both from a double
// and two pointers follow: global scratch and profile scratch, null where the kernel needs none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/gpu/driver.h"
#include "nereid/tracer/compiled_kernel.h"

namespace nereid::gpu {

using tracer::CompiledKernel;

// One argument for each parameter of the TTIR function; a Descriptor also covers the shapes and strides
// after it.
struct Descriptor {
  CUdeviceptr base = 0;
  std::vector<int64_t> shape, strides;  // in elements
  bool nan_padding = false;
};
struct Scalar {
  uint64_t bits = 0;  // in the parameter's own type, zero-extended
};
using Argument = std::variant<CUdeviceptr, Scalar, Descriptor>;

// What cuLaunchKernelEx takes: a pointer to each parameter, into bytes that this owns.
class ParameterBlock {
 public:
  std::vector<void*> pointers();
  size_t count() const { return sizes_.size(); }
  std::string_view bytes_of(size_t index) const;
  void append(const void* bytes, size_t size, size_t align);

 private:
  struct alignas(128) Chunk {
    unsigned char bytes[128];
  };
  std::vector<Chunk>
      chunks_;  // one for each parameter: none is larger, and a CUtensorMap must be at 64 bytes
  std::vector<size_t> sizes_;
};

struct Scratch {
  CUdeviceptr global = 0, profile = 0;
};

// An error, blamed on the input, where the arguments do not fit the parameters.
Result<ParameterBlock> pack_parameters(const Driver& driver, const CompiledKernel& image,
                                       const std::vector<Argument>& arguments, Scratch scratch);

// The number cuTensorMapEncodeTiled wants for the compiler's.
CUtensorMapDataType host_element_type(int device_number);

class LoadedKernel {
 public:
  // In the current context.
  static Result<LoadedKernel> load(const Driver& driver, int device, const CompiledKernel& image);
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) = delete;
  ~LoadedKernel();

  // Scratch memory that a launch on this grid needs, in bytes.
  int64_t global_scratch_bytes(const std::array<int64_t, 3>& grid) const;
  int64_t profile_scratch_bytes(const std::array<int64_t, 3>& grid) const;

  // Asynchronous; a grid with an empty axis launches nothing, as in Triton. An error of the driver's own is
  // returned as it is (`code`), so that the caller can distinguish a fault of the kernel's from one of ours.
  struct Outcome {
    CUresult code = CUDA_SUCCESS;
    std::string error;
    bool ok() const { return code == CUDA_SUCCESS; }
  };
  Result<Outcome> launch(const std::array<int64_t, 3>& grid, const std::vector<Argument>& arguments,
                         Scratch scratch, CUstream stream) const;

  const CompiledKernel& image() const { return image_; }
  int registers() const { return registers_; }

 private:
  LoadedKernel(const Driver& driver, CompiledKernel image) : driver_(&driver), image_(std::move(image)) {}
  const Driver* driver_;
  CompiledKernel image_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  int registers_ = 0;
};

}  // namespace nereid::gpu
