#include "nereid/train/torch/run_setup.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <sys/resource.h>

#include "nereid/base/file.h"

namespace nereid::train {

Status open_run_folder(const std::filesystem::path& folder, const std::string& run_file) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return input_error("{}: cannot be made: {}", folder.string(), error.message());
  NEREID_TRY(const std::string text, read_file(run_file));
  const auto copy = folder / "run.toml";
  if (!std::filesystem::exists(copy, error)) return write_file_atomically(copy, text);
  NEREID_TRY(const std::string before, read_file(copy));
  if (before != text)
    return input_error("{}: was begun with another run file, {}; give this one another name or folder",
                       folder.string(), copy.string());
  return ok_status();
}

Result<model::Weights> first_weights(const RunFile& run, at::Device device) {
  const auto dtype = run.machine.precision == MachineSettings::Precision::kBfloat16 ? model::Dtype::kBF16
                                                                                    : model::Dtype::kF32;
  if (!run.model.shape) return model::load_weights(run.model.start_from, device, dtype);
  model::Config config = *run.model.shape;
  config.dtype = dtype;
  model::Weights weights = model::make_weights(config, device);
  model::initialize(weights, static_cast<uint64_t>(run.seed));
  return weights;
}

std::string device_name(at::Device device) {
  if (!device.is_cuda()) return "cpu";
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return "cuda";
  const auto get_name = reinterpret_cast<int (*)(char*, int, int)>(::dlsym(driver, "cuDeviceGetName"));
  char name[256] = "cuda";
  if (get_name != nullptr && get_name(name, sizeof name - 1, device.index()) != 0) return "cuda";
  return name;
}

double peak_gigabytes(at::Device device) {
  if (device.is_cuda()) {
    const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
    return static_cast<double>(stats.reserved_bytes[0].peak) / 1e9;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

}  // namespace nereid::train
