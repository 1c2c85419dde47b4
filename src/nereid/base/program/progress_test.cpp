#include "nereid/base/program/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "nereid/base/file.h"

namespace nereid {
namespace {

// What stderr shows while `f` runs, a terminal in its place.
template <typename F>
std::string on_terminal(const F& f) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  EXPECT_TRUE(terminal.valid() && ::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0);
  const Fd shown(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY)), before(::dup(STDERR_FILENO));
  ::dup2(shown.get(), STDERR_FILENO);
  f();
  ::dup2(before.get(), STDERR_FILENO);
  ::fcntl(terminal.get(), F_SETFL, O_NONBLOCK);
  std::string all;
  char bytes[4096];
  for (ssize_t got; (got = ::read(terminal.get(), bytes, sizeof bytes)) > 0;)
    all.append(bytes, static_cast<size_t>(got));
  return all;
}

TEST(Progress, IsDrawnWithoutANote) {
  const std::string seen = on_terminal([] {
    const Progress unknown("train x"), known("eval", 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(3400));
  });
  EXPECT_THAT(seen, testing::HasSubstr("train x 2 s"));
  EXPECT_THAT(seen, testing::HasSubstr("train x 3 s"));
  EXPECT_THAT(seen, testing::HasSubstr("eval 0/4, 2 s"));
}

TEST(Progress, LeavesNothingBehindAndSaysNothingAtFirst) {
  EXPECT_EQ(on_terminal([] { Progress("x").say("y"); }), "");
}

}  // namespace
}  // namespace nereid
