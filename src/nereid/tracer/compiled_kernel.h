// Machine code of a kernel and what a launch of it needs to know. Where it comes from has seen hostile text
// (TTIR), so a reader bounds it; what the code does is the replay's business, which fences it.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::tracer {

inline constexpr size_t kMaxCubinBytes = size_t{64} << 20;

// How a tensor descriptor parameter became a CUtensorMap (cuTensorMapEncodeTiled): one for each, in order.
// Interleave is none, L2 promotion 128 bytes, element strides 1, out-of-bounds fill as the launch's
// descriptor says.
struct TensorMapMeta {
  int swizzle = 0;    // CUtensorMapSwizzle
  int elem_size = 0;  // bytes
  int elem_type = 0;  // Triton's device number; the host's CUtensorMapDataType is the same but for 8 -> 10, 9
                      // -> 8, 10 -> 9
  std::vector<int64_t> block_size;  // outermost first; the driver takes the innermost first
  bool fp4_padded = false;          // the host doubles the innermost size
};

struct CompiledKernel {
  std::string name;  // the symbol in `cubin`
  std::string cubin;
  // Of the TTIR function's parameters: "!tt.ptr<f32>", "i32", "!tt.tensordesc<tensor<64x64xf16>>". The
  // cubin's parameters are these in order (a descriptor as a CUtensorMap by value), then pointers to global
  // and to profile scratch.
  std::vector<std::string> params;
  std::vector<TensorMapMeta> tensordesc_meta;
  // Below sm_90 a descriptor is not a CUtensorMap but: base pointer, shape and strides as i64 each, nan
  // padding as a byte.
  bool expanded_descriptors = false;
  int64_t shared = 0;  // dynamic shared memory, bytes
  int num_warps = 4;   // block size / 32; warp specialization may have raised what the launch asked for
  int num_ctas = 1;    // cluster size along x; the grid's x is multiplied by it
  std::array<int64_t, 2> global_scratch{0, 1}, profile_scratch{0, 1};  // bytes a CTA, alignment
  int64_t tmem = 0;                                                    // tensor memory columns (sm_100)
  bool cooperative = false,
       pdl = false;  // launch attributes: cooperative grid, programmatic stream serialization
  int64_t registers = 0, spills = 0;  // of a thread, as ptxas says: registers, bytes spilled
};

// The answer of python/nereid/_compiler/kernel_compiler.py.
nlohmann::json to_json(const CompiledKernel& kernel);
// Hostile input: an error names the field.
Result<CompiledKernel> compiled_kernel_from_json(const nlohmann::json& document);

}  // namespace nereid::tracer
