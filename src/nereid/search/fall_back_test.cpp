#include "nereid/search/fall_back.h"

#include <gmock/gmock.h>

#include "nereid/base/program/installation.h"
#include "nereid/proposers/compiler.h"
#include "nereid/tracer/tracer.h"

namespace nereid::search {
namespace {

// A product that is large enough for factors split into halves.
constexpr const char* kProduct = R"(
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return x @ y

def get_inputs():
    return [torch.randn(2048, 2048), torch.randn(2048, 2048)]

def get_init_inputs():
    return []
)";

// What kernels that use a scheme hold.
std::string text_of(const std::string& scheme) {
  return scheme == "tf32x3" ? "dot_tf32x3(" : "\"" + scheme + "\"";
}

// A judge with planted failures: numbers of a scheme in `wrong` are wrong, and a GPU has no room for what is
// left where a block of a tile is wider than `most`. Keeps what it was asked about.
struct PlantedJudge {
  std::vector<std::string> wrong;
  int most = 1 << 20;
  int verdicts = 1 << 20;  // that there is time for
  std::vector<std::string> variants{};

  std::optional<Judged> operator()(const proposers::Proposal& proposal) {
    if (verdicts-- == 0) return std::nullopt;
    variants.push_back(proposal.variant);
    Judged judged{.variant = proposal.variant, .source = proposal.text};
    judged.kind = verify::VerdictKind::kVerified;
    // The launch names its blocks: "BLOCK_M=128, BLOCK_N=128".
    for (const char* block : {"BLOCK_M=", "BLOCK_N="})
      for (size_t at = proposal.text.find(block); at != std::string::npos;
           at = proposal.text.find(block, at + 1))
        if (std::atoi(proposal.text.c_str() + at + 8) > most) {
          judged.kind = verify::VerdictKind::kCompileFailed;
          judged.verdict = R"({"evidence": [{"rule": "gpu-compiler"}]})";
        }
    const bool halves = proposal.text.find("input_precision") == std::string::npos;
    for (const std::string& scheme : wrong)
      if (proposal.text.find(text_of(scheme)) != std::string::npos || (halves && scheme == "fp16x3"))
        judged.kind = verify::VerdictKind::kMismatch;
    return judged;
  }
};

class FallBackTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto installation = Installation::locate();
    ASSERT_TRUE(installation.ok()) << installation.error().message;
    auto tracer = tracer::Tracer::start({.installation = *installation, .workers = 1, .limits = {}});
    ASSERT_TRUE(tracer.ok());
    auto traced = (*tracer)->trace({.source = kProduct}, Deadline::after(100));
    ASSERT_TRUE(traced.ok()) << traced.error().message;
    trace_ = new trace::Trace(std::get<trace::Trace>(*std::move(traced)));
  }
  static void TearDownTestSuite() { delete std::exchange(trace_, nullptr); }

  // The compiler's own choice, judged, and then its others.
  std::optional<Judged> run(PlantedJudge& judge) {
    proposers::CompilerProposer compiler;
    const proposers::Request request{.name = "task.py", .source = kProduct, .trace = trace_};
    const auto answer = compiler.propose(request, Deadline::after(100));
    EXPECT_TRUE(answer.ok());
    const auto first = judge(answer->proposals.at(0));
    if (!first || first->verified()) return first;
    const auto ways = compiler.fallback(request);
    return fall_back(*ways, *first, std::ref(judge));
  }

  static trace::Trace* trace_;
};
trace::Trace* FallBackTest::trace_ = nullptr;

TEST_F(FallBackTest, WrongNumbersLeadToTheNextScheme) {
  PlantedJudge two{.wrong = {"fp16x3", "bf16x6"}};
  const auto third = run(two);
  ASSERT_TRUE(third && third->verified());
  EXPECT_THAT(two.variants,
              testing::ElementsAre("", "float32 products in bf16x6", "float32 products in tf32x3"));
  PlantedJudge three{.wrong = {"fp16x3", "bf16x6", "tf32x3"}};
  const auto last = run(three);
  ASSERT_TRUE(last && last->verified());
  EXPECT_EQ(last->variant, "float32 products in ieee");
  PlantedJudge all{.wrong = {"fp16x3", "bf16x6", "tf32x3", "ieee"}};
  const auto none = run(all);
  EXPECT_FALSE(none && none->verified());
  EXPECT_LT(all.variants.size(), 12U);
}

TEST_F(FallBackTest, TooLittleRoomLeadsToSmallerTiles) {
  PlantedJudge small{.wrong = {}, .most = 32};
  const auto fits = run(small);
  ASSERT_TRUE(fits && fits->verified());
  EXPECT_GT(small.variants.size(), 2U);
}

TEST_F(FallBackTest, BothFailuresAndTheEndOfTheBudget) {
  PlantedJudge both{.wrong = {"fp16x3", "bf16x6"}, .most = 64};
  const auto found = run(both);
  ASSERT_TRUE(found && found->verified());
  EXPECT_THAT(found->source, testing::HasSubstr("dot_tf32x3("));
  PlantedJudge short_of_time{.wrong = {"fp16x3", "bf16x6", "tf32x3"}, .verdicts = 2};
  EXPECT_FALSE(run(short_of_time));
  EXPECT_EQ(short_of_time.variants.size(), 2U);
}

}  // namespace
}  // namespace nereid::search
