#include "tests/support/fake_driver.h"

namespace nereid::gpu {
namespace {

FakeDriver::Record state;

bool fails(const char* name) { return state.fail == name; }
#define NEREID_FAKE_FAIL(name) \
  if (fails(name)) return CUDA_ERROR_OUT_OF_MEMORY

CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = FakeDriver::kGranularity;
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                unsigned long long) {
  NEREID_FAKE_FAIL("cuMemCreate");
  if (bytes % FakeDriver::kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = state.next_handle++;
  state.handles[*handle] = bytes;
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle handle) {
  return state.handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult reserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  NEREID_FAKE_FAIL("cuMemAddressReserve");
  *address = state.next;
  state.next += bytes;
  state.reserved[*address] = bytes;
  return CUDA_SUCCESS;
}
CUresult unreserve(CUdeviceptr address, size_t bytes) {
  const auto found = state.reserved.find(address);
  if (found == state.reserved.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  state.reserved.erase(found);
  return CUDA_SUCCESS;
}
CUresult map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  NEREID_FAKE_FAIL("cuMemMap");
  const auto found = state.handles.find(handle);
  if (found == state.handles.end() || bytes > found->second) return CUDA_ERROR_INVALID_VALUE;
  const auto range = state.reserved.upper_bound(address);
  if (range == state.reserved.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [start, reserved] = *std::prev(range);
  if (address + bytes > start + reserved) return CUDA_ERROR_INVALID_VALUE;
  state.mapped[address] = bytes;
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr address, size_t bytes) {
  const auto found = state.mapped.find(address);
  if (found == state.mapped.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  state.mapped.erase(found);
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr address, size_t, const CUmemAccessDesc* description, size_t) {
  NEREID_FAKE_FAIL("cuMemSetAccess");
  state.access[address] = description->flags;
  return CUDA_SUCCESS;
}
CUresult memset8(CUdeviceptr address, unsigned char value, size_t bytes, CUstream) {
  // Both ends are enough for the slack that anybody looks at.
  constexpr size_t kEnds = 8192;
  for (size_t i = 0; i < bytes; ++i)
    if (i < kEnds || i + kEnds >= bytes) state.bytes[address + i] = value;
  return CUDA_SUCCESS;
}
CUresult to_host(void* to, CUdeviceptr from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(to)[i] = state.bytes[from + i];
  return CUDA_SUCCESS;
}
CUresult export_fd(void* handle, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                   unsigned long long) {
  *static_cast<int*>(handle) = -1;
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult import_fd(CUmemGenericAllocationHandle* handle, void*, CUmemAllocationHandleType) {
  *handle = state.next_handle++;
  state.handles[*handle] = FakeDriver::kGranularity;
  return CUDA_SUCCESS;
}
CUresult load(CUmodule* module, const void*) {
  *module = reinterpret_cast<CUmodule>(state.next_handle++);
  state.modules.insert(*module);
  return CUDA_SUCCESS;
}
CUresult unload(CUmodule module) {
  return state.modules.erase(module) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult get_function(CUfunction* function, CUmodule module, const char*) {
  *function = reinterpret_cast<CUfunction>(module);
  return CUDA_SUCCESS;
}
CUresult get_attribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult set_attribute(CUfunction, CUfunction_attribute attribute, int value) {
  state.function_attributes[attribute] = value;
  return CUDA_SUCCESS;
}
CUresult set_cache(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult get_device(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
CUresult device_name(char* name, int size, CUdevice) {
  std::strncpy(name, "NVIDIA Fake", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448 : 9;
  return CUDA_SUCCESS;
}
CUresult device_memory(size_t* bytes, CUdevice) {
  *bytes = size_t{1} << 30;
  return CUDA_SUCCESS;
}
CUresult launch(const CUlaunchConfig* config, CUfunction, void**, void**) {
  state.launches.push_back(*config);
  std::vector<std::string> names;
  for (unsigned i = 0; i < config->numAttrs; ++i) names.push_back(std::to_string(config->attrs[i].id));
  state.attributes.push_back(names);
  return state.launch_result;
}
CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t*,
                CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                CUtensorMapFloatOOBfill fill) {
  NEREID_FAKE_FAIL("cuTensorMapEncodeTiled");
  std::memset(map, 0xAB, sizeof *map);
  state.map_dims.assign(dims, dims + rank);
  state.map_strides.assign(strides, strides + rank - 1);
  state.map_box.assign(box, box + rank);
  state.map_type = type;
  state.map_swizzle = swizzle;
  state.map_base = base;
  state.map_nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  return CUDA_SUCCESS;
}

Driver make() {
  Driver driver;
  driver.cuMemGetAllocationGranularity = granularity;
  driver.cuMemCreate = create;
  driver.cuMemRelease = release;
  driver.cuMemAddressReserve = reserve;
  driver.cuMemAddressFree = unreserve;
  driver.cuMemMap = map;
  driver.cuMemUnmap = unmap;
  driver.cuMemSetAccess = set_access;
  driver.cuMemsetD8Async = memset8;
  driver.cuMemcpyDtoH = to_host;
  driver.cuMemExportToShareableHandle = export_fd;
  driver.cuMemImportFromShareableHandle = import_fd;
  driver.cuModuleLoadData = load;
  driver.cuModuleUnload = unload;
  driver.cuModuleGetFunction = get_function;
  driver.cuFuncGetAttribute = get_attribute;
  driver.cuFuncSetAttribute = set_attribute;
  driver.cuFuncSetCacheConfig = set_cache;
  driver.cuDeviceGet = get_device;
  driver.cuDeviceGetName = device_name;
  driver.cuDeviceGetAttribute = device_attribute;
  driver.cuDeviceTotalMem = device_memory;
  driver.cuLaunchKernelEx = launch;
  driver.cuTensorMapEncodeTiled = encode;
  return driver;
}

}  // namespace

FakeDriver::Record& FakeDriver::record() { return state; }
FakeDriver::Record& FakeDriver::reset() { return state = Record{}; }
const Driver& FakeDriver::driver() {
  static const Driver driver = make();
  return driver;
}

}  // namespace nereid::gpu
