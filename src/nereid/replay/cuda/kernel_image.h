// What the kernel compiler makes of a kernel's TTIR: machine code and what a launch of it needs to know.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::replay::cuda {

// How a tensor descriptor was lowered; one for each descriptor parameter, as the compiler reports them.
struct DescriptorMeta {
  int swizzle = 0;  // CUtensorMapSwizzle
  int element_bytes = 0;
  int element_type = 0;  // the device's numbering (see `host_element_type`)
  std::vector<uint32_t> block;
  bool fp4_padded = false;
};

struct KernelImage {
  std::string name;  // the symbol
  std::string cubin;
  std::vector<std::string>
      parameter_types;  // of the TTIR function: "!tt.ptr<f32>", "i32", "!tt.tensordesc<tensor<64x64xf16>>"
  std::vector<DescriptorMeta> descriptors;
  int64_t shared_bytes = 0;
  int num_warps = 4;
  int num_ctas = 1;
  int64_t global_scratch_bytes = 0, global_scratch_align = 1;  // for each CTA
  int64_t profile_scratch_bytes = 0, profile_scratch_align = 1;
  bool cooperative = false;
  bool dependent_launch = false;  // programmatic dependent launch ("launch_pdl")
};

// {"cubin": base64, "name": symbol, "params": [types], "tensordesc_meta": [{"swizzle", "elem_size",
// "elem_type", "block_size", "fp4_padded"}], "shared", "num_warps", "num_ctas", "global_scratch": [bytes,
// align], "profile_scratch": [bytes, align], "cooperative", "pdl"}: the judge's words to a worker. An error
// (blamed on the input) names the field that is wrong.
nlohmann::json to_json(const KernelImage& image);
Result<KernelImage> kernel_image_from_json(const nlohmann::json& document);

}  // namespace nereid::replay::cuda
