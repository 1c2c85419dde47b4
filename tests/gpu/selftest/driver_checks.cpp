#include <unistd.h>

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "nereid/base/deadline.h"
#include "nereid/gpu/kernel.h"
#include "nereid/gpu/mapping.h"
#include "nereid/gpu/nvml.h"
#include "nereid/gpu/statistics.h"
#include "tests/gpu/selftest/harness.h"

namespace nereid::replay::cuda::selftest {
namespace {

constexpr int kDevice = 0;

struct Gpu {
  const gpu::Driver& driver;
  CUstream stream = nullptr;

  static Result<Gpu> open() {
    NEREID_TRY(const gpu::Driver* driver, gpu::Driver::open());
    NEREID_TRY_STATUS(gpu::use_primary_context(*driver, kDevice));
    Gpu machine{*driver};
    NEREID_CUDA(*driver, cuStreamCreate(&machine.stream, CU_STREAM_NON_BLOCKING));
    return machine;
  }
  Result<std::vector<float>> read(CUdeviceptr data, size_t count) const {
    std::vector<float> values(count);
    NEREID_CUDA(driver, cuMemcpyDtoH(values.data(), data, count * sizeof(float)));
    return values;
  }
  Status write(CUdeviceptr data, const std::vector<float>& values) const {
    NEREID_CUDA(driver, cuMemcpyHtoD(data, values.data(), values.size() * sizeof(float)));
    return ok_status();
  }
};

gpu::Scalar i32(int32_t value) { return gpu::Scalar{static_cast<uint32_t>(value)}; }
gpu::Scalar i64(int64_t value) { return gpu::Scalar{static_cast<uint64_t>(value)}; }
gpu::Scalar f32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return gpu::Scalar{bits};
}
gpu::Scalar f64(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return gpu::Scalar{bits};
}

// Launches and waits; the code of what came, CUDA_ERROR_NOT_READY after ten seconds.
Result<CUresult> run(const Gpu& machine, const gpu::CompiledKernel& image, std::array<int64_t, 3> grid,
                     const std::vector<gpu::Argument>& arguments, double seconds = 10) {
  NEREID_TRY(gpu::LoadedKernel kernel, gpu::LoadedKernel::load(machine.driver, kDevice, image));
  NEREID_TRY(const gpu::DeviceBuffer scratch,
             gpu::DeviceBuffer::allocate(machine.driver,
                                         static_cast<size_t>(kernel.global_scratch_bytes(grid)) + 256));
  NEREID_TRY(const auto outcome, kernel.launch(grid, arguments, {scratch.data(), 0}, machine.stream));
  if (!outcome.ok()) return outcome.code;
  const Deadline deadline = Deadline::after(seconds);
  for (;;) {
    const CUresult code = machine.driver.cuStreamQuery(machine.stream);
    if (code != CUDA_ERROR_NOT_READY || deadline.passed()) return code;
  }
}

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  return values;
}

Result<std::string> facts(const Kernels&) {
  NEREID_TRY(const gpu::Driver* driver, gpu::Driver::open());
  const Stopwatch watch;
  NEREID_TRY_STATUS(gpu::use_primary_context(*driver, kDevice));
  const double context = watch.seconds();
  NEREID_TRY(const gpu::DeviceFacts facts, gpu::device_facts(*driver, kDevice));
  int version = 0;
  NEREID_CUDA(*driver, cuDriverGetVersion(&version));
  size_t free = 0, total = 0;
  NEREID_CUDA(*driver, cuMemGetInfo(&free, &total));
  return fmt::format(
      "{}, sm_{}, {} SMs, L2 {} MiB, shared {}, {} GiB ({} free), vmm {}, fd {}, driver {}, context {:.0f} "
      "ms",
      facts.name, facts.arch, facts.multiprocessors, facts.l2_bytes >> 20, facts.shared_bytes_per_block,
      facts.memory_bytes >> 30, free >> 30, facts.virtual_memory, facts.memory_to_fd, version, context * 1e3);
}

