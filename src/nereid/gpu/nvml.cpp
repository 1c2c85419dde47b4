#include "nereid/gpu/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace nereid::gpu {

// NVML's own declarations come with the CUDA toolkit alone, so the few that are needed stand here (NVML API
// reference, R580): nvmlReturn_t is an int, 0 for success; nvmlDevice_t a pointer.
struct Nvml::Library {
  int (*init)() = nullptr;
  int (*device_by_index)(unsigned index, void** device) = nullptr;
  int (*clock)(void* device, int type, unsigned* mhz) = nullptr;
  int (*max_clock)(void* device, int type, unsigned* mhz) = nullptr;
  int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*reasons)(void* device, unsigned long long* bits) = nullptr;
  struct Rates {
    unsigned gpu, memory;  // percent
  };
  // May be missing.
  int (*device_by_uuid)(const char* uuid, void** device) = nullptr;
  int (*rates)(void* device, Rates* rates) = nullptr;
};

Result<std::shared_ptr<const Nvml::Library>> Nvml::load() {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (handle == nullptr) return our_error("no GPU clocks: libnvidia-ml.so.1 not found");
  auto library = std::make_shared<Library>();
  bool complete = true;
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    complete = complete && function != nullptr;
  };
  load(library->init, "nvmlInit_v2");
  load(library->device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  load(library->clock, "nvmlDeviceGetClockInfo");
  load(library->max_clock, "nvmlDeviceGetMaxClockInfo");
  load(library->temperature, "nvmlDeviceGetTemperature");
  load(library->power, "nvmlDeviceGetPowerUsage");
  load(library->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (!complete) return our_error("no GPU clocks: libnvidia-ml.so.1 lacks a function");
  load(library->device_by_uuid, "nvmlDeviceGetHandleByUUID");
  load(library->rates, "nvmlDeviceGetUtilizationRates");
  if (const int code = library->init(); code != 0)
    return our_error("no GPU clocks: nvmlInit_v2 failed with {}", code);
  return std::shared_ptr<const Library>(std::move(library));
}

Result<Nvml> Nvml::open(int index) {
  Nvml nvml;
  NEREID_TRY(nvml.library_, load());
  if (const int code = nvml.library_->device_by_index(static_cast<unsigned>(index), &nvml.device_); code != 0)
    return our_error("no GPU clocks: nvmlDeviceGetHandleByIndex_v2({}) failed with {}", index, code);
  return nvml;
}

Result<Nvml> Nvml::open_visible(int index) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return open(index);
  std::string_view names = visible;
  for (int skipped = 0; skipped < index && !names.empty(); ++skipped)
    names.remove_prefix(std::min(names.find(','), names.size() - 1) + 1);
  const std::string name(names.substr(0, names.find(',')));
  int number = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failure == std::errc() && end == name.data() + name.size()) return open(number);
  Nvml nvml;
  NEREID_TRY(nvml.library_, load());
  if (nvml.library_->device_by_uuid == nullptr ||
      nvml.library_->device_by_uuid(name.c_str(), &nvml.device_) != 0)
    return our_error("no GPU clocks: CUDA_VISIBLE_DEVICES has no device {} that NVML knows: '{}'", index,
                     visible);
  return nvml;
}

std::optional<double> Nvml::utilization() const {
  Library::Rates rates{};
  if (library_->rates == nullptr || library_->rates(device_, &rates) != 0) return std::nullopt;
  return rates.gpu / 100.0;
}

GpuState Nvml::read() const {
  constexpr int kSm = 1, kMemory = 2, kGpuSensor = 0;
  GpuState state;
  unsigned value = 0;
  if (library_->clock(device_, kSm, &value) == 0) state.sm_mhz = static_cast<int>(value);
  if (library_->clock(device_, kMemory, &value) == 0) state.memory_mhz = static_cast<int>(value);
  if (library_->max_clock(device_, kSm, &value) == 0) state.max_sm_mhz = static_cast<int>(value);
  if (library_->temperature(device_, kGpuSensor, &value) == 0) state.celsius = static_cast<int>(value);
  if (library_->power(device_, &value) == 0) state.watts = value / 1000.0;
  unsigned long long bits = 0;
  if (library_->reasons(device_, &bits) == 0) state.throttle_reasons = bits;
  state.throttled_by = throttle_names(state.throttle_reasons);
  return state;
}

std::vector<std::string> throttle_names(uint64_t reasons) {
  // nvmlClocksEventReasons; bit 0, idle, is no throttling.
  static constexpr std::pair<uint64_t, const char*> kNames[] = {
      {0x2, "application clocks setting"},
      {0x4, "power cap"},
      {0x8, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "thermal"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"},
      {0x100, "display clocks"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames)
    if ((reasons & bit) != 0) names.emplace_back(name);
  return names;
}

}  // namespace nereid::gpu
