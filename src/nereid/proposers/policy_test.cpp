#include <gmock/gmock.h>

#include <set>

#include "nereid/base/json.h"
#include "nereid/proposers/compiler.h"
#include "nereid/proposers/compiler_fallback.h"
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

// A product that is large enough for split factors, and one of float16.
constexpr const char* kProducts = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y, z):
        return x @ y, torch.softmax(z @ z.t(), -1)

def get_inputs():
    return [torch.randn(2048, 2048), torch.randn(2048, 2048), torch.randn(256, 256, dtype=torch.float16)]

def get_init_inputs():
    return []
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

TEST(Proposers, ATileShrinksToItsLeast) {
  for (compiler::KernelChoice choice : {compiler::KernelChoice{.m = 128, .n = 256, .k = 64, .warps = 8},
                                        compiler::KernelChoice{.m = 64, .n = 64, .warps = 4, .stages = 3},
                                        compiler::KernelChoice{.rows = 4, .columns = 4096, .warps = 8}}) {
    const auto volume = [](const compiler::KernelChoice& c) {
      const int stages = c.stages == 0 ? 3 : c.stages;
      return stages * std::max<int64_t>(c.m * c.n, 1) * std::max<int64_t>(c.k, 1) *
             std::max<int64_t>(c.rows * c.columns, 1);
    };
    int64_t before = volume(choice);
    int steps = 0;
    while (shrink(choice)) {
      ASSERT_LT(volume(choice), before) << compiler::to_string(choice);
      before = volume(choice);
      ASSERT_LT(++steps, 30);
    }
    EXPECT_GT(steps, 4);
    if (choice.m > 0) {
      EXPECT_EQ(std::pair(choice.m, choice.n), std::pair(int64_t{16}, int64_t{16}));
    }
  }
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
        tuner->observe(49.9);  // no faster than a clock can measure
      }
    }
    EXPECT_THAT(kept, Not(IsEmpty()));
    EXPECT_GT(texts.size(), 4U);
  }
  {
    // Wrong numbers: each scheme after the one before, in the float32 product alone, then other rewrites.
    const auto traced = (*tracer)->trace({.source = kProducts}, deadline);
    const auto& trace = std::get<trace::Trace>(*traced);
    const std::string first = ask(compiler, kProducts).proposals[0].text;
    EXPECT_THAT(first, HasSubstr("tl.float16"));
    EXPECT_THAT(first, Not(HasSubstr("input_precision")));
    const auto fallback = compiler.fallback({.source = kProducts, .trace = &trace});
    std::set<std::string> texts = {first};
    for (const std::string scheme : {"bf16x6", "tf32x3", "ieee"}) {
      const auto proposal = fallback->next({.kind = Failure::Kind::kWrong});
      ASSERT_TRUE(proposal) << scheme;
      EXPECT_EQ(proposal->variant, "float32 products in " + scheme);
      for (const std::string each : {"bf16x6", "tf32x3", "ieee"}) {
        const std::string held = each == "tf32x3" ? "dot_tf32x3(" : "input_precision=\"" + each + "\"";
        EXPECT_EQ(proposal->text.find(held) != std::string::npos, each == scheme) << proposal->text;
      }
      EXPECT_TRUE(texts.insert(proposal->text).second) << scheme;
    }
    while (const auto proposal = fallback->next({.kind = Failure::Kind::kWrong}))
      EXPECT_TRUE(texts.insert(proposal->text).second) << proposal->variant;
    // It is turned on from there.
    const auto tuner = compiler.fallback({.source = kProducts, .trace = &trace});
    const auto other = tuner->next({.kind = Failure::Kind::kWrong});
    ASSERT_TRUE(other);
    const auto turned = tuner->tuner(1)->next();
    ASSERT_TRUE(turned);
    EXPECT_NE(turned->text, other->text);
  }
  {
    // A kernel that is too large: its tiles shrink until nothing is left of them; other kernels stay.
    const auto traced = (*tracer)->trace({.source = kProducts}, deadline);
    const auto& trace = std::get<trace::Trace>(*traced);
    const auto whole = compiler::lower_module(trace, kProducts);
    ASSERT_TRUE(whole.ok());
    const std::string kernel = whole->kernels.back().function, other = whole->kernels.front().function;
    const auto fallback = compiler.fallback({.source = kProducts, .trace = &trace});
    const auto call_of = [](const std::string& text, const std::string& of) {
      const size_t at = text.find("        " + of + "[");
      return text.substr(at, text.find("\n        ", text.find(')', at)) - at);
    };
    int steps = 0;
    std::set<std::string> calls;
    while (const auto proposal = fallback->next({.kind = Failure::Kind::kTooLarge, .kernel = kernel})) {
      ASSERT_LT(++steps, 40);
      EXPECT_TRUE(calls.insert(call_of(proposal->text, kernel)).second) << proposal->variant;
      EXPECT_EQ(call_of(proposal->text, other), call_of(whole->text, other));
    }
    EXPECT_GE(steps, 3);
    // Both failures, one after the other.
    const auto both = compiler.fallback({.source = kProducts, .trace = &trace});
    EXPECT_TRUE(both->next({.kind = Failure::Kind::kWrong}));
    const auto smaller = both->next({.kind = Failure::Kind::kTooLarge, .kernel = ""});
    ASSERT_TRUE(smaller);
    EXPECT_THAT(smaller->text, HasSubstr("input_precision=\"bf16x6\""));
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
