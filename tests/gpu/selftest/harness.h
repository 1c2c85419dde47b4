// Checks of what CUDA replay is built on, each in a process of its own: a fault ends a context, and a hung
// driver ends one check.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/tracer/compiled_kernel.h"

namespace nereid::replay::cuda::selftest {

struct Kernels {
  std::map<std::string, tracer::CompiledKernel> images;
  const tracer::CompiledKernel& at(const std::string& name) const { return images.at(name); }
};

struct Check {
  std::string name;
  std::function<Result<std::string>(const Kernels&)> run;  // what was seen and measured, for the table
  double seconds = 60;                                     // allowed
};

// The driver alone, without libtorch.
std::vector<Check> driver_checks();
// libtorch's CUDA half, and the machine that a replay runs on.
std::vector<Check> aten_checks();
// The kernels that compare outputs, against PyTorch's operators, and their speed at 1 GiB.
std::vector<Check> metrics_checks();
// The jail of the CUDA workers.
std::vector<Check> isolation_checks();

// EXPECT for a check: the error names what was expected.
#define NEREID_EXPECT(condition, ...)                                                      \
  do {                                                                                     \
    if (!(condition)) return ::nereid::our_error("expected " #condition ": " __VA_ARGS__); \
  } while (false)

// Two ends of a socket for two processes, and descriptors passed over it.
struct Pair {
  Fd ours, theirs;
};
Result<Pair> socket_pair();
Status send_fd(const Fd& socket, const Fd& fd, uint64_t word);
struct Received {
  Fd fd;
  uint64_t word = 0;
};
Result<Received> receive_fd(const Fd& socket);
Status send_word(const Fd& socket, uint64_t word);
Result<uint64_t> receive_word(const Fd& socket);

// Runs `body` in a forked process and returns its exit status: 0 to 255, or 1000 plus the signal that ended
// it.
class Child {
 public:
  explicit Child(const std::function<int()>& body);
  int wait();
  void kill();

 private:
  int pid_ = -1;
};

}  // namespace nereid::replay::cuda::selftest
