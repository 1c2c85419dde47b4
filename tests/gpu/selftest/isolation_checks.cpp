// The jail of the CUDA workers on a real driver: what a driver asks of the kernel when nothing is refused
// (the survey), each jail with everything that a replay does inside, what is refused meanwhile, and attempts
// to get out.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/special_airy_ai.h>
#include <dlfcn.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <semaphore>
#include <thread>

#include "nereid/base/deadline.h"
#include "nereid/replay/cuda/cuda_launcher.h"
#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/sandbox/jail/attempts.h"
#include "nereid/sandbox/jail/cuda_isolation.h"
#include "nereid/sandbox/jail/refusals.h"
#include "nereid/sandbox/layers/seccomp_filter.h"
#include "tests/gpu/selftest/floats.h"
#include "tests/gpu/selftest/harness.h"

namespace nereid::replay::cuda::selftest {
namespace {

// One thing that a replay does; an error, or an exception, is what was wrong.
struct Exercise {
  const char* name;
  std::function<Status(CudaMachine&, const Kernels&)> run;
};

Status launch_add_one(CudaMachine& machine, const Kernels& kernels) {
  const at::Tensor x = at::ones({1000}, floats()), out = at::empty({1000}, floats());
  NEREID_TRY(gpu::LoadedKernel kernel,
             gpu::LoadedKernel::load(machine.driver(), machine.device_index(), kernels.at("add_one")));
  const auto address = [](const at::Tensor& t) {
    return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(t.data_ptr()));
  };
  NEREID_TRY(const auto outcome,
             kernel.launch({1, 1, 1}, {address(x), address(out), gpu::Scalar{uint32_t{1000}}}, {0, 0},
                           machine.stream()));
  NEREID_EXPECT(outcome.ok(), "{}", gpu::describe(machine.driver(), outcome.code));
  machine.synchronize();
  NEREID_EXPECT(out.sum().item<double>() == 2000, "{}", out.sum().item<double>());
  return ok_status();
}

Status finite(const at::Tensor& tensor) {
  NEREID_EXPECT(at::isfinite(tensor.to(at::kFloat)).all().item<bool>(), "numbers");
  return ok_status();
}

Status capture(CudaMachine& machine, const Kernels&) {
  const at::Tensor x = at::randn({256, 256}, floats());
  at::matmul(x, x);
  at::cuda::CUDAGraph graph;
  machine.synchronize();
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  const at::Tensor out = at::relu(at::matmul(x, x));
  graph.capture_end();
  graph.replay();
  machine.synchronize();
  return finite(out);
}

Status copies(CudaMachine&, const Kernels&) {
  const at::Tensor host = at::ones({1 << 20}, at::TensorOptions().pinned_memory(true));
  const double sum = host.to(at::kCUDA).add_(1).cpu().sum().item<double>();
  NEREID_EXPECT(sum == 2 << 20, "{}", sum);
  return ok_status();
}

Status host_threads(CudaMachine&, const Kernels&) {
  at::set_num_threads(8);
  const at::Tensor a = at::ones({512, 512});
  const double sum = at::matmul(a, a).sum().item<double>();
  at::set_num_threads(1);
  NEREID_EXPECT(sum == 512.0 * 512 * 512, "{}", sum);
  return ok_status();
}

std::vector<Exercise> exercises() {
  const auto aten = [](const char* name, std::function<at::Tensor()> work) {
    return Exercise{name, [work = std::move(work)](CudaMachine&, const Kernels&) { return finite(work()); }};
  };
  const auto halves = floats().dtype(at::kHalf);
  return {
      {"launch", launch_add_one},
      aten("elementwise", [] { return at::randn({1000}, floats()).add(1).relu().softmax(0); }),
      aten("cuBLAS float",
           [] { return at::matmul(at::randn({256, 256}, floats()), at::randn({256, 256}, floats())); }),
      aten("cuBLAS half",
           [=] { return at::matmul(at::randn({256, 256}, halves), at::randn({256, 256}, halves)); }),
      aten("cuBLASLt",
           [=] {
             const at::Tensor m = at::randn({256, 256}, halves);
             return at::_addmm_activation(at::randn({256}, halves), m, m);
           }),
      aten("cuDNN convolution",
           [] {
             return at::conv2d(at::randn({2, 16, 32, 32}, floats()), at::randn({16, 16, 3, 3}, floats()));
           }),
      aten("cuDNN half",
           [=] { return at::conv2d(at::randn({2, 16, 32, 32}, halves), at::randn({16, 16, 3, 3}, halves)); }),
      aten("attention",
           [=] {
             const at::Tensor q = at::randn({2, 4, 128, 64}, halves);
             return at::scaled_dot_product_attention(q, q, q);
           }),
      aten("nvrtc", [] { return at::special_airy_ai(at::randn({100}, floats())); }),
      aten("FFT", [] { return at::view_as_real(at::fft_rfft(at::randn({256}, floats()))); }),
      aten("linear algebra", [] { return at::linalg_inv(at::eye(64, floats())); }),
      aten("sort", [] { return std::get<0>(at::sort(at::randn({100000}, floats()))); }),
      aten("double", [] { return at::randn({64, 64}, floats().dtype(at::kDouble)).exp().sum(); }),
      {"pinned copies", copies},
      {"graph capture", capture},
      {"threads", host_threads},
      {"large allocation",
       [](CudaMachine&, const Kernels&) {
         at::empty({int64_t{1} << 32}, floats().dtype(at::kByte)).zero_();
         return ok_status();
       }},
      {"fenced memory",
       [](CudaMachine& machine, const Kernels&) {
         machine.fenced = true;
         const auto storage = machine.allocate(4000, trace::Device::kCuda);
         machine.fenced = false;
         return finite(at::empty({0}, floats()).set_(storage, 0, {1000}, {1}).zero_());
       }},
      {"shared block",
       [](CudaMachine& machine, const Kernels&) -> Status {
         const SharedBlock block = machine.share(1 << 20);
         NEREID_EXPECT(block.fd.valid(), "a descriptor");
         const SharedBlock same = machine.open(block.fd, 1 << 20, false);
         block.bytes.fill_(3);
         machine.synchronize();
         NEREID_EXPECT(same.bytes.to(at::kLong).sum().item<int64_t>() == 3 << 20, "the same memory");
         return ok_status();
       }},
  };
}

constexpr int kStart = 0, kContext = 1, kFirstExercise = 2;

std::string phase_name(int phase) {
  const auto all = exercises();
  if (phase == kStart) return "before the driver";
  if (phase == kContext) return "context";
  const auto index = static_cast<size_t>(phase - kFirstExercise);
  return index < all.size() ? all[index].name : "attempts";
}

// Memory that a check's process and its watcher share.
struct Shared {
  std::atomic<int> phase = kStart;
  char why[512] = {};
  int say(std::string_view text) {
    text.copy(why, sizeof why - 1);
    return 1;
  }
};
std::unique_ptr<Shared, void (*)(Shared*)> shared_memory() {
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return {new (at) Shared, [](Shared* shared) { ::munmap(shared, sizeof(Shared)); }};
}

// "" where all went well, else "name: what was wrong; ...".
std::string run_exercises(CudaMachine& machine, const Kernels& kernels, Shared& shared) {
  std::string wrong;
  const auto all = exercises();
  for (size_t i = 0; i < all.size(); ++i) {
    shared.phase = kFirstExercise + static_cast<int>(i);
    std::string why;
    try {
      if (const auto status = all[i].run(machine, kernels); !status.ok()) why = status.error().message;
    } catch (const std::exception& error) {
      why = std::string(error.what()).substr(0, 300);
    }
    if (!why.empty()) wrong += fmt::format("{}: {}; ", all[i].name, why);
  }
  shared.phase = kFirstExercise + static_cast<int>(all.size());
  return wrong;
}

// What the parent of a watched process learns of it.
struct Report {
  std::string text;
  int status = 0;
  std::map<sandbox::Asked, int> asked;
};

// Runs `body`, which sends the descriptor of its filter (or none, and a word) and then its report.
Report watch(const sandbox::Jail* jail, sandbox::Refusals::Answer answer, Shared& shared,
             const std::function<std::string(const Fd& channel)>& body) {
  Report found;
  auto pair = socket_pair();
  int report[2];
  if (!pair.ok() || ::pipe(report) != 0) return {"no channel", -1, {}};
  if (jail != nullptr && !jail->before_fork().ok()) return {"no pid namespace", -1, {}};
  Child child([&] {
    ::close(report[0]);
    ::dup2(report[1], 100);
    const std::string text = body(pair->theirs);
    return ::write(100, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  });
  if (jail != nullptr) (void)jail->after_fork();
  ::close(report[1]);
  pair->theirs.reset();
  std::unique_ptr<sandbox::Refusals> watching;
  if (auto received = receive_fd(pair->ours); received.ok() && received->fd.valid())
    watching = std::make_unique<sandbox::Refusals>(std::move(received->fd), answer, &shared.phase);
  char buffer[4096];
  for (ssize_t got; (got = ::read(report[0], buffer, sizeof buffer)) > 0;)
    found.text.append(buffer, static_cast<size_t>(got));
  ::close(report[0]);
  found.status = child.wait();
  if (watching) found.asked = watching->asked();
  return found;
}

// Opened, there, and in none of the policy's trees.
bool outside(const std::string& path, const sandbox::Policy& policy) {
  std::error_code missing;
  const auto real = std::filesystem::weakly_canonical(path, missing).string();
  if (missing || path.empty() || real.starts_with("/proc/self") || path.starts_with("/proc/self"))
    return false;
  const auto below = [&](const std::string& tree) {
    const auto folder = std::filesystem::weakly_canonical(tree, missing).string();
    return real == folder || real.starts_with(folder + "/");
  };
  return std::none_of(policy.readable.begin(), policy.readable.end(), below) &&
         std::none_of(policy.devices.begin(), policy.devices.end(), below);
}

std::string list(const std::map<sandbox::Asked, int>& asked, const sandbox::Policy& policy, bool opens) {
  std::string text;
  for (const auto& [what, times] : asked) {
    const bool open = what.call == "openat" || what.call == "open";
    if (open) {
      auto path = what.what;
      if (const auto at = path.find(" (to write)"); at != std::string::npos) path.resize(at);
      if (!opens || !outside(path, policy)) continue;
      text += fmt::format("\n       {}: {} {} x{}{}", phase_name(what.phase), what.call, what.what, times,
                          ::access(path.c_str(), F_OK) == 0 ? "" : " (not there)");
    } else {
      text += fmt::format("\n       {}: {} {} x{}", phase_name(what.phase), what.call, what.what, times);
    }
  }
  return text.empty() ? " nothing" : text;
}

// Nothing is refused; every file that is opened outside the policy's trees, and every call that the filter
// does not let pass, is listed by the exercise that made it.
Result<std::string> survey(const Kernels& kernels) {
  const auto policy = sandbox::cuda_policy(sandbox::cuda_fits().front());
  const auto shared = shared_memory();
  NEREID_TRY(const auto filter,
             sandbox::compile_seccomp_filter({.shared_memory = true, .messages = true, .devices = true}));
  const Report report =
      watch(nullptr, sandbox::Refusals::Answer::kAllow, *shared, [&](const Fd& channel) -> std::string {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const auto listener = sandbox::load_seccomp_filter_with_listener(filter, /*opens=*/true);
        if (!listener.ok()) return listener.error().message;
        if (const auto sent = send_fd(channel, Fd(::dup(*listener)), 0); !sent.ok())
          return sent.error().message;
        ::close(*listener);
        shared->phase = kContext;
        const auto machine = CudaMachine::create(0);
        if (!machine.ok()) return "context: " + machine.error().message;
        return run_exercises(**machine, kernels, *shared);
      });
  const std::string seen = "requested, beyond what a jail allows:" + list(report.asked, policy, true);
  if (!report.text.empty() || report.status != 0)
    return our_error("status {}; {}; {}", report.status, report.text, seen);
  return seen;
}

// As run_cuda_process goes about it, with all that a replay does, and then what it must not do.
Result<std::string> live_in(const sandbox::CudaFit& fit, const Kernels& kernels) {
  const auto policy = sandbox::cuda_policy(fit);
  NEREID_TRY(const sandbox::Jail jail, sandbox::Jail::prepare(policy));
  const auto shared = shared_memory();
  const pid_t victim = ::getpid();
  const Report report =
      watch(&jail, sandbox::Refusals::Answer::kRefuse, *shared, [&](const Fd& channel) -> std::string {
        if (const auto begun = jail.begin({channel.get(), 100}); !begun.ok()) return begun.error().message;
        shared->phase = kContext;
        const Stopwatch watch;
        const auto machine = CudaMachine::create(0);
        if (!machine.ok()) return "context: " + machine.error().message;
        const double context = watch.seconds();
        int listener = -1;
        if (const auto finished = jail.finish(&listener); !finished.ok()) return finished.error().message;
        if (const auto sent = send_fd(channel, Fd(listener), 0); !sent.ok()) return sent.error().message;
        std::string wrong = run_exercises(**machine, kernels, *shared);
        const auto escaped = sandbox::worked(sandbox::run_attempts(victim), jail.isolation().landlock > 0);
        if (!escaped.empty()) wrong += fmt::format("NOT KEPT FROM {}; ", escaped);
        return wrong.empty() ? fmt::format("+context in {:.2f} s", context) : wrong;
      });
  auto refused = report.asked;
  std::erase_if(refused, [](const auto& one) { return phase_name(one.first.phase) == "attempts"; });
  const std::string seen = fmt::format("isolation: {}; refused meanwhile:{}",
                                       sandbox::describe(jail.isolation()), list(refused, policy, false));
  if (!report.text.starts_with("+") || report.status != 0)
    return our_error("status {}; {}; {}", report.status, report.text, seen);
  return report.text.substr(1) + "; " + seen;
}

// As the driver does to the first thread it starts; else it says that the operating system failed.
Status name_a_thread() {
  std::binary_semaphore done(0);
  std::thread thread([&] { done.acquire(); });
  const int failed = ::pthread_setname_np(thread.native_handle(), "named");
  done.release();
  thread.join();
  NEREID_EXPECT(failed == 0, "naming a thread: {}", ::strerror(failed));
  return ok_status();
}

// What a replay's libraries load later, and threads of their own, in the jail and without a GPU.
Result<std::string> on_the_host(const sandbox::CudaFit& fit) {
  NEREID_TRY(const sandbox::Jail jail, sandbox::Jail::prepare(sandbox::cuda_policy(fit)));
  const auto shared = shared_memory();
  const pid_t victim = ::getpid();
  const Report report =
      watch(&jail, sandbox::Refusals::Answer::kRefuse, *shared, [&](const Fd& channel) -> std::string {
        if (const auto begun = jail.begin({channel.get(), 100}); !begun.ok()) return begun.error().message;
        if (const auto named = name_a_thread(); !named.ok()) return named.error().message;
        if (const auto finished = jail.finish(); !finished.ok()) return finished.error().message;
        const at::Tensor a = at::ones({512, 512});
        at::set_num_threads(4);
        const double sum = at::matmul(a, a).sum().item<double>();
        if (sum != 512.0 * 512 * 512) return fmt::format("a matmul in threads gives {}", sum);
        for (const char* library :
             {"libcudnn_ops.so.9", "libcudnn_engines_precompiled.so.9", "libcufft.so.12"})
          if (::dlopen(library, RTLD_NOW) == nullptr) return ::dlerror();
        const auto escaped = sandbox::worked(sandbox::run_attempts(victim), jail.isolation().landlock > 0);
        return escaped.empty() ? "+" : fmt::format("not kept from {}", escaped);
      });
  if (report.text != "+" || report.status != 0) return our_error("status {}; {}", report.status, report.text);
  return "libraries load, threads start; isolation: " + sandbox::describe(jail.isolation());
}

// A block made in one jail is read in another, as an answer's is in a session.
Result<std::string> hand_over(const sandbox::CudaFit& fit) {
  NEREID_TRY(const sandbox::Jail jail, sandbox::Jail::prepare(sandbox::cuda_policy(fit)));
  NEREID_TRY(const Pair pair, socket_pair());
  const auto shared = shared_memory();
  constexpr int64_t kBytes = 1000003;
  const auto enter = [&](const Fd& socket) -> Result<std::unique_ptr<CudaMachine>> {
    NEREID_TRY_STATUS(jail.begin({socket.get()}));
    NEREID_TRY(auto machine, CudaMachine::create(0));
    NEREID_TRY_STATUS(jail.finish());
    return machine;
  };
  const auto make = [&]() -> Status {
    NEREID_TRY(const auto machine, enter(pair.theirs));
    SharedBlock block = machine->share(kBytes);
    block.bytes.fill_(7);
    machine->synchronize();
    NEREID_TRY_STATUS(send_fd(pair.theirs, block.fd, kBytes));
    NEREID_TRY(const uint64_t word, receive_word(pair.theirs));
    (void)word;
    return ok_status();
  };
  const auto read = [&]() -> Status {
    NEREID_TRY(const auto machine, enter(pair.ours));
    NEREID_TRY(Received received, receive_fd(pair.ours));
    const SharedBlock block = machine->open(received.fd, static_cast<int64_t>(received.word), false);
    const int64_t sum = block.bytes.to(at::kLong).sum().item<int64_t>();
    NEREID_EXPECT(sum == 7 * kBytes, "{}", sum);
    return send_word(pair.ours, 1);
  };
  const auto in_child = [&](const std::function<Status()>& body) -> Result<std::unique_ptr<Child>> {
    NEREID_TRY_STATUS(jail.before_fork());
    auto child = std::make_unique<Child>([&] {
      try {
        const auto status = body();
        return status.ok() ? 0 : shared->say(status.error().message);
      } catch (const std::exception& error) {
        return shared->say(error.what());
      }
    });
    NEREID_TRY_STATUS(jail.after_fork());
    return child;
  };
  NEREID_TRY(const auto maker, in_child(make));
  NEREID_TRY(const auto reader, in_child(read));
  const int made = maker->wait(), was_read = reader->wait();
  NEREID_EXPECT(made == 0 && was_read == 0, "the maker ended with {}, the reader with {}: {}", made, was_read,
                shared->why);
  return fmt::format("{} bytes went from one jailed process to another", kBytes);
}

}  // namespace

std::vector<Check> isolation_checks() {
  std::vector<Check> checks = {{"isolation survey", survey, 150}};
  for (const sandbox::CudaFit& fit : sandbox::cuda_fits()) {
    checks.push_back({fmt::format("isolation without a GPU, {}", fit.name),
                      [&fit](const Kernels&) { return on_the_host(fit); }, 60});
    checks.push_back({fmt::format("isolation live, {}", fit.name),
                      [&fit](const Kernels& kernels) { return live_in(fit, kernels); }, 120});
    checks.push_back({fmt::format("isolation handover, {}", fit.name),
                      [&fit](const Kernels&) { return hand_over(fit); }, 60});
  }
  return checks;
}

}  // namespace nereid::replay::cuda::selftest
