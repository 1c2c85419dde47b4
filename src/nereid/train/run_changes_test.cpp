#include "nereid/train/run_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::train {
namespace {

using testing::ElementsAre;

std::vector<KeyChange> changes(std::string_view before, std::string_view after) {
  return run_file_changes(before, "a.toml", after, "b.toml").value();
}

TEST(RunChangesTest, CommentsOrderAndSpellingsAreNone) {
  EXPECT_TRUE(
      changes("seed = 1\n[rl]\na = 0.0003 # why\nb = ['x']\n", "seed=1\n[rl]\nb = [\"x\"]\na = 3e-4\n")
          .empty());
  EXPECT_TRUE(changes("", "# nothing\n").empty());
}

TEST(RunChangesTest, EachKeyHasBothValues) {
  EXPECT_THAT(changes("seed = 1\n[rl]\nsamples = 8\ntasks = ['a']\n[data]\nx = true\n",
                      "seed = 1\n[rl]\nsamples = 16\ntasks = ['a', 'b']\nturns = 2\n"),
              ElementsAre(KeyChange{"data.x", "true", ""}, KeyChange{"rl.samples", "8", "16"},
                          KeyChange{"rl.tasks", "[ 'a' ]", "[ 'a', 'b' ]"}, KeyChange{"rl.turns", "", "2"}));
  EXPECT_EQ(to_string(KeyChange{"rl.turns", "", "2"}), "rl.turns: absent, now 2");
  EXPECT_EQ(to_string(KeyChange{"rl.samples", "8", "16"}), "rl.samples: 8, now 16");
}

TEST(RunChangesTest, WhatIsNoTomlHasItsPlace) {
  const auto found = run_file_changes("a = 1\n", "a.toml", "a = 1\nb = = 2\n", "b.toml");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().blame, Blame::kInput);
  EXPECT_THAT(found.error().message, testing::StartsWith("b.toml:2:"));
}

}  // namespace
}  // namespace nereid::train
