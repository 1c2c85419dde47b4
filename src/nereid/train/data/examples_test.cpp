#include "nereid/train/data/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::train {
namespace {

ExampleSettings settings(const std::string& split = "") {
  return {.ask = [](const std::string& source) -> Result<std::vector<lm::ChatMessage>> {
            return std::vector<lm::ChatMessage>{{.role = "system", .content = "Be fast."},
                                                {.role = "user", .content = source}};
          },
          .split = split};
}

Result<std::variant<Example, LeftOut>> of(const Json& line, const std::string& split = "") {
  return example_of(line, "x.jsonl:3", settings(split));
}
Example example(const Json& line) { return std::get<Example>(of(line).value()); }
std::string left_out(const Json& line, const std::string& split = "") {
  return std::get<LeftOut>(of(line, split).value()).why;
}

const Json kPair = {{"task", "class Model: ..."},
                    {"plan", "One kernel.\n"},
                    {"code", "class ModelNew: ...\n\n"},
                    {"split", "train"},
                    {"verdict", {{"verdict", "Verified"}}}};

TEST(Examples, APairIsAThoughtAndABlockOfCode) {
  const Example pair = example(kPair);
  EXPECT_EQ(pair.prompt,
            "<|im_start|>system\nBe fast.<|im_end|>\n<|im_start|>user\nclass Model: "
            "...<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(pair.answer, "<think>\nOne kernel.\n</think>\n\n```python\nclass ModelNew: ...\n```<|im_end|>");
}

TEST(Examples, AConversationsLastMessageIsTheAnswer) {
  const Json line = {{"messages",
                      {{{"role", "user"}, {"content", "1+1?"}},
                       {{"role", "assistant"}, {"content", "<think>\nhm\n</think>\n\n2"}},
                       {{"role", "user"}, {"content", "And 2+2?"}},
                       {{"role", "assistant"}, {"content", "4"}, {"reasoning_content", "twice"}}}}};
  const Example chat = example(line);
  EXPECT_EQ(chat.prompt,
            "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n<|im_start|>user\nAnd "
            "2+2?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(chat.answer, "<think>\ntwice\n</think>\n\n4<|im_end|>");
}

TEST(Examples, WithoutPlansAThoughtIsEmpty) {
  const auto without = [](const Json& line) {
    ExampleSettings no_plans = settings();
    no_plans.without_plans = true;
    return std::get<Example>(example_of(line, "x.jsonl:3", no_plans).value()).answer;
  };
  EXPECT_EQ(without(kPair), "<think>\n\n</think>\n\n```python\nclass ModelNew: ...\n```<|im_end|>");
  EXPECT_EQ(without({{"messages",
                      {{{"role", "user"}, {"content", "2+2?"}},
                       {{"role", "assistant"}, {"content", "4"}, {"reasoning_content", "twice"}}}}}),
            "<think>\n\n</think>\n\n4<|im_end|>");
}

TEST(Examples, APromptAndAnAnswerAreLeftAsTheyAre) {
  const Example plain = example({{"prompt", "a<|im_end|>"}, {"answer", " b"}});
  EXPECT_EQ(plain.prompt, "a<|im_end|>");
  EXPECT_EQ(plain.answer, " b");
}

TEST(Examples, SomeLinesAreLeftOut) {
  Json line = kPair;
  line["verdict"]["verdict"] = "Mismatch";
  EXPECT_EQ(left_out(line), "is not Verified");
  EXPECT_EQ(left_out(kPair, "held-out"), "is of another split");
  line = kPair;
  line["code"] = "x = '''```'''";
  EXPECT_EQ(left_out(line), "its code holds a fence");
  line = kPair;
  line["task"] = "x = '<|im_end|>'";
  EXPECT_EQ(left_out(line), "holds marks of a conversation");
}

TEST(Examples, ErrorsNameTheLineAndTheField) {
  const auto error = [](const Json& line, const std::string& split = "") {
    return of(line, split).error().message;
  };
  EXPECT_THAT(
      error({{"text", "x"}}),
      testing::StartsWith("x.jsonl:3: expected a `task`, `messages` or a `prompt`, got an object with text"));
  EXPECT_THAT(error({{"task", "x"}, {"plan", "y"}}), testing::HasSubstr("code"));
  EXPECT_THAT(error({{"task", 3}}), testing::StartsWith("x.jsonl:3.task: expected"));
  EXPECT_THAT(error({{"messages", {{{"role", "user"}, {"content", "x"}}}}}),
              testing::StartsWith("x.jsonl:3.messages: expected messages of which the last"));
  EXPECT_THAT(error({{"prompt", "x"}, {"answer", "y"}}, "train"), testing::HasSubstr("split"));
  EXPECT_THAT(error(Json::array()), testing::StartsWith("x.jsonl:3: expected an object"));
}

}  // namespace
}  // namespace nereid::train
