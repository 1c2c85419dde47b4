#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include "nereid/base/deadline.h"
#include "nereid/gpu/statistics.h"
#include "nereid/replay/cuda/cuda_launcher.h"
#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "tests/gpu/selftest/floats.h"
#include "tests/gpu/selftest/harness.h"

namespace nereid::replay::cuda::selftest {
namespace {

constexpr int64_t kPage = 2 << 20;

double microseconds_of(const std::function<void()>& work, CudaMachine& machine, int repeats) {
  const Stopwatch watch;
  for (int i = 0; i < repeats; ++i) work();
  machine.synchronize();
  return watch.seconds() / repeats * 1e6;
}

Result<std::string> start(const Kernels&) {
  const Stopwatch watch;
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  const double made = watch.seconds();
  const at::Tensor x = at::arange(1000, floats());
  const double sum = (x + 1).sum().item<double>();
  NEREID_EXPECT(sum == 500500, "{}", sum);
  const double first = watch.seconds();
  std::string report =
      fmt::format("machine {:.0f} ms, first add {:.0f} ms more", made * 1e3, (first - made) * 1e3);
  const auto timed = [&](const char* name, const std::function<void()>& work) {
    const double cold = microseconds_of(work, *machine, 1);
    report +=
        fmt::format("; {} {:.0f} ms then {:.0f} us", name, cold / 1e3, microseconds_of(work, *machine, 20));
  };
  const at::Tensor m = at::randn({1024, 1024}, floats().dtype(at::kHalf));
  const at::Tensor d = at::randn({512, 512}, floats().dtype(at::kDouble));
  const at::Tensor image = at::randn({8, 64, 56, 56}, floats());
  const at::Tensor filter = at::randn({64, 64, 3, 3}, floats());
  timed("half matmul", [&] { at::matmul(m, m); });
  timed("double matmul", [&] { at::matmul(d, d); });
  timed("conv", [&] { at::conv2d(image, filter, {}, 1, 1); });
  timed("softmax", [&] { at::softmax(m, 1); });
  timed("sort", [&] { at::sort(m); });
  timed("attention", [&] {
    const at::Tensor q = m.view({4, 8, 512, 64});
    at::scaled_dot_product_attention(q, q, q);
  });
  return report;
}

Result<std::string> random(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  const auto draw = [](uint64_t seed) {
    at::manual_seed(static_cast<int64_t>(seed));
    return at::randn({1000}, floats());
  };
  const at::Tensor a = draw(5), b = draw(5), c = draw(6);
  NEREID_EXPECT(at::equal(a, b) && !at::equal(a, c), "a seed decides");
  return std::string("torch::manual_seed decides what CUDA draws");
}

// A trace with one kernel and nothing else, to launch by hand.
struct HandMade {
  trace::Trace trace;
  std::unique_ptr<Launcher> launcher;
  LaunchRequest request;
};

HandMade hand_made(CudaMachine& machine, const Kernels& kernels, const char* name, const at::Tensor& tensor,
                   int64_t index) {
  HandMade made;
  trace::Kernel kernel;
  kernel.name = name;
  kernel.hash = name;
  kernel.place = {"model.py", 12};
  made.trace.kernels.push_back(kernel);
  machine.add_kernel(name, kernels.at(name));
  trace::Launch launch;
  launch.alternatives.resize(1);
  launch.alternatives[0].kernel = 0;
  made.trace.phases.push_back({trace::PhaseKind::kForward, 0, {launch}, {}, {}});
  LaunchBuffer buffer;
  buffer.data = static_cast<std::byte*>(tensor.storage().mutable_data());
  buffer.bytes = static_cast<int64_t>(tensor.storage().nbytes());
  buffer.name = "input 0";
  made.request.buffers.push_back(buffer);
  made.request.arguments = {ttir::Pointer{0, 0}, ttir::Scalar{static_cast<uint64_t>(index)}};
  made.request.sanitize = true;
  made.request.deadline = Deadline::after(20);
  return made;
}

std::string launch(CudaMachine& machine, HandMade& made) {
  made.launcher = machine.load_kernels(made.trace);
  made.request.alternative = &std::get<trace::Launch>(made.trace.phases[0].steps[0]).alternatives[0];
  std::vector<ttir::Finding> findings;
  int64_t count = 0;
  try {
    made.launcher->launch(made.request, findings, count);
  } catch (const Failed& failed) {
    return findings.empty() ? std::string("failed: ") + failed.what() : findings[0].sentence;
  }
  return findings.empty() ? "clean" : findings[0].sentence;
}

Result<std::string> fenced_tensors(const Kernels& kernels) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  machine->fenced = true;
  const auto fenced = [&](int64_t count) {
    return at::empty({0}, floats())
        .set_(machine->allocate(count * 4, trace::Device::kCuda), 0, {count}, {1})
        .zero_();
  };
  const double per_tensor = microseconds_of([&] { fenced(1000); }, *machine, 100);
  const at::Tensor x = fenced(1000), odd = fenced(1001);
  NEREID_EXPECT(machine->fenced_memory().mapped_bytes() == 2 * kPage, "two mappings live, {} bytes",
                machine->fenced_memory().mapped_bytes());
  const auto end = reinterpret_cast<uintptr_t>(x.storage().data()) + x.storage().nbytes();
  NEREID_EXPECT(end % kPage == 0, "the tensor ends with its page: {:#x}", end);
  const double sum =
      at::matmul((x + 1).view({10, 100}), (odd.narrow(0, 0, 1000) + 2).view({100, 10})).sum().item<double>();
  NEREID_EXPECT(sum == 20000, "ATen computes on fenced memory, {}", sum);
  HandMade inside = hand_made(*machine, kernels, "write_at", x, 999);
  const std::string first = launch(*machine, inside);
  NEREID_EXPECT(first == "clean", "{}", first);
  HandMade slack = hand_made(*machine, kernels, "write_at", odd, 1001);
  const std::string second = launch(*machine, slack);
  NEREID_EXPECT(second.find("just outside") != std::string::npos, "{}", second);
  HandMade outside = hand_made(*machine, kernels, "write_at", x, 1000);
  const std::string third = launch(*machine, outside);
  NEREID_EXPECT(third.find("outside every tensor") != std::string::npos, "{}", third);
  NEREID_EXPECT(machine->lost(), "the machine knows that it is lost");
  return fmt::format("a tensor made, zeroed and freed costs {:.0f} us; '{}'; '{}'", per_tensor, second,
                     third);
}

Result<std::string> shared_blocks(const Kernels&) {
  NEREID_TRY(const Pair pair, socket_pair());
  constexpr int64_t kBytes = 1000003;
  Child maker([&] {
    const auto body = [&]() -> Status {
      NEREID_TRY(const auto machine, CudaMachine::create(0));
      SharedBlock block = machine->share(kBytes);
      block.bytes.fill_(7);
      machine->synchronize();
      NEREID_TRY_STATUS(send_fd(pair.theirs, block.fd, kBytes));
      NEREID_TRY(const uint64_t word, receive_word(pair.theirs));
      return send_word(pair.theirs, word);
    };
    return body().ok() ? 0 : 1;
  });
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  NEREID_TRY(Received received, receive_fd(pair.ours));
  const SharedBlock block = machine->open(received.fd, static_cast<int64_t>(received.word), false);
  const int64_t sum = block.bytes.to(at::kLong).sum().item<int64_t>();
  NEREID_EXPECT(sum == 7 * kBytes, "{}", sum);
  NEREID_TRY_STATUS(send_word(pair.ours, 1));
  maker.wait();
  return fmt::format("{} bytes read by the other process", kBytes);
}

// The forward as a graph: captured once, a child of a parent that times it, what it draws the same as
// eagerly.
Result<std::string> graphs(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  const gpu::Driver& driver = machine->driver();
  const at::Tensor w = at::randn({1024, 1024}, floats()), x = at::randn({1024, 1024}, floats());
  const auto forward = [&] { return at::relu(at::matmul(x, w)) + at::randn({1024, 1024}, floats()); };
  at::manual_seed(3);
  const at::Tensor eager = forward();
  at::cuda::CUDAGraph graph(/*keep_graph=*/true);
  graph.register_generator_state(at::globalContext().defaultGenerator(at::Device(at::kCUDA, 0)));
  machine->synchronize();
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  const at::Tensor out = forward();
  graph.capture_end();
  graph.instantiate();
  at::manual_seed(3);
  graph.replay();
  machine->synchronize();
  NEREID_EXPECT(at::equal(eager, out),
                "the graph computes what the eager forward does, largest difference {}",
                (eager - out).abs().max().item<double>());
  int64_t pool_bytes = 0, segments = 0;
  for (const auto& segment : c10::cuda::CUDACachingAllocator::snapshot(graph.pool(), false).segments) {
    pool_bytes += static_cast<int64_t>(segment.total_size);
    ++segments;
    driver.cuMemsetD8Async(static_cast<CUdeviceptr>(segment.address), 0xFF, segment.total_size,
                           machine->stream());
  }
  machine->synchronize();
  NEREID_EXPECT(out.isnan().all().item<bool>(), "poisoning the pool reaches the output");

  CUgraph parent = nullptr;
  CUgraphNode first = nullptr, child = nullptr, last = nullptr;
  CUevent begin = nullptr, end = nullptr;
  CUgraphExec exec = nullptr;
  NEREID_CUDA(driver, cuEventCreate(&begin, CU_EVENT_DEFAULT));
  NEREID_CUDA(driver, cuEventCreate(&end, CU_EVENT_DEFAULT));
  NEREID_CUDA(driver, cuGraphCreate(&parent, 0));
  NEREID_CUDA(driver, cuGraphAddEventRecordNode(&first, parent, nullptr, 0, begin));
  NEREID_CUDA(driver, cuGraphAddChildGraphNode(&child, parent, &first, 1, graph.raw_cuda_graph()));
  NEREID_CUDA(driver, cuGraphAddEventRecordNode(&last, parent, &child, 1, end));
  NEREID_CUDA(driver, cuGraphInstantiateWithFlags(&exec, parent, 0));
  std::vector<double> samples;
  for (int i = 0; i < 20; ++i) {
    NEREID_CUDA(driver, cuGraphLaunch(exec, machine->stream()));
    machine->synchronize();
    float milliseconds = 0;
    NEREID_CUDA(driver, cuEventElapsedTime(&milliseconds, begin, end));
    samples.push_back(milliseconds * 1e3);
  }
  NEREID_EXPECT(at::equal(eager, out), "a child of another graph computes the same, random numbers included");
  return fmt::format("pool {} MiB in {} segments, {:.1f} us as a child graph", pool_bytes >> 20, segments,
                     gpu::median(samples));
}

Result<std::string> graph_with_our_kernel(const Kernels& kernels) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  const at::Tensor x = at::zeros({1000}, floats());
  HandMade made = hand_made(*machine, kernels, "write_at", x, 5);
  const std::string eager = launch(*machine, made);
  NEREID_EXPECT(eager == "clean", "{}", eager);
  machine->synchronize();
  made.request.sanitize = false;
  at::cuda::CUDAGraph graph(/*keep_graph=*/true);
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  const std::string captured = launch(*machine, made);
  const at::Tensor y = x + 1;
  graph.capture_end();
  graph.instantiate();
  x.zero_();
  graph.replay();
  machine->synchronize();
  const double sum = y.sum().item<double>();
  NEREID_EXPECT(captured == "clean" && sum == 1007, "{}, sum {}", captured, sum);
  return std::string("a launch of ours and ATen's in one graph");
}

}  // namespace

std::vector<Check> aten_checks() {
  return {
      {"aten starts", start, 120},
      {"aten random", random},
      {"aten fenced tensors", fenced_tensors},
      {"aten shared blocks", shared_blocks},
      {"aten graphs", graphs},
      {"aten graph with our kernel", graph_with_our_kernel},
  };
}

}  // namespace nereid::replay::cuda::selftest
