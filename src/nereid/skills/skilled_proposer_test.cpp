#include "nereid/skills/skilled_proposer.h"

#include <gmock/gmock.h>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/proposers/model.h"
#include "nereid/skills/admission.h"
#include "nereid/skills/learn.h"
#include "tests/support/trace_sketch.h"

namespace nereid::skills {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// A model that answers with what it was given, and chooses as it is set to.
class Echo : public proposers::Proposer {
 public:
  std::string_view name() const override { return "echo"; }
  bool samples() const override { return true; }
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline) override {
    guidance.push_back(request.guidance);
    return proposers::Answer{.proposals = {{.text = request.guidance, .variant = "its own"}}};
  }
  Result<std::optional<proposers::Reply>> converse(const std::vector<proposers::Message>& messages,
                                                   Deadline) override {
    questions.push_back(messages.back().content);
    if (choice == "fails") return our_error("no network");
    if (choice == "cannot") return std::optional<proposers::Reply>();
    return std::optional(proposers::Reply{choice, {.dollars = 2}});
  }

  std::string choice;
  std::vector<std::string> guidance, questions;
};

trace::Trace softmax_trace() {
  trace::Sketch sketch;
  const auto x = sketch.tensor({4, 8}, trace::DType::kF32, trace::Role::kInput), y = sketch.tensor({4, 8});
  sketch.phase(trace::PhaseKind::kForward);
  sketch.step(trace::make_call("aten::_softmax", {trace::tensor_arg(x)}, trace::tensor_arg(y)));
  sketch.step(trace::make_call("aten::view", {trace::tensor_arg(y)}, trace::tensor_arg(y)));
  return std::move(sketch.trace);
}

Rated skill_for(const std::string& name, const std::string& op) {
  return {.entry = {.skill = {.name = name,
                              .operators = {op},
                              .when = "When " + name + " helps.",
                              .text = "Text of " + name + ".",
                              .pattern = "x = 1\n"},
                    .version = 2}};
}

const Prompts kPrompts = {.guide = "Skills:\n{{skills}}",
                          .choose = "{{name}} {{source}}\n{{skills}}\nat most {{most}}",
                          .learn = "",
                          .hash = "h"};

struct SkilledTest : testing::Test {
  Echo model;
  trace::Trace trace = softmax_trace();
  std::vector<Rated> skills = {skill_for("a", "softmax"), skill_for("b", "softmax"),
                               skill_for("c", "conv2d")};

  std::vector<std::string> variants(SkilledProposer& proposer, const std::vector<int>& samples,
                                    const std::string& source = "the source") {
    const auto answers =
        proposer.propose_several({.name = "t.py", .source = source, .trace = &trace}, samples);
    std::vector<std::string> found;
    while (true) {
      const auto one = answers->next(Deadline::after(100));
      EXPECT_TRUE(one.ok());
      if (!one.ok() || !*one) return found;
      found.push_back((*one)->answer.proposals.front().variant);
      dollars += (*one)->answer.cost.dollars;
    }
  }
  double dollars = 0;
};

TEST_F(SkilledTest, TheModelChoosesAmongWhatFits) {
  model.choice = "<think>c</think>\n1. `b`: good\n* unknown\n- c\nb\nmore words about a";
  SkilledProposer proposer(model, skills, kPrompts, {.without = 0});
  EXPECT_THAT(variants(proposer, {0, 1}), ElementsAre("sample 0 with b@2", "sample 1 with b@2"));
  ASSERT_THAT(model.questions, SizeIs(1));  // once a task
  EXPECT_EQ(model.questions[0], "t.py the source\n* a: When a helps.\n* b: When b helps.\nat most 3");
  EXPECT_EQ(dollars, 2);
  EXPECT_EQ(model.guidance[0], "Skills:\n## b\n\nWhen: When b helps.\n\nText of b.\n\n```python\nx = 1\n```");
  model.choice = "none";
  EXPECT_THAT(variants(proposer, {0}, "another"), ElementsAre("sample 0 chose no skill"));
  EXPECT_EQ(model.guidance.back(), "");
}

