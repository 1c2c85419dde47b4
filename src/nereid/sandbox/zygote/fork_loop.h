// The part of a zygote that goes on living once it is warm: it takes orders, forks and reaps. In C++ and
// without the heap, because what a zygote writes it shares with its children: each page is copied, and the
// 2 MiB page around it (compaction.h) falls apart into 512 small ones, which every later fork and every
// child's end pay for again. A loop in Python wrote some 200 pages a fork.
//
// The judge's packets are Orders, the loop's are ChildExits, as bytes: both ends are built together.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <string>

#include "nereid/sandbox/jail/jail.h"
#include "nereid/sandbox/layers/compaction.h"

namespace nereid::sandbox {

struct Order {
  // kRun comes with two descriptors: the request, and the pipe for the answer. kStatus is answered with a
  // StatusReply.
  enum What : uint64_t { kRun = 1, kKill = 2, kStatus = 3 };
  uint64_t what = 0;
  uint64_t child = 0;  // the judge's number for it
};

struct ChildExit {
  uint64_t child = 0;
  int32_t status = 0;   // as waitpid gives it
  int32_t entered = 0;  // it was in the jail; else `why` says why not
  double cpu = 0;       // seconds of processor time
  char why[512] = {};
};

// When a child came into its jail, and what it had had of the machine before: the way in is our work, not a
// candidate's.
struct Entry {
  double at = 0;         // CLOCK_MONOTONIC, in seconds
  double processor = 0;  // seconds that it had computed
  double waited = 0;     // seconds that it had waited for a core
};

// Comes with a pidfd of the child, or without where the child is gone.
struct StatusReply {
  uint64_t child = 0;
  uint64_t entered = 0;  // `entry` holds
  Entry entry;
};

// To be had on the stack, which no huge page holds.
class ForkLoop {
 public:
  static constexpr size_t kMaxChildren = 4096;  // at once
  // What a forked child has: descriptors, everything else is closed.
  struct Child {
    int request = -1, answer = -1;
  };
  // An interpreter's callbacks around a fork; all or none are there.
  struct Interpreter {
    void (*before)() = nullptr;  // PyOS_BeforeFork, _AfterFork_Parent, _AfterFork_Child
    void (*after_in_parent)() = nullptr;
    void (*after_in_child)() = nullptr;
  };
  // `folder`: where children get scratch folders of their own, for a policy that needs them; or empty.
  ForkLoop(const Jail& jail, Compaction& compaction, int control, std::string folder,
           Interpreter interpreter);

  // Returns true in every child, with the jail around it, and false in the zygote when the judge has closed
  // the control socket. An error: no child can be forked.
  //
  // An interpreter of one thread needs no callbacks: that thread goes on in the child under the
  // same name and holds what it held. What it would do (new locks for every log handler, a new random seed)
  // costs a millisecond. One of more threads must: in the child it would hand its lock to a thread that is
  // not there.
  Result<bool> run(Child& child);

 private:
  struct Running {
    pid_t pid = 0;
    int said = -1;  // an Entry, or why there is no jail around it
    uint64_t number = 0;
    int core = -1;  // that it is held to; -1: to none
    bool entered = false;
    Entry entry;
  };

  bool wait_for_order();
  Result<bool> fork_child(uint64_t number, Child& child);
  void run_child(uint64_t number, const Child& child, int says, int core);
  void kill_child(uint64_t number) const;
  void reply_status(uint64_t number);
  int least_used_core();
  void reap_children();
  std::string folder_of(uint64_t number) const;

  const Jail& jail_;
  Compaction& compaction_;
  const int control_;
  const std::string folder_;
  const Interpreter interpreter_;
  int forks_ = 0;
  bool compact_ = false;  // there is more to compact, after kForksBeforeCompaction forks
  cpu_set_t cores_;       // that this process may use: each child is held to one of them
  int last_core_ = 0;     // that a child got
  std::array<Running, kMaxChildren> children_;  // the first `count_`
  size_t count_ = 0;
};

}  // namespace nereid::sandbox
