#include "nereid/base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

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

}  // namespace
}  // namespace nereid
