#include "nereid/sandbox/jail/cuda_isolation.h"

#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "nereid/sandbox/jail/libraries.h"
#include "nereid/sandbox/zygote/python_home.h"

namespace nereid::sandbox {
namespace {

constexpr CudaFit kFits[] = {
    {"all isolation", true, true, true, true},
    {"without a pid namespace", true, true, false, true},
    {"without Landlock", true, true, true, false},
    {"without a root of its own", true, false, false, true},
    {"without a pid namespace and Landlock", true, true, false, false},
    {"without namespaces", false, false, false, true},
    {"without files' isolation", true, false, false, false},
    {"without namespaces and Landlock", false, false, false, false},
};

std::vector<std::string> matching(const char* pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern, 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

// What the driver, libtorch and the C library ask about the machine. None of it is anybody's secret.
constexpr const char* kAboutTheMachine[] = {
    "/proc/cpuinfo", "/proc/devices",  "/proc/driver",     "/proc/filesystems", "/proc/meminfo",
    "/proc/modules", "/proc/stat",     "/proc/sys/kernel", "/proc/sys/vm",      "/proc/version",
    "/sys/bus",      "/sys/class",     "/sys/dev",         "/sys/devices",      "/sys/kernel/mm",
    "/sys/module",   "/sys/fs/cgroup", "/etc/nvidia",      "/dev/urandom",      "/dev/random",
    "/dev/zero"};

}  // namespace

std::span<const CudaFit> cuda_fits() { return kFits; }

Policy cuda_policy(const CudaFit& fit) {
  Policy policy{.shared_memory = true, .messages = true};
  policy.namespaces = fit.namespaces;
  policy.own_root = fit.own_root;
  policy.pid_namespace = fit.pid_namespace;
  policy.landlock = fit.landlock;
  policy.readable = system_trees();
  for (const auto& folder : library_folders()) policy.readable.push_back(folder);
  for (const char* path : kAboutTheMachine) policy.readable.emplace_back(path);
  // On a system whose /lib is no link into /usr.
  for (const char* path : {"/lib", "/lib64"})
    if (!std::filesystem::is_symlink(path)) policy.readable.emplace_back(path);
  policy.devices = matching("/dev/nvidia*");  // cards, nvidiactl, nvidia-uvm, the folder nvidia-caps
  policy.devices.emplace_back("/dev/null");   // so that it is a device's jail where there is no card, too
  auto& limits = policy.limits;
  limits.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  limits.file_bytes = limits.memory_bytes;  // of memory files
  limits.cpu_seconds = 24 * 3600;           // the judge has its own clock
  limits.open_files = 4096;                 // a driver's are many, and so are blocks that are handed over
  limits.tasks = 1024;
  return policy;
}

void keep_no_caches() {
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  setenv("USE_PYTORCH_KERNEL_CACHE", "0", 1);
}

}  // namespace nereid::sandbox
