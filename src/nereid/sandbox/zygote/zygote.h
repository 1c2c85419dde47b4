// A Python worker (python/nereid/_worker/zygote.py) that was warmed once and forks a jailed child for every
// request.
//
// Thread-safe: any number of threads may call `run` at once; `children` of them are served at a time. A
// worker that is lost is started again and the request tried once more; so is one whose child was killed from
// outside (by the kernel, short of memory, for instance). When a Zygote goes, or this process dies, however,
// so does the worker with everything it started.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

struct ZygoteOptions {
  Installation installation;
  std::string module;  // "nereid._tracer.tracer": warm() -> dict or None, handle(request) -> answer
  std::vector<std::filesystem::path> python_path =
      {};                                     // folders of modules, besides the installation's package
  std::vector<std::string> executables = {};  // names of programs below the trees that children may run
  bool needs_scratch = false;                 // children cannot do without a writable folder
  Limits limits = {};                         // of each child
  int children = 0;                           // at a time; 0: one a core
  bool at_once = true;                        // false: the worker starts with the first request
  size_t max_answer_bytes = size_t{256} << 20;
  double start_seconds = 300;          // for the worker to be warm
  bool namespaces = true;              // false: behave as on a kernel without them
  bool accept_weak_isolation = false;  // run even where Isolation::enough() says no
};

// How a request ended. All of it is hostile: an answer is any bytes.
struct Answer {
  std::string bytes;
};
struct OutOfTime {
  double seconds = 0;
};
struct Killed {
  std::string limit;  // "a signal 11 (Segmentation fault)", "an answer larger than 1024 bytes", ...
  bool by_force =
      false;  // by SIGKILL, and no limit of ours says why: the kernel, short of memory, or a person
};
using Outcome = std::variant<Answer, OutOfTime, Killed>;

class Zygote {
 public:
  // Starts the worker in the background, if `at_once`; the first `run` waits for it to be warm. An error only
  // when it cannot start.
  static Result<std::unique_ptr<Zygote>> start(ZygoteOptions options);
  virtual ~Zygote() = default;

  // `seconds` is the child's time from its fork, without what it waited for a processor (process_times.h); it
  // alone gives OutOfTime. `deadline` bounds all of it in wall time, waiting for a free place and for a warm
  // worker included; where it passes first that is an error, for it is never the child's. So are a worker
  // lost twice, a child that was killed twice by nothing that the jail holds, and Ctrl-C.
  virtual Result<Outcome> run(std::string_view request, double seconds, Deadline deadline) = 0;

  // Waits for the worker to be warm. The isolation layers around its children; what warm() returned, as JSON
  // text.
  virtual Result<Isolation> isolation(Deadline deadline) = 0;
  virtual Result<std::string> about(Deadline deadline) = 0;

  virtual int children() const = 0;
  // Process id of the launcher, for tests that kill it; 0 when there is none.
  virtual int launcher_pid() const = 0;
};

}  // namespace nereid::sandbox