Result<std::string> nvml(const Kernels&) {
  NEREID_TRY(const gpu::Nvml nvml, gpu::Nvml::open(kDevice));
  const gpu::GpuState state = nvml.read();
  NEREID_EXPECT(state.max_sm_mhz > 0, "{}", state.max_sm_mhz);
  const Stopwatch watch;
  nvml.read();
  return fmt::format("sm {} of {} MHz, memory {} MHz, {} C, {:.0f} W, reasons {:#x} [{}], read {:.0f} us",
                     state.sm_mhz, state.max_sm_mhz, state.memory_mhz, state.celsius, state.watts,
                     state.throttle_reasons, fmt::join(state.throttled_by, ", "), watch.seconds() * 1e6);
}

Result<std::string> check_add(const Kernels& kernels, const char* name) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  constexpr int kCount = 100000;
  NEREID_TRY(const gpu::DeviceBuffer x, gpu::DeviceBuffer::allocate(machine.driver, kCount * 4));
  NEREID_TRY(const gpu::DeviceBuffer out, gpu::DeviceBuffer::allocate(machine.driver, kCount * 4));
  const std::vector<float> given = ramp(kCount);
  NEREID_TRY_STATUS(machine.write(x.data(), given));
  const Stopwatch watch;
  NEREID_TRY(const CUresult code,
             run(machine, kernels.at(name), {98, 1, 1}, {x.data(), out.data(), i32(kCount)}));
  const double seconds = watch.seconds();
  NEREID_EXPECT(code == CUDA_SUCCESS, "{}", gpu::describe(machine.driver, code));
  NEREID_TRY(const std::vector<float> got, machine.read(out.data(), kCount));
  for (size_t i = 0; i < got.size(); ++i) NEREID_EXPECT(got[i] == given[i] + 1, "{} at {}", got[i], i);
  return fmt::format("{} right, load and launch {:.2f} ms", kCount, seconds * 1e3);
}

Result<std::string> scalars(const Kernels& kernels) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  NEREID_TRY(const gpu::DeviceBuffer x, gpu::DeviceBuffer::allocate(machine.driver, 4096));
  NEREID_TRY_STATUS(machine.write(x.data(), ramp(1024)));
  NEREID_TRY(const CUresult code, run(machine, kernels.at("scale"), {1, 1, 1},
                                      {x.data(), x.data(), i32(1000), f32(2.5F), f64(-1.25)}));
  NEREID_EXPECT(code == CUDA_SUCCESS, "{}", gpu::describe(machine.driver, code));
  NEREID_TRY(const std::vector<float> got, machine.read(x.data(), 1024));
  for (size_t i = 0; i < got.size(); ++i) {
    const float want = i < 1000 ? static_cast<float>(i % 1000) * 2.5F - 1.25F : static_cast<float>(i % 1000);
    NEREID_EXPECT(got[i] == want, "{} at {}, not {}", got[i], i, want);
  }
  return std::string("i32, f32 and f64 arrive");
}

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float mantissa = static_cast<float>(bits & 1023) / 1024;
  const float magnitude = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// c = a @ b with small integers in half precision: exact.
