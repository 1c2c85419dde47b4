#include "nereid/gpu/kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace nereid::gpu {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Bytes of a number passed by value ("i1" is passed as one); 0 where the type is none.
size_t scalar_bytes(std::string_view type) {
  if (type == "i1" || type == "i8") return 1;
  if (type == "i16" || type == "f16" || type == "bf16") return 2;
  if (type == "i32" || type == "f32") return 4;
  if (type == "i64" || type == "f64") return 8;
  return 0;
}

// Encodes the tensor map that the kernel's TMA instructions read (the facts:
// triton/backends/nvidia/driver.c).
Status encode(const Driver& driver, const Descriptor& descriptor, const tracer::TensorMapMeta& meta,
              CUtensorMap& map) {
  const size_t rank = meta.block_size.size();
  if (rank == 0 || rank > 5 || descriptor.shape.size() != rank || descriptor.strides.size() != rank)
    return input_error("a tensor descriptor of rank {} for a block of rank {} (1 to 5)",
                       descriptor.shape.size(), rank);
  if (descriptor.strides.back() != 1)
    return input_error("a tensor descriptor's last stride must be 1, got {}", descriptor.strides.back());
  // CUDA counts dimensions from the innermost outwards.
  uint32_t box[5], element_strides[5] = {1, 1, 1, 1, 1};
  uint64_t dims[5], strides[5];
  for (size_t i = 0; i < rank; ++i) {
    box[rank - 1 - i] = static_cast<uint32_t>(meta.block_size[i]);
    dims[rank - 1 - i] = static_cast<uint64_t>(descriptor.shape[i]);
  }
  if (meta.fp4_padded) dims[0] *= 2;
  for (size_t i = 0; i + 1 < rank; ++i)
    strides[rank - 2 - i] =
        static_cast<uint64_t>(meta.elem_size) * static_cast<uint64_t>(descriptor.strides[i]);
  const CUresult code = driver.cuTensorMapEncodeTiled(
      &map, host_element_type(meta.elem_type), static_cast<uint32_t>(rank),
      reinterpret_cast<void*>(descriptor.base), dims, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(meta.swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      descriptor.nan_padding ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                             : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS)
    return input_error("the tensor descriptor is not one the GPU accepts: cuTensorMapEncodeTiled: {}",
                       describe(driver, code));
  return ok_status();
}

// Walks the parameters and the arguments side by side.
class Packer {
 public:
  Packer(const Driver& driver, const CompiledKernel& image) : driver_(driver), image_(image) {}

  Status pack(const std::vector<Argument>& arguments) {
    for (const Argument& argument : arguments) {
      if (next_ >= image_.params.size())
        return input_error("kernel {} has {} parameters, the launch gives more", image_.name, next_);
      const std::string& type = image_.params[next_++];
      NEREID_TRY_STATUS(std::visit([&](const auto& value) { return pack_one(type, value); }, argument));
    }
    if (next_ != image_.params.size())
      return input_error("kernel {} has {} parameters, the launch gives {}", image_.name,
                         image_.params.size(), next_);
    return ok_status();
  }

  ParameterBlock block;

 private:
  Error misfit(const std::string& type, std::string_view given) const {
    return input_error("kernel {}: parameter {} is {}, the launch gives {}", image_.name, next_ - 1, type,
                       given);
  }

  Status pack_one(const std::string& type, CUdeviceptr pointer) {
    if (!starts_with(type, "!tt.ptr")) return misfit(type, "a pointer");
    block.append(&pointer, sizeof pointer, sizeof pointer);
    return ok_status();
  }
  Status pack_one(const std::string& type, Scalar scalar) {
    const size_t bytes = scalar_bytes(type);
    if (bytes == 0) return misfit(type, "a number");
    block.append(&scalar.bits, bytes, bytes);  // little-endian: the low bytes come first
    return ok_status();
  }
  Status pack_one(const std::string& type, const Descriptor& descriptor) {
    if (!starts_with(type, "!tt.tensordesc")) return misfit(type, "a tensor descriptor");
    if (image_.expanded_descriptors) {
      append_expanded(descriptor);
    } else {
      if (descriptors_ >= image_.tensordesc_meta.size())
        return our_error("kernel {}: the compiler described {} tensor descriptors, the launch gives more",
                         image_.name, image_.tensordesc_meta.size());
      CUtensorMap map;
      NEREID_TRY_STATUS(encode(driver_, descriptor, image_.tensordesc_meta[descriptors_++], map));
      block.append(&map, sizeof map, 64);
    }
    for (const auto* numbers : {&descriptor.shape, &descriptor.strides})
      for (const int64_t number : *numbers) {
        if (next_ >= image_.params.size() || scalar_bytes(image_.params[next_]) == 0)
          return our_error("kernel {}: no integer parameter {} for a tensor descriptor's shape or stride",
                           image_.name, next_);
        NEREID_TRY_STATUS(pack_one(image_.params[next_++], Scalar{static_cast<uint64_t>(number)}));
      }
    return ok_status();
  }

  void append_expanded(const Descriptor& descriptor) {
    block.append(&descriptor.base, sizeof descriptor.base, sizeof descriptor.base);
    for (const auto* numbers : {&descriptor.shape, &descriptor.strides})
      for (const int64_t number : *numbers) block.append(&number, sizeof number, sizeof number);
    block.append(&descriptor.nan_padding, 1, 1);
  }

  const Driver& driver_;
  const CompiledKernel& image_;
  size_t next_ = 0, descriptors_ = 0;
};

}  // namespace

CUtensorMapDataType host_element_type(int device_number) {
  // The two numberings agree but for f64, f32 and their neighbours.
  switch (device_number) {
    case 8:
      return static_cast<CUtensorMapDataType>(10);
    case 9:
      return static_cast<CUtensorMapDataType>(8);
    case 10:
      return static_cast<CUtensorMapDataType>(9);
    default:
      return static_cast<CUtensorMapDataType>(device_number);
  }
}

