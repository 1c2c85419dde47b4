// gpu_selftest KERNELS.json [NAME...]: runs the checks whose names contain one of the words, prints a table,
// exits 0 if all passed. KERNELS.json is what tests/gpu/selftest_kernels.py writes.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "nereid/base/deadline.h"
#include "nereid/base/json.h"
#include "nereid/gpu/driver.h"
#include "tests/gpu/selftest/harness.h"

namespace nereid::replay::cuda::selftest {
namespace {

Result<Kernels> read_kernels(const char* path) {
  NEREID_TRY(const std::string text, read_file(path));
  NEREID_TRY(const Json document, parse_json(text, path));
  Kernels kernels;
  for (const auto& [name, description] : document.items()) {
    NEREID_TRY(tracer::CompiledKernel image, tracer::compiled_kernel_from_json(description));
    kernels.images.emplace(name, std::move(image));
  }
  return kernels;
}

constexpr size_t kMaxText = 30000;  // less than a pipe holds, so that it comes in one piece

struct Seen {
  bool passed = false;
  std::string text;
  double seconds = 0;
};

Seen run(const Check& check, const Kernels& kernels) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) return {false, "no pipe"};
  Fd reader(pipe_fds[0]), writer(pipe_fds[1]);
  const Stopwatch watch;
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    std::string line;
    try {
      const auto result = check.run(kernels);
      line = result.ok() ? "+" + *result : "-" + result.error().message;
    } catch (const std::exception& error) {
      line = std::string("-threw ") + error.what();
    }
    line.resize(std::min<size_t>(line.size(), kMaxText));
    _exit(write(writer.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 1);
  }
  writer.reset();
  Seen seen;
  pollfd waiting{reader.get(), POLLIN, 0};
  const Deadline deadline = Deadline::after(check.seconds);
  std::string line(kMaxText, '\0');
  if (poll(&waiting, 1, deadline.poll_milliseconds()) > 0) {
    const ssize_t got = read(reader.get(), line.data(), line.size());
    line.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    seen.passed = !line.empty() && line[0] == '+';
    seen.text = line.empty() ? "the process died" : line.substr(1);
  } else {
    seen.text = fmt::format("not done after {} s", check.seconds);
  }
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  seen.seconds = watch.seconds();
  return seen;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: gpu_selftest KERNELS.json [NAME...]\n");
    return 2;
  }
  // libcuda.so.1 must not be touched before the forks, so that a missing device is each check's own finding.
  const auto kernels = read_kernels(argv[1]);
  if (!kernels.ok()) {
    std::fprintf(stderr, "%s\n", kernels.error().message.c_str());
    return 2;
  }
  std::vector<Check> checks = driver_checks();
  for (auto more : {aten_checks, metrics_checks, isolation_checks})
    for (Check& check : more()) checks.push_back(std::move(check));
  int failed = 0;
  for (const Check& check : checks) {
    bool wanted = argc == 2;
    for (int i = 2; i < argc; ++i) wanted = wanted || check.name.find(argv[i]) != std::string::npos;
    if (!wanted) continue;
    const Seen seen = run(check, *kernels);
    failed += seen.passed ? 0 : 1;
    std::printf("%-4s %-34s %6.2f s  %s\n", seen.passed ? "ok" : "FAIL", check.name.c_str(), seen.seconds,
                seen.text.c_str());
    std::fflush(stdout);
  }
  std::printf("%d failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace nereid::replay::cuda::selftest

int main(int argc, char** argv) { return nereid::replay::cuda::selftest::main(argc, argv); }
