#include "nereid/replay/worker/roles/server.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "nereid/base/thread_pool.h"
#include "nereid/replay/build_id.h"
#include "nereid/replay/host/worker_process.h"
#include "nereid/replay/message.h"
#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/sandbox/jail/jail.h"
#include "nereid/sandbox/layers/compaction.h"

namespace nereid::replay {
namespace {

void warm_up_here() {
  const auto machine = make_cpu_machine();
  warm_up(*machine);
}

// With one thread, so that a fork finds no thread to lose.
void warm() {
  at::set_num_threads(1);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames())
    if (const auto op = dispatcher.findSchema(name))
      (void)op->schema().arguments();  // parsed when first asked for
  warm_up_here();
}

// A trial allocates and frees the same few tensors again and again; given back to the system each time, their
// pages would be faulted in anew. What is at the end of the heap beyond this goes back.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
}

[[noreturn]] void work(const std::string& role, int socket, int threads,
                       const std::optional<sandbox::Jail>& jail) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (jail) {
    const auto entered = jail->enter({socket});
    if (!entered.ok()) _exit(kNoJail);
  }
  // Left to the end of the process: nothing here needs to be taken down.
  auto* pool = threads > 1 ? new ThreadPool(threads) : nullptr;
  auto* machine = make_cpu_machine(pool).release();
  serve(socket,
        [&] { return role == "reference" ? make_reference_role(*machine) : make_candidate_role(*machine); });
  _exit(0);
}

Json fork_worker(Message& request, const std::optional<sandbox::Jail>& jail) {
  if (request.descriptors.size() != 1) return {{"error", "fork: expected one socket"}};
  const auto role = request.document.at("fork").get<std::string>();
  const int threads = request.document.value("threads", 1);
  if (jail)
    if (const auto status = jail->before_fork(); !status.ok()) return {{"error", status.error().message}};
  const pid_t pid = fork();
  if (pid == 0) work(role, request.descriptors[0].get(), threads, jail);
  if (jail)
    if (const auto status = jail->after_fork(); !status.ok()) return {{"error", status.error().message}};
  if (pid < 0) return {{"error", "fork failed"}};
  return {{"pid", pid}};
}

Json end_worker(pid_t pid) {
  int status = 0;
  kill(pid, SIGKILL);  // does nothing to one that is already dead but not yet reaped
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return {{"error", "no such worker"}};
  return {{"status", status}};
}

// Of the command that has this server now, see ForkServer::leave.
Json take_errors(const Message& request) {
  if (request.descriptors.size() != 1) return {{"error", "errors: expected one descriptor"}};
  if (dup2(request.descriptors[0].get(), STDERR_FILENO) < 0) return {{"error", "errors: dup2 failed"}};
  return {{"done", true}};
}

Json answer_to(Message& request, const std::optional<sandbox::Jail>& jail) {
  if (request.document.contains("fork")) return fork_worker(request, jail);
  if (request.document.contains("errors")) return take_errors(request);
  return end_worker(request.document.at("end").get<pid_t>());
}

}  // namespace

int run_server(int control, const ServeOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  keep_freed_memory();
  warm();
  std::optional<sandbox::Jail> jail;
  if (options.jail) {
    sandbox::Policy policy{.shared_memory = true, .messages = true};
    policy.limits.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    policy.limits.file_bytes = policy.limits.memory_bytes;  // blocks are memory files
    policy.limits.cpu_seconds = 24 * 3600;                  // the judge has its own clock
    sandbox::leave_network();
    auto prepared = sandbox::Jail::prepare(policy);
    if (!prepared.ok()) {
      (void)send_message(control, {{"error", prepared.error().message}});
      return 3;
    }
    jail.emplace(std::move(prepared).value());
    if (!jail->isolation().enough() && !options.accept_weak_isolation) {
      const auto isolation = sandbox::describe(jail->isolation());
      (void)send_message(
          control,
          {{"error", "this kernel allows too few isolation layers for a hostile trace: " + isolation}});
      return 3;
    }
  }
  const std::string isolation = jail ? sandbox::describe(jail->isolation()) : "none: switched off";
  if (!send_message(control, hello(isolation)).ok()) return 0;
  std::optional<sandbox::Compaction> compaction;  // while idle
  int forks = 0;
  while (true) {
    pollfd waiting{control, POLLIN, 0};
    while (compaction && poll(&waiting, 1, 0) == 0 && compaction->step()) {
    }
    auto request = receive_message(control, Deadline::never());
    if (!request.ok()) return 0;
    Json answer;
    try {
      answer = answer_to(*request, jail);
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    if (!send_message(control, answer).ok()) return 0;
    if (request->document.contains("fork") && ++forks == sandbox::kForksBeforeCompaction)
      compaction.emplace(sandbox::file_pieces_used_by(warm_up_here));
  }
}

}  // namespace nereid::replay
