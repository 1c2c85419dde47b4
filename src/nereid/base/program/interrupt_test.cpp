#include "nereid/base/program/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "nereid/base/program/exit_on_interrupt.h"

namespace nereid {
namespace {

// The exit code of a process that watches and gets these signals at once (delivered by their numbers), then
// one after another: 7, and 8 where it noted nothing.
int exit_code_of(std::initializer_list<int> at_once, std::initializer_list<int> then = {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_for_interrupts();
    sigset_t all, before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before);
    for (const int signal : at_once) {
      if (signal == SIGUSR1)
        pass_on_interrupt(::getpid());
      else
        ::kill(::getpid(), signal);
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    for (const int signal : then) ::kill(::getpid(), signal);
    ::_exit(interrupted() ? 7 : 8);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Interrupt, TheSecondOneEndsTheProcess) {
  EXPECT_EQ(exit_code_of({}), 8);
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EQ(exit_code_of({signal}), 7);
    EXPECT_EQ(exit_code_of({signal}, {signal}), 130);
  }
}

// A scheduler signals launcher and ranks at once, and the launcher passes the signal on: that counts as one
// interrupt, in either order.
TEST(Interrupt, WhatIsPassedOnIsNoSecondOne) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EQ(exit_code_of({signal, SIGUSR1}), 7);
    EXPECT_EQ(exit_code_of({SIGUSR1}, {signal}), 7);
    EXPECT_EQ(exit_code_of({signal, SIGUSR1}, {signal}), 130);
  }
}

// Ends by the second signal (`seconds` < 0) or by itself, so many seconds after the first. The child is
// stopped, so that nothing but SIGKILL ends it.
int signal_that_ended_the_child(double seconds, bool killed_at_exit) {
  int pid_pipe[2];
  if (::pipe(pid_pipe) != 0) return -1;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t process = ::fork();
  if (process == 0) {
    watch_for_interrupts();
    const pid_t child = ::fork();
    if (child == 0) {
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, WUNTRACED);
    [[maybe_unused]] const ssize_t written = ::write(pid_pipe[1], &child, sizeof child);
    const KilledAtExit kept = killed_at_exit ? KilledAtExit(child) : KilledAtExit();
    if (seconds >= 0) end_soon_after_interrupt(seconds, "interrupted");
    ::raise(SIGINT);
    if (seconds < 0) ::raise(SIGINT);
    for (;;) ::pause();
  }
  pid_t child = 0;
  const ssize_t got = ::read(pid_pipe[0], &child, sizeof child);
  ::close(pid_pipe[0]), ::close(pid_pipe[1]);
  if (got != sizeof child || ::waitpid(process, nullptr, 0) != process) return -1;
  if (!killed_at_exit) ::kill(child, SIGCONT);  // and it ends by itself
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Interrupt, ChildrenThatAreStoppedEndWithTheProcess) {
  for (const double seconds : {-1.0, 0.05}) {
    EXPECT_EQ(signal_that_ended_the_child(seconds, true), SIGKILL);
    EXPECT_EQ(signal_that_ended_the_child(seconds, false), 0);
  }
}

// What is loaded in vain ends at the first one; what comes after it is noted as ever.
int exit_code_of_load(bool before, bool within) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_for_interrupts();
    if (before) ::raise(SIGINT);
    {
      const ExitOnInterrupt loads;
      if (within) pass_on_interrupt(::getpid());
    }
    ::raise(SIGTERM);
    ::_exit(interrupted() ? 7 : 8);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Interrupt, OneEndsALoadAtOnce) {
  EXPECT_EQ(exit_code_of_load(false, false), 7);
  EXPECT_EQ(exit_code_of_load(true, false), 130);
  EXPECT_EQ(exit_code_of_load(false, true), 130);
}

}  // namespace
}  // namespace nereid
