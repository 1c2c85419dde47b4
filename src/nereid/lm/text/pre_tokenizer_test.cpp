#include "nereid/lm/text/pre_tokenizer.h"

#include <gtest/gtest.h>

namespace nereid::lm {
namespace {

using Words = std::vector<std::string>;

SplitStep step(std::string_view pattern, SplitBehavior behavior, bool invert = false) {
  return {*Pattern::compile(*to_pcre2(pattern)), behavior, invert};
}

Words words(const PreTokenizer& cuts, std::string_view text) {
  Words found;
  PreTokenizerRun run(cuts);
  EXPECT_TRUE(run.words(text, [&](std::string_view word) { found.emplace_back(word); }).ok());
  return found;
}

Words cut(SplitBehavior behavior, std::string_view text, bool invert = false) {
  PreTokenizer cuts;
  cuts.steps.push_back(step("-", behavior, invert));
  return words(cuts, text);
}

// The examples of the documentation of `tokenizers`, and their ends.
TEST(PreTokenizer, Behaviors) {
  EXPECT_EQ(cut(SplitBehavior::kRemoved, "the-final--countdown"), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(cut(SplitBehavior::kIsolated, "the-final--countdown"),
            (Words{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(cut(SplitBehavior::kMergedWithPrevious, "the-final--countdown"),
            (Words{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(cut(SplitBehavior::kMergedWithNext, "the-final--countdown"),
            (Words{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(cut(SplitBehavior::kContiguous, "the-final--countdown"),
            (Words{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(cut(SplitBehavior::kMergedWithPrevious, "-a-"), (Words{"-", "a-"}));
  EXPECT_EQ(cut(SplitBehavior::kMergedWithNext, "-a-"), (Words{"-a", "-"}));
  EXPECT_EQ(cut(SplitBehavior::kRemoved, "--"), Words{});
  EXPECT_EQ(cut(SplitBehavior::kRemoved, ""), Words{});
}

TEST(PreTokenizer, InvertedTheRestIsMeant) {
  EXPECT_EQ(cut(SplitBehavior::kRemoved, "a-b", true), Words{"-"});
  EXPECT_EQ(cut(SplitBehavior::kMergedWithPrevious, "a-b", true), (Words{"a", "-b"}));
}

TEST(PreTokenizer, StepsFollowEachOtherThenBytes) {
  PreTokenizer cuts;
  cuts.steps.push_back(step("\\d", SplitBehavior::kIsolated));
  cuts.steps.push_back(step("x", SplitBehavior::kRemoved));
  EXPECT_EQ(words(cuts, "ax1xb"), (Words{"a", "1", "b"}));
  cuts.add_prefix_space = true;
  EXPECT_EQ(words(cuts, "ax1 b"), (Words{" a", " 1", " b"}));
  cuts.byte_level_pattern.emplace(*Pattern::compile(*to_pcre2(kGpt2Pattern)));
  EXPECT_EQ(words(cuts, "a!x1 b's"), (Words{" a", "!", " 1", " b", "'s"}));
}

}  // namespace
}  // namespace nereid::lm