Result<std::string> check_matmul(const Kernels& kernels, const char* name, bool descriptors, int64_t tile) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  constexpr int64_t kM = 256, kN = 384, kK = 128;
  const auto value = [](int64_t i) { return static_cast<int>(i * 7 % 9) - 4; };
  const auto half_of = [](int value) -> uint16_t {
    if (value == 0) return 0;
    const int magnitude = value < 0 ? -value : value;
    const int exponent = magnitude >= 4 ? 2 : magnitude >= 2 ? 1 : 0;
    return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                 ((magnitude << (10 - exponent)) & 1023));
  };
  std::vector<uint16_t> a(kM * kK), b(kK * kN), c(kM * kN);
  for (int64_t i = 0; i < kM * kK; ++i) a[static_cast<size_t>(i)] = half_of(value(i));
  for (int64_t i = 0; i < kK * kN; ++i) b[static_cast<size_t>(i)] = half_of(value(i * 3 + 1));
  NEREID_TRY(const gpu::DeviceBuffer da, gpu::DeviceBuffer::allocate(machine.driver, a.size() * 2));
  NEREID_TRY(const gpu::DeviceBuffer db, gpu::DeviceBuffer::allocate(machine.driver, b.size() * 2));
  NEREID_TRY(const gpu::DeviceBuffer dc, gpu::DeviceBuffer::allocate(machine.driver, c.size() * 2));
  NEREID_CUDA(machine.driver, cuMemcpyHtoD(da.data(), a.data(), a.size() * 2));
  NEREID_CUDA(machine.driver, cuMemcpyHtoD(db.data(), b.data(), b.size() * 2));
  std::vector<gpu::Argument> arguments;
  if (descriptors)
    arguments = {gpu::Descriptor{da.data(), {kM, kK}, {kK, 1}, false},
                 gpu::Descriptor{db.data(), {kK, kN}, {kN, 1}, false},
                 gpu::Descriptor{dc.data(), {kM, kN}, {kN, 1}, false}};
  else
    arguments = {da.data(), db.data(), dc.data()};
  for (const int64_t size : {kM, kN, kK}) arguments.emplace_back(i32(static_cast<int32_t>(size)));
  NEREID_TRY(const CUresult code, run(machine, kernels.at(name), {kM / tile, kN / tile, 1}, arguments));
  NEREID_EXPECT(code == CUDA_SUCCESS, "{}", gpu::describe(machine.driver, code));
  NEREID_CUDA(machine.driver, cuMemcpyDtoH(c.data(), dc.data(), c.size() * 2));
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t n = 0; n < kN; ++n) {
      int want = 0;
      for (int64_t k = 0; k < kK; ++k) want += value(m * kK + k) * value((k * kN + n) * 3 + 1);
      const float got = half_to_float(c[static_cast<size_t>(m * kN + n)]);
      NEREID_EXPECT(got == static_cast<float>(want), "{} at ({}, {}), not {}", got, m, n, want);
    }
  return fmt::format("{}x{}x{} exact", kM, kN, kK);
}

Result<std::string> mapping_costs(const Kernels&) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  std::string report;
  for (const size_t bytes : {size_t{4096}, size_t{64} << 20, size_t{1} << 30, size_t{20} << 30}) {
    const int count = bytes > (size_t{1} << 29) ? 2 : 50;
    const Stopwatch create;
    std::vector<gpu::Mapping> mappings;
    for (int i = 0; i < count; ++i) {
      NEREID_TRY(gpu::Mapping mapping,
                 gpu::Mapping::create(machine.driver, kDevice, bytes, gpu::Placement::kAtEnd));
      mappings.push_back(std::move(mapping));
    }
    NEREID_CUDA(machine.driver, cuCtxSynchronize());
    const double made = create.seconds() / count;
    const Stopwatch destroy;
    mappings.clear();
    report +=
        fmt::format("{} MiB: {:.0f} + {:.0f} us; ", bytes >> 20, made * 1e6, destroy.seconds() / count * 1e6);
  }
  return report;
}

// One access at `index` floats from the start of a fenced tensor of `count` floats, in a process of its own.
Result<std::string> access_at(const Kernels& kernels, const char* kernel, gpu::Placement placement,
                              size_t count, int64_t index) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  NEREID_TRY(const gpu::Mapping mapping,
             gpu::Mapping::create(machine.driver, kDevice, count * 4, placement, machine.stream));
  NEREID_TRY(const gpu::DeviceBuffer out, gpu::DeviceBuffer::allocate(machine.driver, 4));
  std::vector<gpu::Argument> arguments = {mapping.data(), i64(index)};
  if (std::string_view(kernel) == "read_at") arguments = {mapping.data(), out.data(), i64(index)};
  NEREID_TRY(const CUresult code, run(machine, kernels.at(kernel), {1, 1, 1}, arguments));
  if (gpu::is_kernel_fault(code)) return std::string("fault ") + gpu::describe(machine.driver, code);
  NEREID_EXPECT(code == CUDA_SUCCESS, "{}", gpu::describe(machine.driver, code));
  NEREID_TRY(const int64_t strayed, mapping.check_slack());
  return std::string(strayed > 0 ? "slack" : "clean");
}

