#include "nereid/replay/worker/cpu_machine.h"

#include <c10/core/CPUAllocator.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

// Kernels are parsed when a launch first asks for them.
class CpuLauncher : public Launcher {
 public:
  CpuLauncher(const trace::Trace& trace, ThreadPool* pool)
      : trace_(trace), pool_(pool), kernels_(trace.kernels.size()) {}

  std::vector<ttir::Parameter> parameters(trace::KernelId id) override { return kernel(id).parameters(); }

  bool communicates(trace::KernelId id) override { return kernel(id).communicates(); }

  void launch(const LaunchRequest& request, std::vector<ttir::Finding>& findings,
              int64_t& finding_count) override {
    std::vector<ttir::Buffer> buffers;
    for (const auto& buffer : request.buffers)
      buffers.push_back({.data = buffer.data,
                         .bytes = buffer.bytes,
                         .name = std::string(buffer.name),
                         .element_bytes = buffer.element_bytes,
                         .written = buffer.written});
    const auto report = kernel(request.alternative->kernel)
                            .run({request.alternative->grid, request.arguments}, buffers,
                                 {.sanitize = request.sanitize,
                                  .shuffled = request.shuffled,
                                  .resident = resident_programs(request.alternative->kernel),
                                  .pool = pool_,
                                  .deadline = request.deadline});
    if (!report.ok()) fail(report.error());
    findings.insert(findings.end(), report->findings.begin(), report->findings.end());
    finding_count += report->finding_count;
    if (report->timed_out) throw Failed(Failure::Kind::kTimedOut, "the time limit passed inside the kernel");
  }

 private:
  const ttir::Kernel& kernel(trace::KernelId id) {
    if (!kernels_[id]) {
      auto loaded = ttir::Kernel::load(trace_.kernels[id].ttir);
      if (!loaded.ok()) fail(loaded.error());
      kernels_[id].emplace(std::move(loaded).value());
    }
    return *kernels_[id];
  }

  // How many programs an H200 surely holds at once: one a processor; of kernels that need no shared memory
  // for dots as many as have registers where each thread takes 255; launched cooperatively as many as there
  // can be, since the driver refuses more.
  int64_t resident_programs(trace::KernelId id) {
    constexpr int64_t kProcessors = 132, kWarps = 64, kBlocks = 32, kWarpsOfMostRegisters = 8;
    const auto& options = trace_.kernels[id].options;
    const auto option = [&](const char* name, int64_t usual) {
      const auto found = options.find(name);
      return found == options.end() ? usual : std::max<int64_t>(1, found->second);
    };
    const int64_t warps = option("num_warps", 4), blocks = option("num_ctas", 1);
    const auto cooperative = options.find("launch_cooperative_grid");
    int64_t each = 1;
    if (cooperative != options.end() && cooperative->second != 0)
      each = std::min(kBlocks, kWarps / std::min(kWarps, warps));
    else if (!kernel(id).multiplies())
      each = std::max<int64_t>(1, kWarpsOfMostRegisters / warps);
    return std::max<int64_t>(1, kProcessors * each / blocks);
  }

  [[noreturn]] static void fail(const Error& error) {
    const bool unsupported = error.message.starts_with("Unsupported: ");
    throw Failed(unsupported ? Failure::Kind::kUnsupported : Failure::Kind::kRefused, error.message);
  }

  const trace::Trace& trace_;
  ThreadPool* pool_;
  std::vector<std::optional<ttir::Kernel>> kernels_;
};

class CpuMachine : public Machine {
 public:
  explicit CpuMachine(ThreadPool* pool) : pool_(pool) {}

  c10::Device device(trace::Device) const override { return c10::Device(c10::kCPU); }

  c10::Storage allocate(int64_t bytes, trace::Device) override {
    return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), c10::GetCPUAllocator(),
                        true);
  }

  std::unique_ptr<Launcher> load_kernels(const trace::Trace& trace) override {
    return std::make_unique<CpuLauncher>(trace, pool_);
  }

  SharedBlock share(int64_t bytes) override {
    Fd fd(memfd_create("nereid-block", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.valid() || ftruncate(fd.get(), bytes) != 0 || fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
      throw std::runtime_error(fmt::format("cannot make a block of {} bytes: {}", bytes, strerror(errno)));
    auto tensor = map(fd.get(), bytes, PROT_READ | PROT_WRITE);
    return {std::move(tensor), std::move(fd)};
  }

  SharedBlock open(const Fd& fd, int64_t bytes, bool to_write) override {
    struct stat status{};
    // A block that its owner can truncate would kill its readers.
    if (fstat(fd.get(), &status) != 0 || status.st_size < bytes ||
        (fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals)
      throw std::runtime_error("a block is smaller than agreed, or not sealed");
    return {map(fd.get(), bytes, to_write ? PROT_READ | PROT_WRITE : PROT_READ), Fd()};
  }

  void synchronize() override {}
  // A few megabytes are wanted again at once, and each of their pages would be faulted in anew.
  void trim() override {
    if (mallinfo2().fordblks > kTrimThreshold) malloc_trim(0);
  }
  bool tracks_written() const override { return true; }

 private:
  static constexpr size_t kTrimThreshold = size_t{64} << 20;
  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

  static at::Tensor map(int fd, int64_t bytes, int protection) {
    if (bytes == 0) return at::empty({0}, at::TensorOptions().dtype(at::kByte));
    void* data = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) throw std::runtime_error(fmt::format("cannot map a block: {}", strerror(errno)));
    return at::from_blob(
        data, {bytes}, [bytes](void* p) { munmap(p, bytes); }, at::TensorOptions().dtype(at::kByte));
  }

  ThreadPool* pool_;
};

}  // namespace

std::unique_ptr<Machine> make_cpu_machine(ThreadPool* pool) { return std::make_unique<CpuMachine>(pool); }

}  // namespace nereid::replay