TEST_F(SkilledTest, WhatDoesNotConverseGetsTheBest) {
  model.choice = "cannot";
  skills[1].worth.speedup = 2;
  SkilledProposer proposer(model, skills, kPrompts, {.without = 0});
  EXPECT_THAT(variants(proposer, {0}), ElementsAre("sample 0 with b@2"));
  Prompts trained = kPrompts;
  trained.choose.clear();  // a model with prompts of its own is asked nothing
  SkilledProposer other(model, skills, trained, {.without = 0});
  EXPECT_THAT(variants(other, {0}), ElementsAre("sample 0 with b@2"));
  EXPECT_THAT(model.questions, SizeIs(1));
}

TEST_F(SkilledTest, AShareOfSamplesGetsNone) {
  model.choice = "a";
  SkilledProposer proposer(model, skills, kPrompts, {.without = 0.25});
  std::vector<int> samples(8);
  for (int i = 0; i < 8; ++i) samples[static_cast<size_t>(i)] = i;
  for (int task = 0; task < 20; ++task) {
    const auto found = variants(proposer, samples, fmt::format("task {}", task));
    ASSERT_THAT(found, SizeIs(8));
    EXPECT_EQ(std::ranges::count_if(found, [](const auto& v) { return v.ends_with("without skills"); }), 2);
    EXPECT_THAT(found.front(), HasSubstr("sample 0 "));  // in the order of their numbers
  }
  // Of tasks with one sample each, about a share.
  int without = 0;
  for (int task = 0; task < 400; ++task)
    without += variants(proposer, {0}, fmt::format("one {}", task)).front() == "sample 0 without skills";
  EXPECT_GT(without, 60);
  EXPECT_LT(without, 140);
  SkilledProposer never(model, skills, kPrompts, {.without = 1});
  EXPECT_THAT(variants(never, {0, 1}, "x"),
              ElementsAre("sample 0 without skills", "sample 1 without skills"));
}

TEST_F(SkilledTest, RepairsKeepTheirSkills) {
  model.choice = "a";
  SkilledProposer proposer(model, skills, kPrompts, {.without = 0});
  const auto answer = proposer.propose({.name = "t.py",
                                        .source = "the source",
                                        .trace = &trace,
                                        .sample = 3,
                                        .attempts = {{"wrong", "evidence"}}},
                                       Deadline::after(100));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->proposals.front().variant, "sample 3 with a@2");
  EXPECT_THAT(model.guidance.back(), HasSubstr("## a"));
}

TEST_F(SkilledTest, AFailedChoiceIsAnError) {
  model.choice = "fails";
  SkilledProposer proposer(model, skills, kPrompts, {.without = 0});
  const auto answers = proposer.propose_several({.name = "t", .source = "s", .trace = &trace}, {0});
  EXPECT_FALSE(answers->next(Deadline::after(100)).ok());
}

TEST_F(SkilledTest, IdentityIsOfTheSkills) {
  SkilledProposer one(model, skills, kPrompts), same(model, skills, kPrompts);
  EXPECT_EQ(one.identity(), same.identity());
  skills[0].entry.skill.text = "Another text.";
  EXPECT_NE(SkilledProposer(model, skills, kPrompts).identity(), one.identity());
  EXPECT_NE(SkilledProposer(model, skills, kPrompts, {.without = 0.5}).identity(),
            SkilledProposer(model, skills, kPrompts).identity());
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  ASSERT_TRUE(write_file_atomically(file, text).ok());
}