Result<std::string> fence(const Kernels& kernels) {
  struct Case {
    const char* kernel;
    gpu::Placement placement;
    int64_t count, index;
    const char* want;
  };
  const Case cases[] = {
      {"read_at", gpu::Placement::kAtEnd, 1000, 999, "clean"},
      {"read_at", gpu::Placement::kAtEnd, 1000, 1000, "fault"},
      {"write_at", gpu::Placement::kAtEnd, 1000, 999, "clean"},
      {"write_at", gpu::Placement::kAtEnd, 1000, 1000, "fault"},
      {"write_at", gpu::Placement::kAtEnd, 1000, 9000000, "fault"},
      {"write_at", gpu::Placement::kAtEnd, 1001, 1001, "slack"},
      {"write_at", gpu::Placement::kAtEnd, 1000, -1, "slack"},
      {"write_at", gpu::Placement::kAtBegin, 1000, 0, "clean"},
      {"write_at", gpu::Placement::kAtBegin, 1000, -1, "fault"},
      {"read_at", gpu::Placement::kAtBegin, 1000, -1, "fault"},
      {"write_at", gpu::Placement::kAtBegin, 1000, 1000, "slack"},
  };
  std::string report;
  for (const Case& one : cases) {
    int fds[2];
    NEREID_EXPECT(pipe(fds) == 0, "");
    Fd reader(fds[0]), writer(fds[1]);
    Child child([&] {
      const auto seen =
          access_at(kernels, one.kernel, one.placement, static_cast<size_t>(one.count), one.index);
      const std::string text = seen.ok() ? *seen : "error " + seen.error().message;
      return write(writer.get(), text.data(), text.size()) > 0 ? 0 : 1;
    });
    child.wait();
    writer.reset();
    std::string text(1000, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(reader.get(), text.data(), text.size()))));
    NEREID_EXPECT(text.starts_with(one.want), "{} at {} of {}: got '{}', not {}", one.kernel, one.index,
                  one.count, text, one.want);
    if (text.starts_with("fault") && report.empty()) report = text;
  }
  return fmt::format("{} cases; {}", std::size(cases), report);
}

Result<std::string> share(const Kernels& kernels) {
  // The maker hands a mapping over; the taker reads it, then tries to write it.
  NEREID_TRY(const Pair pair, socket_pair());
  constexpr size_t kCount = 5000;
  Child maker([&] {
    const auto body = [&]() -> Status {
      NEREID_TRY(const Gpu machine, Gpu::open());
      NEREID_TRY(const gpu::Mapping mapping,
                 gpu::Mapping::create(machine.driver, kDevice, kCount * 4, gpu::Placement::kAtEnd));
      NEREID_TRY_STATUS(machine.write(mapping.data(), ramp(kCount)));
      NEREID_TRY(const Fd fd, mapping.export_fd());
      NEREID_TRY_STATUS(send_fd(pair.theirs, fd, 0));
      NEREID_TRY(const uint64_t word, receive_word(pair.theirs));
      NEREID_TRY(const std::vector<float> after, machine.read(mapping.data(), kCount));
      return send_word(pair.theirs, after == ramp(kCount) ? word + 1 : 99);
    };
    return body().ok() ? 0 : 1;
  });
  NEREID_TRY(const Gpu machine, Gpu::open());
  NEREID_TRY(Received received, receive_fd(pair.ours));
  NEREID_EXPECT(received.fd.valid(), "a descriptor");
  std::string access = "read-only";
  auto mapping = gpu::Mapping::import(machine.driver, kDevice, received.fd, kCount * 4,
                                      gpu::Placement::kAtEnd, gpu::Access::kRead);
  const std::string refusal = mapping.ok() ? "" : mapping.error().message;
  if (!mapping.ok()) {
    access = "read-write (read-only: " + refusal + ")";
    mapping = gpu::Mapping::import(machine.driver, kDevice, received.fd, kCount * 4, gpu::Placement::kAtEnd,
                                   gpu::Access::kReadWrite);
  }
  if (!mapping.ok()) return mapping.error();
  auto larger = gpu::Mapping::import(machine.driver, kDevice, received.fd, size_t{64} << 20,
                                     gpu::Placement::kAtEnd, gpu::Access::kReadWrite);
  NEREID_EXPECT(!larger.ok(), "a larger import is refused");
  NEREID_TRY(const gpu::DeviceBuffer out, gpu::DeviceBuffer::allocate(machine.driver, 4));
  NEREID_TRY(const CUresult read,
             run(machine, kernels.at("read_at"), {1, 1, 1}, {mapping->data(), out.data(), i64(4321)}));
  NEREID_EXPECT(read == CUDA_SUCCESS, "{}", gpu::describe(machine.driver, read));
  NEREID_TRY(const std::vector<float> got, machine.read(out.data(), 1));
  NEREID_EXPECT(got[0] == 321, "{}", got[0]);
  std::string write = "not tried";
  if (access == "read-only") {
    NEREID_TRY(const CUresult code,
               run(machine, kernels.at("write_at"), {1, 1, 1}, {mapping->data(), i64(17)}));
    write = gpu::describe(machine.driver, code);
    NEREID_EXPECT(gpu::is_kernel_fault(code), "writing what is read-only: {}", write);
  }
  NEREID_TRY_STATUS(send_word(pair.ours, 41));
  NEREID_TRY(const uint64_t answer, receive_word(pair.ours));
  NEREID_EXPECT(answer == 42, "the maker's memory unchanged, got {}", answer);
  maker.wait();
  return fmt::format("imported {}; a write: {}", access, write);
}

