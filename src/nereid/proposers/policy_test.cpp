#include <gmock/gmock.h>

#include <set>

#include "nereid/base/json.h"
#include "nereid/proposers/compiler.h"
#include "nereid/proposers/inductor.h"
#include "nereid/tracer/tracer.h"

namespace nereid::proposers {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kMlp = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 48)

    def forward(self, x):
        return torch.softmax(self.fc(x), dim=-1)

def get_inputs():
    return [torch.randn(20, 32)]

def get_init_inputs():
    return [32]
)";

constexpr const char* kSort = R"(
import torch

class Model(torch.nn.Module):
    def forward(self, inputs):
        return torch.sort(inputs["x"], dim=-1)[0]

def get_inputs():
    return [{"x": torch.randn(20, 32)}]

def get_init_inputs():
    return []
)";

TEST(Proposers, AnAnswerIsRememberedWhole) {
  Answer answer;
  answer.proposals = {
      {.text = "x = 1\n", .answer = true, .plan = "one\ntwo", .variant = "v", .regions = {{"k", {0, 2}}}},
      {.text = ""}};
  answer.declined = "no";
  answer.cost = {.seconds = 1.5, .prompt_tokens = 3, .completion_tokens = 4, .dollars = 0.25};
  const Json json = to_json(answer);
  const auto again = answer_from_json(json);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_json(*again), json);
  EXPECT_FALSE(answer_from_json(Json::array()).ok());
  EXPECT_FALSE(answer_from_json(Json{{"proposals", 3}}).ok());
}

// Both proposers on the same traces; one worker each for all of them.
TEST(Proposers, CompilerAndInductor) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok()) << installation.error().message;
  auto inductor = InductorProposer::start(*installation);
  ASSERT_TRUE(inductor.ok()) << inductor.error().message;
  auto tracer = tracer::Tracer::start({.installation = *installation, .workers = 1, .limits = {}});
  ASSERT_TRUE(tracer.ok());
  const auto deadline = Deadline::after(250);
  CompilerProposer compiler;
  const auto ask = [&](Proposer& proposer, const char* source) {
    auto traced = (*tracer)->trace({.source = source}, deadline);
    EXPECT_TRUE(traced.ok()) << traced.error().message;
    const auto& trace = std::get<trace::Trace>(*traced);
    auto answer = proposer.propose({.name = "task.py", .source = source, .trace = &trace}, deadline);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return *std::move(answer);
  };
  {
    const Answer answer = ask(compiler, kMlp);
    ASSERT_THAT(answer.proposals, SizeIs(1)) << answer.declined;
    EXPECT_THAT(answer.proposals[0].text, HasSubstr("class ModelNew"));
    EXPECT_THAT(answer.proposals[0].plan, Not(IsEmpty()));
  }
  {
    // Each turn is another text; what was faster stays for the next.
    const auto traced = (*tracer)->trace({.source = kMlp}, deadline);
    const auto& trace = std::get<trace::Trace>(*traced);
    const auto tuner = compiler.tuner({.source = kMlp, .trace = &trace}, 100);
    std::set<std::string> texts = {ask(compiler, kMlp).proposals[0].text};
    std::string kept;
    for (int turn = 0; turn < 40; ++turn) {
      const auto proposal = tuner->next();
      if (!proposal) break;
      EXPECT_TRUE(texts.insert(proposal->text).second) << proposal->variant;
      EXPECT_THAT(proposal->text, HasSubstr("class ModelNew"));
      if (kept.empty() && proposal->variant.find("warps=") != std::string::npos) {
        kept = proposal->variant.substr(0, proposal->variant.find(':'));
        tuner->observe(50);
      } else if (turn % 2 == 0) {
        tuner->observe(std::nullopt);
      } else {
        tuner->observe(49.9);  // no faster than a clock can tell
      }
    }
    EXPECT_THAT(kept, Not(IsEmpty()));
    EXPECT_GT(texts.size(), 4U);
  }
  {
    const Answer answer = ask(**inductor, kMlp);
    ASSERT_THAT(answer.proposals, SizeIs(2)) << answer.declined;
    EXPECT_EQ(answer.proposals[0].variant, "native_matmul");
    EXPECT_THAT(answer.proposals[0].text, HasSubstr("tl.dot("));
    EXPECT_THAT(answer.proposals[0].text, HasSubstr("self.fc.weight"));
    EXPECT_THAT(answer.proposals[0].text, Not(HasSubstr("torch.addmm")));
    EXPECT_THAT(answer.proposals[1].text, HasSubstr("torch.addmm"));
    EXPECT_GT(answer.cost.seconds, 0);
  }
  {
    // What has no kernel stays PyTorch's, and is named, or it is declined with its name.
    const Answer answer = ask(compiler, kSort);
    EXPECT_THAT(answer.declined + (answer.proposals.empty() ? "" : answer.proposals[0].plan),
                HasSubstr("sort"));
  }
  {
    const Answer answer = ask(**inductor, kSort);
    ASSERT_THAT(answer.proposals, Not(IsEmpty())) << answer.declined;
    EXPECT_THAT(answer.proposals[0].text, HasSubstr("inputs[0]['x']"));
  }
  {
    // Random bytes of a stranger's: a trace whose operators do not exist.
    auto traced = (*tracer)->trace({.source = kMlp}, deadline);
    trace::Trace trace = std::get<trace::Trace>(*traced);
    std::get<trace::Call>(trace.phases.back().steps.front()).op = "aten::no_such_thing";
    const auto answer = (*inductor)->propose({.source = kMlp, .trace = &trace}, deadline);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_THAT(answer->proposals, IsEmpty());
    EXPECT_THAT(answer->declined, HasSubstr("aten::no_such_thing"));
  }
}

}  // namespace
}  // namespace nereid::proposers