// A script in place of nereid-lm: what it was asked. Our models have prompts of their own, without a choice.
TEST(SkilledModel, AModelOfOursGetsTheBestSkillAfterItsOwnPrompt) {
  const auto folder = TemporaryFolder::create();
  const auto root = folder->path();
  write(root / "bin" / "nereid-lm",
        "#!/bin/sh\necho '{\"ready\": true}'\nread -r question\n"
        "printf '%s\\n' \"$question\" > " +
            (root / "heard").string() +
            R"(
echo '{"id": 0, "sample": 0, "text": "written", "finish": "end", "tokens": 1, "prompt_tokens": 1,)"
            R"( "seconds": 1}'
echo '{"id": 0, "over": true}'; read -r more
)");
  std::filesystem::permissions(root / "bin" / "nereid-lm", std::filesystem::perms::owner_all);
  for (const char* name : {"config.json", "tokenizer.json"}) write(root / "model" / name, "{}");
  for (const char* name : {"system.md", "repair.md"}) write(root / "model" / "prompts" / name, "");
  write(root / "model" / "prompts" / "task.md", "TASK {{source}}");
  const auto usual = std::filesystem::path(NEREID_SOURCE_DIR) / "python" / "nereid" / "prompts";
  Installation installation;
  installation.bin = root / "bin", installation.package = usual.parent_path();
  const auto model =
      proposers::ModelProposer::start(installation, {.folder = root / "model", .device = "cpu"});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto prompts = Prompts::load(root / "model" / "prompts", usual);
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  EXPECT_TRUE(prompts->choose.empty());
  EXPECT_FALSE(Prompts::load(usual, usual)->choose.empty());
  SkilledProposer proposer(**model, {skill_for("a", "softmax"), skill_for("b", "gelu")}, *prompts,
                           {.without = 0});
  const auto trace = softmax_trace();
  const auto answer =
      proposer.propose({.name = "t.py", .source = "the source", .trace = &trace}, Deadline::after(60));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->proposals.front().variant, "sample 0 with a@2");
  const Json question = Json::parse(*read_file(root / "heard"));
  ASSERT_EQ(question["messages"].size(), 1U);
  const std::string content = question["messages"][0]["content"];
  EXPECT_TRUE(content.starts_with("TASK the source\n\n")) << content;
  EXPECT_THAT(content, HasSubstr("## a\n\nWhen: When a helps."));
  EXPECT_THAT(content, Not(HasSubstr("## b")));
}

TEST(Use, IsReadFromVariants) {
  const Use use{.sample = 12, .skills = {{"a-b", 3}, {"c", 1}}};
  EXPECT_EQ(variant_of(use), "sample 12 with a-b@3, c@1");
  const auto again = use_in(variant_of(use));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sample, 12);
  EXPECT_EQ(again->skills, use.skills);
  EXPECT_TRUE(use_in("sample 1 without skills")->control);
  EXPECT_FALSE(use_in("sample 1 chose no skill")->control);
  for (const char* other : {"", "native_matmul", "sample", "sample x with a@1", "sample 1 with",
                            "sample 1 with a", "sample 1 with a@", "sample 1 with A@1", "sample 1 with a@1,"})
    EXPECT_FALSE(use_in(other)) << other;
}

VerifiedAnswer answer_of(const std::string& code, double ms, const std::string& before = "") {
  VerifiedAnswer answer{.text = before + "\n```python\n" + code + "\n```\n", .answer = true};
  answer.judged.kind = verify::VerdictKind::kVerified;
  answer.judged.work = search::Work{.steps = {{.name = "k\x1b[2Jernel", .triton = true}}, .ms = ms};
  return answer;
}

struct LearnTest : testing::Test {
  search::Task task;
  LearnTest() {
    task.hash = std::string(64, 'a'), task.trace = softmax_trace();
    task.facts.trace = &task.trace;
    task.facts.phases.push_back({.kind = trace::PhaseKind::kForward});
    task.facts.phases.back().steps.push_back({.name = "aten::_softmax"});
  }
};

// Whatever the answers hold, the skill is one that can be stored, shown and read again.
TEST_F(LearnTest, TheDifferenceIsASkill) {
  const std::vector<std::string> codes = {
      "@triton.jit\ndef k(BLOCK: tl.constexpr = 128):\n    pass",
      "x = '\x1b]0;title\x07'\nBLOCK = 64\n# ````` \u202e", std::string(100000, 'A') + " = 1",
      "def f():\n" + std::string(3000, ' ') + "\n" + std::string(20000, '\xc3'), ""};
  for (const auto& slow : codes)
    for (const auto& fast : codes) {
      auto pair =
          pair_of("task", answer_of(slow, 3, "Plan \x1b[31m"), answer_of(fast, 1, std::string(5000, '+')));
      ASSERT_TRUE(pair.ok()) << pair.error().message;
      Skill skill = skill_from_difference(*pair, task);
      EXPECT_THAT(skill.operators, ElementsAre("softmax"));
      EXPECT_EQ(skill.origin->speedup, 3);
      if (fast.empty()) continue;  // no code is no pattern, and no such answer is verified
      const auto stored = skill_from_json(to_json(skill));
      ASSERT_TRUE(stored.ok()) << stored.error().message;
      const auto again = parse_skill(to_markdown(skill), "a.md");
      ASSERT_TRUE(again.ok()) << again.error().message;
      skill.origin.reset();
      EXPECT_EQ(*again, skill);
    }
}