// A process holds a secret all over its memory; others read at its very addresses and around them.
Result<std::string> isolation(const Kernels& kernels) {
  NEREID_TRY(const Pair pair, socket_pair());
  constexpr uint32_t kSecret = 0x4B1D5EC7;
  constexpr size_t kBytes = size_t{256} << 20;
  Child holder([&] {
    const auto body = [&]() -> Status {
      NEREID_TRY(const Gpu machine, Gpu::open());
      NEREID_TRY(const gpu::Mapping mapping,
                 gpu::Mapping::create(machine.driver, kDevice, kBytes, gpu::Placement::kAtEnd));
      NEREID_TRY(const gpu::DeviceBuffer buffer, gpu::DeviceBuffer::allocate(machine.driver, kBytes));
      NEREID_CUDA(machine.driver, cuMemsetD32Async(mapping.data(), kSecret, kBytes / 4, machine.stream));
      NEREID_CUDA(machine.driver, cuMemsetD32Async(buffer.data(), kSecret, kBytes / 4, machine.stream));
      NEREID_CUDA(machine.driver, cuStreamSynchronize(machine.stream));
      NEREID_TRY_STATUS(send_word(pair.theirs, mapping.data()));
      NEREID_TRY_STATUS(send_word(pair.theirs, buffer.data()));
      NEREID_TRY(const uint64_t word, receive_word(pair.theirs));
      return send_word(pair.theirs, word);
    };
    return body().ok() ? 0 : 1;
  });
  NEREID_TRY(const uint64_t mapped, receive_word(pair.ours));
  NEREID_TRY(const uint64_t allocated, receive_word(pair.ours));
  int faults = 0, others = 0;
  for (const uint64_t address : {mapped, mapped + kBytes / 2, allocated, allocated + (size_t{4} << 20),
                                 allocated + kBytes / 2, allocated + kBytes - 4096}) {
    Child thief([&] {
      const auto body = [&]() -> Result<int> {
        NEREID_TRY(const Gpu machine, Gpu::open());
        NEREID_TRY(const gpu::DeviceBuffer out, gpu::DeviceBuffer::allocate(machine.driver, 4));
        NEREID_TRY(const CUresult code,
                   run(machine, kernels.at("read_at"), {1, 1, 1}, {address, out.data(), i64(0)}));
        if (gpu::is_kernel_fault(code)) return 10;
        uint32_t got = 0;
        NEREID_CUDA(machine.driver, cuMemcpyDtoH(&got, out.data(), 4));
        return got == kSecret ? 12 : 11;
      };
      const auto result = body();
      return result.ok() ? *result : 1;
    });
    const int status = thief.wait();
    NEREID_EXPECT(status == 10 || status == 11, "address {:#x}: {} (12: the secret was read)", address,
                  status);
    (status == 10 ? faults : others) += 1;
  }
  NEREID_TRY_STATUS(send_word(pair.ours, 7));
  NEREID_TRY(const uint64_t alive, receive_word(pair.ours));
  NEREID_EXPECT(alive == 7, "the holder lives");
  return fmt::format("{} reads faulted, {} found other memory of the reader's own, the secret was never seen",
                     faults, others);
}

