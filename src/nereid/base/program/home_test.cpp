#include "nereid/base/program/home.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace nereid {
namespace {

// What is kept for a user must not lie where everybody writes.
TEST(HomeFolder, IsKnownWithoutTheEnvironment) {
  const passwd* user = ::getpwuid(::getuid());
  if (user == nullptr) GTEST_SKIP() << "this user is in no database";
  const std::string home = user->pw_dir;
  const char* text = std::getenv("HOME");
  const std::string before = text != nullptr ? text : "";
  ::setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(home_folder(), "/somewhere");
  ::setenv("HOME", "", 1);
  EXPECT_EQ(home_folder(), home);
  ::unsetenv("HOME");
  EXPECT_EQ(home_folder(), home);
  if (text != nullptr) ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace nereid
