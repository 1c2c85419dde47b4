#include "nereid/lm/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace nereid::lm {
namespace {

using testing::ElementsAre;

TEST(NamesOfModel, AreItsFoldersHoweverThatIsWritten) {
  EXPECT_THAT(names_of_model("/models/Qwen3-8B", ""), ElementsAre("Qwen3-8B", "/models/Qwen3-8B"));
  EXPECT_THAT(names_of_model("/models/Qwen3-8B/", ""),
              ElementsAre("Qwen3-8B", "/models/Qwen3-8B/", "/models/Qwen3-8B"));
  EXPECT_THAT(names_of_model("/models/a/../small", ""),
              ElementsAre("small", "/models/a/../small", "/models/small"));
  const auto here = std::filesystem::current_path();
  EXPECT_THAT(names_of_model("runs/step-7", ""),
              ElementsAre("step-7", "runs/step-7", (here / "runs/step-7").string()));
  EXPECT_THAT(names_of_model(".", ""), ElementsAre(here.filename().string(), ".", here.string()));
}

TEST(NamesOfModel, BeginWithTheOneThatIsGiven) {
  EXPECT_THAT(names_of_model("/models/small", "gpt"), ElementsAre("gpt", "small", "/models/small"));
  EXPECT_THAT(names_of_model("/models/small", "small"), ElementsAre("small", "/models/small"));
}

}  // namespace
}  // namespace nereid::lm