Result<std::string> endless(const Kernels& kernels) {
  const Stopwatch watch;
  Child spinner([&] {
    const auto body = [&]() -> Result<int> {
      NEREID_TRY(const Gpu machine, Gpu::open());
      NEREID_TRY(const gpu::DeviceBuffer flag, gpu::DeviceBuffer::allocate(machine.driver, 4));
      NEREID_CUDA(machine.driver, cuMemsetD8Async(flag.data(), 0, 4, machine.stream));
      NEREID_TRY(gpu::LoadedKernel kernel,
                 gpu::LoadedKernel::load(machine.driver, kDevice, kernels.at("spin")));
      NEREID_TRY(const auto outcome, kernel.launch({1, 1, 1}, {flag.data()}, {}, machine.stream));
      if (!outcome.ok()) return 3;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      _exit(machine.driver.cuStreamQuery(machine.stream) == CUDA_ERROR_NOT_READY ? 20 : 21);
    };
    const auto result = body();
    return result.ok() ? *result : 1;
  });
  const int status = spinner.wait();
  const double gone = watch.seconds();
  NEREID_EXPECT(status == 20, "{}", status);
  const Stopwatch after;
  Child next([&] { return check_add(kernels, "add_one").ok() ? 0 : 1; });
  const int works = next.wait();
  NEREID_EXPECT(works == 0, "the GPU works for the next process, got {}", works);
  return fmt::format("an endless kernel's process ends in {:.1f} s; the next process is done {:.1f} s later",
                     gone, after.seconds());
}

// A parent graph: flush, start event, the captured work as a child, end event.
struct TimedGraph {
  const Gpu& machine;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUevent start = nullptr, end = nullptr;

  static Result<TimedGraph> make(const Gpu& machine, CUgraph work, CUdeviceptr flush, size_t flush_bytes) {
    TimedGraph timed{machine};
    const gpu::Driver& driver = machine.driver;
    NEREID_CUDA(driver, cuEventCreate(&timed.start, CU_EVENT_DEFAULT));
    NEREID_CUDA(driver, cuEventCreate(&timed.end, CU_EVENT_DEFAULT));
    NEREID_CUDA(driver, cuGraphCreate(&timed.graph, 0));
    CUgraphNode last = nullptr, node = nullptr;
    const auto depend = [&]() { return last == nullptr ? 0U : 1U; };
    if (flush_bytes > 0) {
      CUDA_MEMSET_NODE_PARAMS memset{};
      memset.dst = flush;
      memset.value = 0;
      memset.elementSize = 4;
      memset.width = flush_bytes / 4;
      memset.height = 1;
      CUcontext context = nullptr;
      NEREID_CUDA(driver, cuCtxGetCurrent(&context));
      NEREID_CUDA(driver, cuGraphAddMemsetNode(&node, timed.graph, nullptr, 0, &memset, context));
      last = node;
    }
    NEREID_CUDA(driver, cuGraphAddEventRecordNode(&node, timed.graph, &last, depend(), timed.start));
    last = node;
    if (work != nullptr) {
      NEREID_CUDA(driver, cuGraphAddChildGraphNode(&node, timed.graph, &last, 1, work));
      last = node;
    }
    NEREID_CUDA(driver, cuGraphAddEventRecordNode(&node, timed.graph, &last, 1, timed.end));
    NEREID_CUDA(driver, cuGraphInstantiateWithFlags(&timed.exec, timed.graph, 0));
    return timed;
  }
  Result<double> microseconds() const {
    NEREID_CUDA(machine.driver, cuGraphLaunch(exec, machine.stream));
    NEREID_CUDA(machine.driver, cuStreamSynchronize(machine.stream));
    float milliseconds = 0;
    NEREID_CUDA(machine.driver, cuEventElapsedTime(&milliseconds, start, end));
    return milliseconds * 1e3;
  }
  Result<double> median_microseconds(int count) const {
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) {
      NEREID_TRY(const double sample, microseconds());
      samples.push_back(sample);
    }
    return gpu::median(samples);
  }
};

