#include "nereid/python/cuda_driver.h"

#include <dlfcn.h>

namespace nereid::python {

#define NEREID_PLAN_TEXT(name) NEREID_PLAN_TEXT_(name)
#define NEREID_PLAN_TEXT_(name) #name

std::optional<CudaDriver> CudaDriver::open(const char* library, std::string& why) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* text = dlerror();
    why = text == nullptr ? std::string(library) + " does not load" : text;
    return std::nullopt;
  }
  CudaDriver driver;
#define NEREID_PLAN_LOAD(name)                                                                       \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(opened, NEREID_PLAN_TEXT(name)));      \
  if (driver.name == nullptr) {                                                                      \
    why = std::string("the CUDA driver is too old: ") + library + " has no " NEREID_PLAN_TEXT(name); \
    return std::nullopt;                                                                             \
  }
  NEREID_PLAN_FUNCTIONS(NEREID_PLAN_LOAD)
#undef NEREID_PLAN_LOAD
  return driver;
}

std::string CudaDriver::describe(CUresult code) const {
  const char* name = nullptr;
  const bool known = cuGetErrorName(code, &name) == CUDA_SUCCESS && name != nullptr;
  return "CUDA error " + std::to_string(static_cast<int>(code)) + " (" + (known ? name : "unknown") + ")";
}

}  // namespace nereid::python
