// The jail of one process: prepared once by a trusted parent, entered by each forked child before it touches
// anything hostile. There is no way out; what the child still holds afterwards is the descriptors it was
// given to keep.
//
//   parent:  auto jail = Jail::prepare(policy);
//            jail.before_fork(); pid = fork(); if (pid != 0) jail.after_fork();
//   child:   jail.enter({answer_pipe});   // or exit: a child that could not enter must not go on
//
// A parent that has the right to (the zygote in its outer jail, root) gives each child a pid namespace of its
// own, so that killing the child kills whatever it started, and, in an outer jail (outer.h), a private
// scratch folder. Under another parent it gets the layers that need no privilege: Landlock, seccomp, limits.
// `isolation()` says which stand.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

// Puts this process into a network of its own, an empty one, where its children are then, too: a jail that
// makes one for each child spends a millisecond on it. To be called before Jail::prepare, with one thread.
// Where the kernel does not allow it, nothing happens, and each child's jail tries again.
void leave_network();

class Jail {
 public:
  // Compiles the filter and finds out, with a forked trial child that exits at once, which layers work here.
  // Call it while the process has one thread.
  static Result<Jail> prepare(Policy policy);

  const Isolation& isolation() const { return isolation_; }

  // Around fork(), in the parent: the child forked in between is number 1 of a new pid namespace, where that
  // is possible. Both do nothing otherwise.
  Status before_fork() const;
  Status after_fork() const;

  // In the child, which has one thread: descriptors other than `keep` are closed (0, 1, 2 are /dev/null), the
  // working directory is the scratch folder, every wall is up. The child dies with its parent.
  // `folder`: of this child alone, on disk, for a policy that needs one where there is no private one.
  Status enter(const std::vector<int>& keep, const std::string& folder = "") const;

  // `enter` in two steps, for a process that first has to talk to a device's driver, which starts threads:
  // `begin` is for one thread and those it starts afterwards (namespaces, privileges, files), `finish` takes
  // all threads along (limits, system calls). Nothing hostile may be read before the second. Where `listener`
  // is given, refused system calls are reported to it, as load_seccomp_filter_with_listener says.
  Status begin(const std::vector<int>& keep, const std::string& folder = "") const;
  Status finish(int* listener = nullptr) const;

 private:
  Jail() = default;
  Status probe();
  void probe_namespaces(const Isolation& outer);
  bool probe_root();
  Status enter_namespaces(const std::string& folder) const;
  Status unshare_root() const;
  bool scratch_on_disk() const {
    return policy_.needs_scratch && !isolation_.scratch && isolation_.landlock > 0;
  }

  Policy policy_;
  std::vector<sock_filter> filter_;
  Isolation isolation_;
  bool private_ipc_ = false, private_network_ = false, private_users_ = false, private_root_ = false;
  int parent_ = 0;
  int64_t address_space_ = 0;  // of the parent when it prepared
};

}  // namespace nereid::sandbox
