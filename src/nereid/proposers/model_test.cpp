#include "nereid/proposers/model.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "nereid/base/file.h"

namespace nereid::proposers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A process that does what a shell's script says in place of nereid-lm.
std::unique_ptr<ModelProcess> scripted(const std::string& script) {
  auto process = ModelProcess::start({"/bin/sh", "-c", script});
  EXPECT_TRUE(process.ok());
  return *std::move(process);
}

const Deadline kSoon = Deadline::after(60);
const Question kQuestion{.messages = {{"user", "a 'task'\n"}}, .samples = {0, 3}, .seed = 7};

TEST(ModelProcess, SamplesComeAsTheyAreDone) {
  const auto process = scripted(R"(echo '{"ready": true}'; read -r question; echo "$question" >&2
    echo '{"id": 0, "sample": 3, "text": "three", "finish": "length", "tokens": 9, "prompt_tokens": 5,)"
                                R"( "seconds": 0.5}'
    echo '{"id": 7, "sample": 1, "text": "of no request", "finish": "end", "tokens": 1, "prompt_tokens":)"
                                R"( 1, "seconds": 1}'
    echo '{"id": 0, "sample": 0, "text": "null", "finish": "end", "tokens": 4, "prompt_tokens": 5,)"
                                R"( "seconds": 0.75}'
    echo '{"id": 0, "over": true}'; read -r question; echo '{"id": 1, "refused": "too long"}'; read -r)"
                                R"( question)");
  const auto answers = process->ask(kQuestion);
  const auto first = answers->next(kSoon), second = answers->next(kSoon);
  ASSERT_TRUE(first.ok() && *first && second.ok() && *second);
  EXPECT_EQ((*first)->sample, 3);
  EXPECT_EQ((*first)->text, "three");
  EXPECT_FALSE((*first)->whole);
  EXPECT_EQ((*first)->tokens, 9);
  EXPECT_TRUE((*second)->whole);
  EXPECT_EQ((*second)->seconds, 0.75);
  EXPECT_FALSE(*answers->next(kSoon));
  const auto refused = process->ask(kQuestion);
  const auto why = refused->next(kSoon);
  ASSERT_TRUE(why.ok() && *why);
  EXPECT_EQ((*why)->refused, "too long");
  EXPECT_FALSE(*refused->next(kSoon));
}

// Progress is reported during generation, and not without a waiter.
TEST(ModelProcess, ReportsItsPace) {
  const auto process = scripted(
      R"(read -r question; echo '{"written": 90, "seconds": 0.5}'; echo '{"written": 30, "seconds": 0.25}'
    echo '{"id": 0, "sample": 0, "text": "x", "finish": "end", "tokens": 120, "prompt_tokens": 5,)"
      R"( "seconds": 0.75}'
    read -r question; echo '{"id": 0, "over": true}'; read -r question)");
  EXPECT_EQ(process->pace().a_second, 0);
  const auto answers = process->ask(kQuestion);
  ASSERT_TRUE(*answers->next(kSoon));  // what came before it was taken
  EXPECT_EQ(process->pace().tokens, 120);
  EXPECT_EQ(process->pace().a_second, 120);
  const auto others = process->ask(kQuestion);
  ASSERT_FALSE(*answers->next(kSoon));
  EXPECT_EQ(process->pace().tokens, 120);
}

