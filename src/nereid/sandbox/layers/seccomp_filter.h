// The list of system calls that a jailed process may make, compiled once and loaded in each child.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "nereid/base/result.h"
#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

struct SeccompOptions {
  bool may_run_programs = false;  // fork and execve
  bool own_pid_namespace =
      false;                   // the process is number 1 of its own, so that signals reach no other process
  bool writes_files = false;   // files may be opened for writing at all
  bool shared_memory = false;  // memfd_create
  bool messages = false;       // sendmsg, recvmsg
  bool devices = false;        // a GPU's: opened for writing, controlled; what its driver asks of memory
};

// A BPF program. What is not on the list fails: with ENOSYS, so that libraries take their older way, or with
// EPERM where a person should read "not permitted".
Result<std::vector<sock_filter>> compile_seccomp_filter(const SeccompOptions& options);

// Loads it for every thread of this process and all their later children. Needs no_new_privs.
Status load_seccomp_filter(const std::vector<sock_filter>& program);

// The same, but each refused call is reported on the descriptor that this returns
// (seccomp_unotify(2)), whose holder must answer: refusals.h does. With `opens` every opened file is
// reported, too. For finding out what a library needs.
Result<int> load_seccomp_filter_with_listener(std::vector<sock_filter> program, bool opens = false);
// How a refused call fails: EPERM or ENOSYS, where its number alone decides.
int refused_with(int system_call);

}  // namespace nereid::sandbox
