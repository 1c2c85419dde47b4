#include "nereid/lm/chat/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "nereid/base/file.h"

namespace nereid::lm {
namespace {

using testing::HasSubstr;

TEST(Prompts, AreFilled) {
  EXPECT_EQ(*fill("a {{x}} b {{y}}{{x}}", {{"x", "1"}, {"y", "{{x}}"}}, "t"), "a 1 b {{x}}1");
  EXPECT_EQ(*fill("no {{ end", {}, "t"), "no {{ end");
  EXPECT_THAT(fill("a\nb {{z}}", {}, "t.md").error().message,
              HasSubstr("t.md:2: unknown placeholder '{{z}}'"));
}

TEST(Prompts, AFolderOfAModelMayHaveItsOwn) {
  const std::filesystem::path usual = std::filesystem::path(NEREID_SOURCE_DIR) / "python/nereid/prompts";
  char name[] = "/tmp/nereid_prompts_XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name);
  EXPECT_EQ(prompts_of(folder, usual), usual);
  const auto asked = Prompts::load(usual)->ask("m.py", "class Model: pass");
  ASSERT_TRUE(asked.ok());
  ASSERT_EQ(asked->size(), 2u);
  EXPECT_EQ((*asked)[0].role, "system");
  EXPECT_THAT((*asked)[1].content, HasSubstr("class Model: pass"));

  std::filesystem::create_directory(folder / "prompts");
  for (const auto& [file, text] : {std::pair("system.md", ""), {"task.md", "{{source}}"}, {"repair.md", ""}})
    ASSERT_TRUE(write_file_atomically(folder / "prompts" / file, text).ok());
  ASSERT_EQ(prompts_of(folder, usual), folder / "prompts");
  const auto briefly = Prompts::load(folder / "prompts")->ask("m.py", "class Model: pass");
  ASSERT_TRUE(briefly.ok());
  ASSERT_EQ(briefly->size(), 1u);
  EXPECT_EQ((*briefly)[0].role, "user");
  EXPECT_EQ((*briefly)[0].content, "class Model: pass");

  EXPECT_TRUE(Prompts::load(folder / "prompts")->prefills_for("#1 relu(x)\n")->empty());
  const auto write = [&](const char* file, const char* text) {
    ASSERT_TRUE(write_file_atomically(folder / "prompts" / file, text).ok());
  };
  write("prefill.md", "<think>\n{{steps}}\n");
  write("prefill-1.md", "<think>\n{{steps}}\nFused:\n");
  write("prefill-3.md", "not behind another");
  const auto begun = Prompts::load(folder / "prompts");
  EXPECT_THAT(*begun->prefills_for("#1 relu(x)\n"),
              testing::ElementsAre("<think>\n#1 relu(x)", "<think>\n#1 relu(x)\nFused:"));
  EXPECT_EQ(*begun->prefill_for("#1 relu(x)\n"), "<think>\n#1 relu(x)");
  EXPECT_EQ(*begun->prefill_for(""), "");
  write("prefill-1.md", "{{calls}}");
  EXPECT_THAT(*Prompts::load(folder / "prompts")
                   ->prefills_for("given x [2, 3], w [3, 4, 2]\n#1 convolution(x, w, transposed) [2, 4]\n"
                                  "#2 sum(#1, [1], keepdim) [2, 1]\nreturns #2\n"),
              testing::ElementsAre(HasSubstr("given x"),
                                   "#1 convolution(x, w) [2, 4]\n#2 sum(#1, [1]) [2, 1]\nreturns #2"));
  const std::string hash = begun->hash;
  write("prefill-1.md", "{{what}}");
  EXPECT_THAT(Prompts::load(folder / "prompts").error().message,
              HasSubstr("prefill-1.md:1: unknown placeholder '{{what}}'"));
  write("prefill-1.md", "Simply");
  EXPECT_NE(Prompts::load(folder / "prompts")->hash, hash);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nereid::lm
