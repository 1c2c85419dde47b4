#include "nereid/sandbox/zygote/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::sandbox {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<pid_t> spawn(const SpawnSpec& spec) {
  // Copies above every target number, so that no target overwrites a source.
  std::vector<Fd> copies;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int last = 2;
  for (const auto& [ours, theirs] : spec.descriptors) last = std::max(last, theirs);
  for (int fd = 0; fd <= 2; ++fd) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  for (const auto& [ours, theirs] : spec.descriptors) {
    copies.emplace_back(::fcntl(ours, F_DUPFD_CLOEXEC, last + 1));
    if (!copies.back().valid()) {
      posix_spawn_file_actions_destroy(&actions);
      return our_error("copy of a descriptor for {}: {}", spec.words[0], strerror(errno));
    }
    posix_spawn_file_actions_adddup2(&actions, copies.back().get(), theirs);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, last + 1);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (spec.own_session) flags |= POSIX_SPAWN_SETSID;
  posix_spawnattr_setflags(&attributes, flags);

  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, spec.words[0].c_str(), &actions, &attributes,
                                   pointers(spec.words).data(), pointers(spec.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return our_error("cannot start {}: {}", spec.words[0], strerror(failed));
  return pid;
}

Result<std::string> run_program(SpawnSpec spec, Deadline deadline, size_t max_bytes) {
  int ends[2][2];
  for (auto& pair : ends)
    if (::pipe2(pair, O_CLOEXEC) != 0) return our_error("pipe: {}", strerror(errno));
  Fd reads[2] = {Fd(ends[0][0]), Fd(ends[1][0])};
  Fd writes[2] = {Fd(ends[0][1]), Fd(ends[1][1])};
  spec.descriptors.emplace_back(writes[0].get(), 1);
  spec.descriptors.emplace_back(writes[1].get(), 2);
  NEREID_TRY(const pid_t pid, spawn(spec));
  for (auto& end : writes) end.reset();
  std::string texts[2];
  bool in_time = true;
  while (in_time && (reads[0].valid() || reads[1].valid())) {
    pollfd all[3] = {{reads[0].get(), POLLIN, 0}, {reads[1].get(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const int ready = ::poll(all, 3, deadline.poll_milliseconds());
    if (interrupted()) break;
    in_time = ready > 0 || (ready < 0 && errno == EINTR);
    for (int i : {0, 1}) {
      if (ready <= 0 || all[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(all[i].fd, buffer, sizeof buffer);
      if (got <= 0)
        reads[i].reset();
      else
        texts[i].append(buffer, static_cast<size_t>(got));
      if (texts[i].size() > max_bytes) in_time = false;
    }
  }
  const bool stopped = reads[0].valid() || reads[1].valid();
  if (stopped) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (stopped && interrupted()) return Error{"interrupted", Blame::kInterrupted};
  if (!in_time) return our_error("{} took too long or said too much, and was stopped", spec.words[0]);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return our_error("{} failed with status {}: {}", spec.words[0], status, texts[1]);
  return texts[0];
}

std::vector<std::string> own_environment() {
  std::vector<std::string> list;
  const auto secret = [](std::string_view variable) {
    return variable.starts_with("PGPASSWORD=") || variable.starts_with("NEREID_STORE=postgres");
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!secret(*entry)) list.emplace_back(*entry);
  return list;
}

}  // namespace nereid::sandbox
