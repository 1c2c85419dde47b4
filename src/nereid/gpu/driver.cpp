#include "nereid/gpu/driver.h"

#include <dlfcn.h>

#include <utility>

namespace nereid::gpu {
namespace {

#define NEREID_CUDA_TEXT(name) NEREID_CUDA_TEXT_(name)
#define NEREID_CUDA_TEXT_(name) #name

Result<const Driver*> open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    const std::string_view text = reason == nullptr ? "" : reason;
    if (text.find("No such file") != std::string_view::npos ||
        text.find("not found") != std::string_view::npos)
      return our_error("no CUDA device: libcuda.so.1 not found");
    return our_error("no CUDA device: libcuda.so.1 does not load: {}", text);
  }
  static Driver driver;
#define NEREID_CUDA_LOAD(name)                                                                   \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, NEREID_CUDA_TEXT(name))); \
  if (driver.name == nullptr)                                                                    \
    return our_error("the CUDA driver is too old: libcuda.so.1 has no {}", NEREID_CUDA_TEXT(name));
  NEREID_CUDA_FUNCTIONS(NEREID_CUDA_LOAD)
#undef NEREID_CUDA_LOAD
  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS)
    return our_error("no CUDA device: cuInit: {}", describe(driver, code));
  int count = 0;
  NEREID_CUDA(driver, cuDeviceGetCount(&count));
  if (count == 0) return our_error("no CUDA device: the driver lists none");
  return &driver;
}

}  // namespace

Result<const Driver*> Driver::open() {
  static const Result<const Driver*> opened = open_driver();
  return opened;
}

std::string describe(const Driver& driver, CUresult code) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(code, &name) != CUDA_SUCCESS ||
      name == nullptr)
    return fmt::format("CUDA error {}", static_cast<int>(code));
  if (driver.cuGetErrorString == nullptr || driver.cuGetErrorString(code, &text) != CUDA_SUCCESS ||
      text == nullptr)
    return name;
  return fmt::format("{} ({})", name, text);
}

Error cuda_error(const Driver& driver, CUresult code, std::string_view what) {
  return our_error("{}: {}", what.substr(0, what.find('(')), describe(driver, code));
}

bool is_kernel_fault(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
      return true;
    default:
      return false;
  }
}

Result<DeviceFacts> device_facts(const Driver& driver, int device) {
  CUdevice handle = 0;
  NEREID_CUDA(driver, cuDeviceGet(&handle, device));
  DeviceFacts facts;
  char name[256] = {};
  NEREID_CUDA(driver, cuDeviceGetName(name, sizeof name, handle));
  facts.name = name;
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, handle) == CUDA_SUCCESS ? value : 0;
  };
  facts.arch = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  facts.shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.virtual_memory = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
  facts.memory_to_fd = attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  size_t bytes = 0;
  NEREID_CUDA(driver, cuDeviceTotalMem(&bytes, handle));
  facts.memory_bytes = static_cast<int64_t>(bytes);
  return facts;
}

Status use_primary_context(const Driver& driver, int device) {
  CUdevice handle = 0;
  CUcontext context = nullptr;
  NEREID_CUDA(driver, cuDeviceGet(&handle, device));
  NEREID_CUDA(driver, cuDevicePrimaryCtxRetain(&context, handle));
  NEREID_CUDA(driver, cuCtxSetCurrent(context));
  return ok_status();
}

Result<DeviceBuffer> DeviceBuffer::allocate(const Driver& driver, size_t bytes) {
  CUdeviceptr data = 0;
  NEREID_CUDA(driver, cuMemAlloc(&data, bytes == 0 ? 1 : bytes));
  return DeviceBuffer(driver, data, bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : driver_(other.driver_), data_(std::exchange(other.data_, 0)), bytes_(other.bytes_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != 0) driver_->cuMemFree(data_);
}

}  // namespace nereid::gpu