void ParameterBlock::append(const void* bytes, size_t size, size_t align) {
  NEREID_CHECK(size <= sizeof(Chunk) && align <= alignof(Chunk), "a parameter of at most 128 bytes, got {}",
               size);
  Chunk chunk{};
  std::memcpy(chunk.bytes, bytes, size);
  chunks_.push_back(chunk);
  sizes_.push_back(size);
}

std::vector<void*> ParameterBlock::pointers() {
  std::vector<void*> pointers;
  for (Chunk& chunk : chunks_) pointers.push_back(chunk.bytes);
  return pointers;
}

std::string_view ParameterBlock::bytes_of(size_t index) const {
  return {reinterpret_cast<const char*>(chunks_.at(index).bytes), sizes_.at(index)};
}

Result<ParameterBlock> pack_parameters(const Driver& driver, const CompiledKernel& image,
                                       const std::vector<Argument>& arguments, Scratch scratch) {
  Packer packer(driver, image);
  NEREID_TRY_STATUS(packer.pack(arguments));
  packer.block.append(&scratch.global, sizeof scratch.global, sizeof scratch.global);
  packer.block.append(&scratch.profile, sizeof scratch.profile, sizeof scratch.profile);
  return std::move(packer.block);
}

Result<LoadedKernel> LoadedKernel::load(const Driver& driver, int device, const CompiledKernel& image) {
  LoadedKernel kernel(driver, image);
  NEREID_CUDA(driver, cuModuleLoadData(&kernel.module_, image.cubin.data()));
  NEREID_CUDA(driver, cuModuleGetFunction(&kernel.function_, kernel.module_, image.name.c_str()));
  NEREID_CUDA(driver, cuFuncGetAttribute(&kernel.registers_, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.function_));

  constexpr int64_t kDefaultSharedBytes = 48 << 10;
  if (image.shared > kDefaultSharedBytes) {
    NEREID_TRY(const DeviceFacts facts, device_facts(driver, device));
    int fixed = 0;
    NEREID_CUDA(driver, cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.function_));
    const int64_t most = facts.shared_bytes_per_block - fixed;
    if (image.shared > most)
      return input_error("kernel {} needs {} bytes of shared memory, {} has {}", image.name, image.shared,
                         facts.name, most);
    NEREID_CUDA(driver, cuFuncSetCacheConfig(kernel.function_, CU_FUNC_CACHE_PREFER_SHARED));
    NEREID_CUDA(driver, cuFuncSetAttribute(kernel.function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           static_cast<int>(most)));
  }
  constexpr int kPortableClusterSize = 8;
  if (image.num_ctas > kPortableClusterSize)
    NEREID_CUDA(driver,
                cuFuncSetAttribute(kernel.function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  return kernel;
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : driver_(other.driver_),
      image_(std::move(other.image_)),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_),
      registers_(other.registers_) {}

LoadedKernel::~LoadedKernel() {
  if (module_ != nullptr) driver_->cuModuleUnload(module_);
}

int64_t LoadedKernel::global_scratch_bytes(const std::array<int64_t, 3>& grid) const {
  return image_.global_scratch[0] * grid[0] * grid[1] * grid[2] * image_.num_ctas;
}
int64_t LoadedKernel::profile_scratch_bytes(const std::array<int64_t, 3>& grid) const {
  return image_.profile_scratch[0] * grid[0] * grid[1] * grid[2] * image_.num_ctas;
}

Result<LoadedKernel::Outcome> LoadedKernel::launch(const std::array<int64_t, 3>& grid,
                                                   const std::vector<Argument>& arguments, Scratch scratch,
                                                   CUstream stream) const {
  NEREID_TRY(ParameterBlock block, pack_parameters(*driver_, image_, arguments, scratch));
  constexpr int64_t kMaxGridX = std::numeric_limits<int32_t>::max(), kMaxGridYZ = 65535;
  if (grid[0] < 0 || grid[1] < 0 || grid[2] < 0 || grid[0] > kMaxGridX / image_.num_ctas ||
      grid[1] > kMaxGridYZ || grid[2] > kMaxGridYZ)
    return input_error("kernel {}: the grid {}x{}x{} is not one the GPU accepts (at most {}x{}x{})",
                       image_.name, grid[0], grid[1], grid[2], kMaxGridX / image_.num_ctas, kMaxGridYZ,
                       kMaxGridYZ);
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return Outcome{};

  CUlaunchAttribute attributes[4];
  unsigned count = 0;
  const auto attribute = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    attributes[count] = {};
    attributes[count].id = id;
    return attributes[count++].value;
  };
  if (image_.pdl)
    attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed =
        1;
  if (image_.cooperative) attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (image_.num_ctas != 1) {
    auto& cluster = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    cluster = {static_cast<unsigned>(image_.num_ctas), 1, 1};
    attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE).clusterSchedulingPolicyPreference =
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(grid[0] * image_.num_ctas);
  config.gridDimY = static_cast<unsigned>(grid[1]);
  config.gridDimZ = static_cast<unsigned>(grid[2]);
  config.blockDimX = static_cast<unsigned>(32 * image_.num_warps);
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(image_.shared);
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = count;

  std::vector<void*> pointers = block.pointers();
  const CUresult code = driver_->cuLaunchKernelEx(&config, function_, pointers.data(), nullptr);
  Outcome outcome{code, {}};
  if (code != CUDA_SUCCESS) outcome.error = fmt::format("cuLaunchKernelEx: {}", describe(*driver_, code));
  return outcome;
}

}  // namespace nereid::gpu