Result<CUgraph> capture_adds(const Gpu& machine, const gpu::LoadedKernel& kernel, CUdeviceptr x,
                             CUdeviceptr out, int64_t count, int repeats) {
  CUgraph graph = nullptr;
  NEREID_CUDA(machine.driver, cuStreamBeginCapture(machine.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < repeats; ++i) {
    NEREID_TRY(const auto outcome,
               kernel.launch({(count + 1023) / 1024, 1, 1}, {x, out, i32(static_cast<int32_t>(count))}, {},
                             machine.stream));
    NEREID_EXPECT(outcome.ok(), "{}", outcome.error);
  }
  NEREID_CUDA(machine.driver, cuStreamEndCapture(machine.stream, &graph));
  return graph;
}

Result<double> timed_by_stream(const Gpu& machine, const std::function<CUresult()>& work, CUdeviceptr flush,
                               size_t flush_bytes, int count) {
  CUevent start = nullptr, end = nullptr;
  NEREID_CUDA(machine.driver, cuEventCreate(&start, CU_EVENT_DEFAULT));
  NEREID_CUDA(machine.driver, cuEventCreate(&end, CU_EVENT_DEFAULT));
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    if (flush_bytes > 0)
      NEREID_CUDA(machine.driver, cuMemsetD32Async(flush, 0, flush_bytes / 4, machine.stream));
    NEREID_CUDA(machine.driver, cuEventRecord(start, machine.stream));
    if (const CUresult code = work(); code != CUDA_SUCCESS)
      return gpu::cuda_error(machine.driver, code, "work");
    NEREID_CUDA(machine.driver, cuEventRecord(end, machine.stream));
    NEREID_CUDA(machine.driver, cuStreamSynchronize(machine.stream));
    float milliseconds = 0;
    NEREID_CUDA(machine.driver, cuEventElapsedTime(&milliseconds, start, end));
    samples.push_back(milliseconds * 1e3);
  }
  return gpu::median(samples);
}

Result<std::string> timing(const Kernels& kernels) {
  NEREID_TRY(const Gpu machine, Gpu::open());
  NEREID_TRY(const gpu::LoadedKernel kernel,
             gpu::LoadedKernel::load(machine.driver, kDevice, kernels.at("add_one")));
  constexpr size_t kFlush = size_t{256} << 20;
  NEREID_TRY(const gpu::DeviceBuffer flush, gpu::DeviceBuffer::allocate(machine.driver, kFlush));
  std::string report;
  for (const int64_t count : {int64_t{0}, int64_t{1} << 12, int64_t{1} << 20, int64_t{1} << 26}) {
    NEREID_TRY(const gpu::DeviceBuffer x,
               gpu::DeviceBuffer::allocate(machine.driver, static_cast<size_t>(count) * 4 + 4));
    NEREID_TRY(const gpu::DeviceBuffer out,
               gpu::DeviceBuffer::allocate(machine.driver, static_cast<size_t>(count) * 4 + 4));
    CUgraph work = nullptr;
    if (count > 0) {
      NEREID_TRY(work, capture_adds(machine, kernel, x.data(), out.data(), count, 1));
    }
    NEREID_TRY(const TimedGraph cold, TimedGraph::make(machine, work, flush.data(), kFlush));
    NEREID_TRY(const TimedGraph warm, TimedGraph::make(machine, work, 0, 0));
    NEREID_TRY(const double cold_us, cold.median_microseconds(30));
    NEREID_TRY(const double warm_us, warm.median_microseconds(30));
    const auto plain = [&] {
      if (count == 0) return CUDA_SUCCESS;
      const auto outcome =
          kernel.launch({(count + 1023) / 1024, 1, 1},
                        {x.data(), out.data(), i32(static_cast<int32_t>(count))}, {}, machine.stream);
      return outcome.ok() ? outcome->code : CUDA_ERROR_UNKNOWN;
    };
    NEREID_TRY(const double plain_us, timed_by_stream(machine, plain, flush.data(), kFlush, 30));
    double launched_us = 0, back_to_back_us = 0;
    if (count > 0) {
      CUgraphExec exec = nullptr;
      NEREID_CUDA(machine.driver, cuGraphInstantiateWithFlags(&exec, work, 0));
      NEREID_TRY(launched_us, timed_by_stream(
                                  machine, [&] { return machine.driver.cuGraphLaunch(exec, machine.stream); },
                                  flush.data(), kFlush, 30));
      NEREID_TRY(CUgraph many, capture_adds(machine, kernel, x.data(), out.data(), count, 20));
      NEREID_TRY(const TimedGraph loop, TimedGraph::make(machine, many, 0, 0));
      NEREID_TRY(back_to_back_us, loop.median_microseconds(20));
    }
    report += fmt::format(
        "\n       n={}: cold graph {:.2f} us, warm graph {:.2f}, graph between stream events {:.2f}, plain "
        "{:.2f}, back to back {:.2f}",
        count, cold_us, warm_us, launched_us, plain_us, back_to_back_us / 20);
    if (count == int64_t{1} << 26)
      report += fmt::format(" ({:.2f} TB/s cold)", 2.0 * 4 * static_cast<double>(count) / cold_us / 1e6);
  }
  return report;
}