TEST(ModelProcess, SaysHowSamplesAreDrawn) {
  const auto folder = TemporaryFolder::create();
  const auto heard = folder->path() / "heard";
  const auto process = scripted("read -r question; echo \"$question\" > " + heard.string() +
                                R"(; echo '{"id": 0, "over": true}'; read -r question)");
  Question hot = kQuestion;
  hot.temperature = 1.5, hot.top_p = 0.98, hot.prefills = {"<think>#1"};
  ASSERT_TRUE(process->ask(hot)->next(kSoon).ok());
  const auto line = read_file(heard);
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(*line, HasSubstr("\"temperature\":1.5,\"top_p\":0.98"));
  EXPECT_THAT(*line, HasSubstr(R"("prefill":["<think>#1"])"));
}

// While one sample is judged others are written: more than a pipe holds, without a waiter.
TEST(ModelProcess, WritesOnWhileASampleIsJudged) {
  const auto folder = TemporaryFolder::create();
  const auto written = folder->path() / "written";
  const auto process = scripted(R"(read -r question
    echo '{"id": 0, "sample": 3, "text": "three", "finish": "end", "tokens": 9, "prompt_tokens": 5,)"
                                R"( "seconds": 0.5}'
    long=$(head -c 400000 /dev/zero | tr '\0' x)
    echo '{"id": 0, "sample": 0, "text": "'$long'", "finish": "end", "tokens": 9, "prompt_tokens": 5,)"
                                R"( "seconds": 0.5}'
    echo '{"id": 0, "over": true}'; echo yes > )" +
                                written.string() + "; read -r question");
  const auto answers = process->ask(kQuestion);
  const auto first = answers->next(kSoon);
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_EQ((*first)->sample, 3);
  for (const auto end = Deadline::after(200); !end.passed() && !std::filesystem::exists(written);)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(std::filesystem::exists(written));
  const auto second = answers->next(kSoon);
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_EQ((*second)->text.size(), 400000U);
}

TEST(ModelProcess, WhatIsNoLongerWantedIsCancelled) {
  const auto folder = TemporaryFolder::create();
  const auto heard = folder->path() / "heard";
  const auto process = scripted("exec cat > " + heard.string());
  {
    const auto answers = process->ask(kQuestion);
    const auto late = answers->next(Deadline::after(0.05));
    ASSERT_FALSE(late.ok());
    EXPECT_THAT(late.error().message, HasSubstr("time that was left"));
  }
  std::string text;
  for (const auto end = Deadline::after(200); !end.passed() && text.find("cancel") == text.npos;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (auto read = read_file(heard); read.ok()) text = *read;
  }
  EXPECT_EQ(
      text,
      R"({"enough":0,"id":0,"messages":[{"content":"a 'task'\n","role":"user"}],"samples":[0,3],"seed":7})"
      "\n{\"cancel\":0}\n");
}

TEST(ModelProcess, AnEndIsReportedWithTheLastWords) {
  const auto ask = [](const std::string& script) {
    const auto process = scripted(script);
    const auto answers = process->ask(kQuestion), others = process->ask(kQuestion);
    const auto next = answers->next(kSoon);
    EXPECT_FALSE(others->next(kSoon).ok());
    EXPECT_FALSE(process->ask(kQuestion)->next(kSoon).ok());  // and later calls
    EXPECT_FALSE(next.ok());
    return next.ok() ? Error{} : next.error();
  };
  const Error killed = ask("read -r question; echo out of memory >&2; kill -9 $$");
  EXPECT_EQ(killed.blame, Blame::kOurs);
  EXPECT_THAT(killed.message, HasSubstr("was killed by signal 9 (Killed): out of memory"));
  const Error refused = ask("echo 'nereid: m/config.json: No such file' >&2; exit 2");
  EXPECT_EQ(refused.blame, Blame::kInput);
  EXPECT_THAT(refused.message, HasSubstr("ended with exit code 2: nereid: m/config.json: No such file"));
  EXPECT_THAT(ask("read -r question; echo '{]'; sleep 100").message, HasSubstr("what nereid-lm says"));
  EXPECT_THAT(ask("read -r question; echo '{\"id\": 0, \"sample\": -1}'; sleep 100").message,
              HasSubstr("line.sample: expected an integer from 0"));
}

// It gets "go" when it has a turn, and the turn is over when it says that it holds.
TEST(ModelProcess, ComputesInTurns) {
  std::atomic<int> turns = 0, inside = 0;
  const auto script = R"(read -r one; read -r other  # the question and the turn, which another thread gives
    [ "$one" = '{"go":true}' ] || [ "$other" = '{"go":true}' ] || exit 5
    read -r go; [ "$go" = '{"go":false}' ] || exit 6; echo '{"holds": true}'; read -r go; [ "$go" =)"
                      R"( '{"go":true}' ] || exit 7
    echo '{"id": 0, "sample": 0, "text": "x", "finish": "end", "tokens": 9, "prompt_tokens": 5,)"
                      R"( "seconds": 0.5}'; echo '{"id": 0, "over": true}'
    read -r go; [ "$go" = '{"go":false}' ] || exit 8; echo '{"holds": true}'; read -r question)";
  auto process = *ModelProcess::start({"/bin/sh", "-c", script}, [&] {
    ++turns, ++inside;
    return std::shared_ptr<void>(&inside, [&](void*) { --inside; });
  });
  EXPECT_EQ(turns, 0);
  const auto answers = process->ask(kQuestion);
  const auto one = answers->next(kSoon);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ((*one)->text, "x");
  EXPECT_EQ(turns, 2);
  for (const auto end = Deadline::after(200); !end.passed() && inside > 0;)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(inside, 0);
}

TEST(ModelProcess, EndsWithUs) {
  pid_t pid = 0;
  {
    const auto process = scripted("sleep 100");
    pid = process->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(ModelProposer, AThoughtIsThePlan) {
  EXPECT_EQ(thought_in("<think>\nOne kernel.\n</think>\n\n```python\nx\n```"), "One kernel.");
  EXPECT_EQ(thought_in("One kernel.</think>code"), "One kernel.");
  EXPECT_EQ(thought_in("<think>without an end"), "");
  EXPECT_EQ(thought_in("```python\nx\n```"), "");
}

TEST(ModelProposer, ACheckpointIsKnownByWhatItHolds) {
  const auto folder = TemporaryFolder::create();
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder->path() / name, text).ok());
  };
  write("config.json", "{}");
  write("model.safetensors", "weights");
  const auto before = *checkpoint_hash(folder->path());
  write("README.md", "says nothing about answers");
  EXPECT_EQ(*checkpoint_hash(folder->path()), before);
  write("model.safetensors", "Weights");
  EXPECT_NE(*checkpoint_hash(folder->path()), before);
  EXPECT_FALSE(checkpoint_hash(folder->path() / "nowhere").ok());
  const auto missing = ModelProposer::start({}, {.folder = folder->path()});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().blame, Blame::kInput);
  EXPECT_THAT(missing.error().message, HasSubstr("tokenizer.json is not there"));
}

}  // namespace
}  // namespace nereid::proposers
