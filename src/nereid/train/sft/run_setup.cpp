#include "nereid/train/sft/run_setup.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "nereid/base/deadline.h"
#include "nereid/lm/decoder/device.h"
#include "nereid/train/ranks/local_ranks.h"

namespace nereid::train {

namespace {

constexpr double kSecondsToBeGone = 5;  // for the ranks of a run that was killed

Result<Fd> lock_folder(const std::filesystem::path& folder) {
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return input_error("{}: {}", folder.string(), strerror(errno));
  const Deadline deadline = Deadline::after(kSecondsToBeGone);
  // Where a file system knows no locks there are none.
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (deadline.passed())
      return input_error("{}: another run is writing there; wait for it, or give this one another folder",
                         folder.string());
    ::usleep(50'000);
  }
  return lock;
}

}  // namespace

Result<Fd> open_run_folder(const std::filesystem::path& folder, const std::string& run_file) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return input_error("{}: cannot be made: {}", folder.string(), error.message());
  NEREID_TRY(Fd lock, lock_folder(folder));
  NEREID_TRY(const std::string text, read_file(run_file));
  const auto copy = folder / "run.toml";
  if (!std::filesystem::exists(copy, error)) {
    NEREID_TRY_STATUS(write_file_atomically(copy, text));
    return lock;
  }
  NEREID_TRY(const std::string before, read_file(copy));
  if (before != text)
    return input_error("{}: was begun with another run file, {}; give this one another name or folder",
                       folder.string(), copy.string());
  return lock;
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