// Two processes with work on one GPU, taking turns.
Result<std::string> turns(const Kernels& kernels) {
  NEREID_TRY(const Pair pair, socket_pair());
  constexpr int kRounds = 50;
  const auto partner = [&](const Fd& socket, bool first) -> Result<double> {
    NEREID_TRY(const Gpu machine, Gpu::open());
    NEREID_TRY(const gpu::LoadedKernel kernel,
               gpu::LoadedKernel::load(machine.driver, kDevice, kernels.at("add_one")));
    NEREID_TRY(const gpu::DeviceBuffer x, gpu::DeviceBuffer::allocate(machine.driver, 4 << 20));
    NEREID_TRY(CUgraph work, capture_adds(machine, kernel, x.data(), x.data(), 1 << 20, 1));
    NEREID_TRY(const TimedGraph timed, TimedGraph::make(machine, work, 0, 0));
    NEREID_TRY_STATUS(send_word(socket, 1));
    NEREID_TRY(uint64_t word, receive_word(socket));
    const Stopwatch watch;
    for (int round = 0; round < kRounds; ++round) {
      if (first) {
        NEREID_TRY(const double ignored, timed.microseconds());
        (void)ignored;
        NEREID_TRY_STATUS(send_word(socket, word));
        NEREID_TRY(word, receive_word(socket));
      } else {
        NEREID_TRY(word, receive_word(socket));
        NEREID_TRY(const double ignored, timed.microseconds());
        (void)ignored;
        NEREID_TRY_STATUS(send_word(socket, word));
      }
    }
    return watch.seconds() / kRounds / 2 * 1e6;
  };
  Child other([&] { return partner(pair.theirs, false).ok() ? 0 : 1; });
  NEREID_TRY(const double turn, partner(pair.ours, true));
  other.wait();
  return fmt::format("a turn of one kernel of 4 us, synchronised and handed over: {:.0f} us", turn);
}

}  // namespace

std::vector<Check> driver_checks() {
  return {
      {"facts", facts},
      {"nvml", nvml},
      {"add", [](const Kernels& k) { return check_add(k, "add_one"); }},
      {"cluster", [](const Kernels& k) { return check_add(k, "add_one_cluster"); }},
      {"scalars", scalars},
      {"tma descriptors from the host",
       [](const Kernels& k) { return check_matmul(k, "matmul_host_descriptor", true, 64); }},
      {"tma descriptors in scratch",
       [](const Kernels& k) { return check_matmul(k, "matmul_device_descriptor", false, 64); }},
      {"128 KiB of shared memory",
       [](const Kernels& k) { return check_matmul(k, "matmul_big_shared", false, 128); }},
      {"mapping costs", mapping_costs},
      {"fence", fence, 120},
      {"share", share},
      {"isolation", isolation, 120},
      {"endless kernel", endless},
      {"timing", timing},
      {"turns", turns},
  };
}

}  // namespace nereid::replay::cuda::selftest
