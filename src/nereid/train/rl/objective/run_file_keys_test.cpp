#include "nereid/train/rl/objective/run_file_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nereid::train {
namespace {

RunFileKey key_at(const std::string& path) {
  const auto keys = run_file_keys();
  const auto found = std::ranges::find(keys, path, &RunFileKey::path);
  return found == keys.end() ? RunFileKey{} : *found;
}

TEST(RunFileKeys, EachHasADescription) {
  for (const auto& key : run_file_keys())
    EXPECT_NE(key.meaning, "") << key.path << " has no line in kDescriptions (run_file_keys.cpp)";
}

TEST(RunFileKeys, DefaultsConditionsAndRunsComeFromTheReaders) {
  EXPECT_EQ(key_at("optimizer.clip_norm").initial, "1");
  EXPECT_EQ(key_at("optimizer.muon_momentum").condition, "optimizer.kind = \"muon\"");
  EXPECT_EQ(key_at("rl.clip").condition, "rl.objective = \"grpo\" or \"hrd\" or \"best\"");
  EXPECT_EQ(key_at("rl.tau").condition, "rl.objective = \"drpo\"");
  EXPECT_EQ(key_at("curriculum.promote_at").condition, "curriculum.kind = \"levels\"");
  EXPECT_EQ(key_at("data.train").run, "sft");
  EXPECT_EQ(key_at("rl.samples").run, "rl");
  EXPECT_EQ(key_at("schedule.steps").run, "both");
  EXPECT_EQ(key_at("rl.tasks").initial, "");  // required
  EXPECT_EQ(key_at("machine.precision").initial, "\"bfloat16\"");
}

}  // namespace
}  // namespace nereid::train