TEST_F(LearnTest, PairsAreVerifiedAndApart) {
  EXPECT_FALSE(pair_of("task", answer_of("x = 1", 1.1), answer_of("x = 2", 1)).ok());
  auto wrong = answer_of("x = 1", 3);
  wrong.judged.kind = verify::VerdictKind::kMismatch;
  EXPECT_FALSE(pair_of("task", wrong, answer_of("x = 2", 1)).ok());
  // A measured time is not compared with a modelled one.
  auto measured = answer_of("x = 1", 3);
  measured.judged.times = verify::Times{.reference_ms = 1, .candidate_ms = 100};
  const auto pair = pair_of("task", answer_of("x = 2", 1), measured);
  ASSERT_TRUE(pair.ok());
  EXPECT_TRUE(pair->modelled);
  EXPECT_EQ(pair->speedup, 3);
}

// A model's text that is no skill comes back to it with the error; its operators are not believed.
TEST_F(LearnTest, AModelCorrectsItsText) {
  class Writer : public Echo {
   public:
    Result<std::optional<proposers::Reply>> converse(const std::vector<proposers::Message>& messages,
                                                     Deadline) override {
      questions.push_back(messages.back().content);
      return std::optional(proposers::Reply{replies.at(questions.size() - 1), {}});
    }
    std::vector<std::string> replies;
  } writer;
  Prompts prompts = kPrompts;
  prompts.learn = "{{source}} {{slower}} {{faster}} {{speedup}} {{facts}}";
  const auto pair = pair_of("task", answer_of("x = 1", 3), answer_of("x = 2", 1));
  const std::string good =
      "+++\nname = \"n\"\noperators = [\"conv2d\"]\nwhen = \"w\"\n+++\nText.\n\n```python\ny\n```";
  writer.replies = {"no file", "<think>+++\n</think>```markdown\n" + good + "\n```"};
  const auto skill = skill_from_model(writer, prompts, *pair, task, Deadline::after(100));
  ASSERT_TRUE(skill.ok()) << skill.error().message;
  EXPECT_EQ(skill->name, "n");
  EXPECT_THAT(skill->operators, ElementsAre("softmax"));
  EXPECT_EQ(skill->origin->writer, "echo");
  EXPECT_THAT(writer.questions.at(1), HasSubstr("expected +++"));
  writer.replies.assign(9, "never");
  writer.questions.clear();
  EXPECT_FALSE(skill_from_model(writer, prompts, *pair, task, Deadline::after(100)).ok());
  EXPECT_THAT(writer.questions, SizeIs(3));
}

// By both estimates and both intervals.
TEST(Admission, NeedsSpeedAndCorrectness) {
  const auto state = [](double speedup, double low, double correctness, double correct_low,
                        int64_t compared = 6) {
    Worth worth{.groups = 6, .compared = compared, .speedup = speedup, .speedup_interval = {low, 9}};
    worth.correctness = correctness, worth.correctness_interval = {correct_low, 1};
    std::string reason;
    const State found = decide_admission(worth, {}, reason);
    EXPECT_FALSE(reason.empty());
    return found;
  };
  EXPECT_EQ(state(1.2, 1.11, 0, -0.05), State::kAdmitted);
  EXPECT_EQ(state(1.19, 1.15, 0, 0), State::kRefused);
  EXPECT_EQ(state(2, 1.1, 0, 0), State::kCandidate);
  EXPECT_EQ(state(2, 1.5, -0.06, -0.1), State::kRefused);
  EXPECT_EQ(state(2, 1.5, 0, -0.06), State::kCandidate);
  EXPECT_EQ(state(2, 1.5, 0, 0, 3), State::kCandidate);
}

}  // namespace
}  // namespace nereid::skills
