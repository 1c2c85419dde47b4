#include "nereid/train/sft/run_setup.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "nereid/lm/decoder/device.h"
#include "nereid/train/ranks/local_ranks.h"

namespace nereid::train {

Result<OpenRun> open_run_folder(const TrainOptions& options, const std::filesystem::path& folder,
                                std::string_view kind) {
  std::string command = fmt::format("nereid train {} {} -o {}", kind, options.run_file, folder.string());
  if (options.device != "auto") command += " --device " + options.device;
  if (options.ranks > 1) command += fmt::format(" --ranks {}", options.ranks);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return open_run_folder(folder, options.run_file, options.accept_changes,
                         {.pid = options.ranks > 1 ? ::getppid() : ::getpid(),
                          .host = own_host(),
                          .started = now,
                          .command = std::move(command)});
}

Result<lm::Weights> first_weights(const RunFile& run, at::Device device) {
  const auto dtype =
      run.machine.precision == MachineSettings::Precision::kBfloat16 ? lm::Dtype::kBF16 : lm::Dtype::kF32;
  if (!run.model.shape) return lm::load_weights(run.model.start_from, device, dtype);
  lm::Config config = *run.model.shape;
  config.dtype = dtype;
  lm::Weights weights;
  try {
    weights = lm::make_weights(config, device);
  } catch (const c10::Error&) {  // memory
    return input_error("{}: [model] has {} parameters, which do not fit into the memory of {}", run.name,
                       config.parameter_count(), device.str());
  }
  lm::initialize(weights, static_cast<uint64_t>(run.seed));
  return weights;
}

Status on_ranks(int64_t ranks, const std::string& device_name, const MachineSettings& machine,
                const std::function<Status(Ranks& ranks, at::Device device)>& body) {
  if (ranks > 1 && device_name.starts_with("cuda:"))
    return input_error("--device {}: expected auto, cpu or cuda for {} ranks: rank r has GPU r", device_name,
                       ranks);
  // Before CUDA starts: its libraries read it then.
  if (machine.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  const auto work = [&](RankLink link) -> Status {
    NEREID_TRY(at::Device device, lm::open_device(device_name));
    if (device.is_cuda() && ranks > 1) {
      NEREID_TRY(device, lm::open_device(fmt::format("cuda:{}", link.rank)));
    }
    c10::OptionalDeviceGuard guard;
    if (device.is_cuda()) guard.reset_device(device);
    // With a GPU the host computes little, and the GPU waits wherever its threads wait for each other.
    if (device.is_cuda()) at::set_num_threads(1);
    // The same run twice is the same run, bit by bit, and so is a run that was interrupted.
    at::globalContext().setDeterministicAlgorithms(machine.deterministic, /*warn_only=*/true);
    // Nothing here reads what it has not written.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    if (ranks == 1) {
      Alone alone;
      return body(alone, device);
    }
    NEREID_TRY(const auto several, connect_ranks(std::move(link), device));
    return body(*several, device);
  };
  return ranks > 1 ? launch_ranks(ranks, work) : work({});
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
