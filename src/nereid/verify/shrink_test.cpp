#include "nereid/verify/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ModuleConstants, ReadsTheUsualSpellings) {
  EXPECT_THAT(module_constants("batch_size = 16\nM, K = 1024, 2 * 1024  # sizes\nA = B = 8\nH: int = 1 << "
                               "4\nN=1_000\nP = 2 ** 14; Q = 3\n"),
              ElementsAre(Constant{"batch_size", 16}, Constant{"M", 1024}, Constant{"K", 2048},
                          Constant{"A", 8}, Constant{"B", 8}, Constant{"H", 16}, Constant{"N", 1000},
                          Constant{"P", 16384}, Constant{"Q", 3}));
  EXPECT_THAT(module_constants("X = (4 + 4) * 2 - 6 // 4"), ElementsAre(Constant{"X", 15}));
}

TEST(ModuleConstants, LeavesTheRest) {
  EXPECT_THAT(
      module_constants(
          "import torch\nX = 1.5\nY = N * 2\nZ = 'a'\ndef f():\n    W = 4\nif X == 3:\n    V = 4\nU == 4\n"
          "T = 1e3\nS = -1\nR = [1]\nQ = 99999999999999999999\nx.y = 3\n"),
      IsEmpty());
  EXPECT_THAT(module_constants("N = 4\nN = 8\n'''\nM = 3\n'''\n"), IsEmpty());
  EXPECT_THAT(module_constants(std::string(100000, '(')), IsEmpty());
  EXPECT_THAT(module_constants("N = " + std::string(100000, '(')), IsEmpty());
}

// A matmul (B * M, K) x (K, N) with H heads that must divide K.
Result<Probe> matmul(const Sizes& changed, const Sizes& own) {
  Sizes s = own;
  for (const auto& [name, size] : changed) s[name] = size;
  const double b = double(s["B"]), m = double(s["M"]), n = double(s["N"]), k = double(s["K"]);
  return Probe{.legal = s["K"] % s["H"] == 0 && s["H"] == own.at("H"),
               .bytes = 4 * (b * m * k + k * n + b * m * n),
               .flops = 2 * b * m * n * k};
}

TEST(Shrink, HalvesTheLargestFirstAndKeepsShapesLegal) {
  const Sizes own = {{"B", 64}, {"M", 1023}, {"N", 4096}, {"K", 4096}, {"H", 12}};
  const Sizes legal = {{"B", 64}, {"M", 1023}, {"N", 4096}, {"K", 3072}, {"H", 12}};
  std::vector<Constant> constants;
  for (const auto& [name, value] : legal) constants.push_back({name, value});
  const auto found = find_smaller_sizes(constants, [&](const Sizes& s) { return matmul(s, legal); },
                                        {.bytes = 1e6, .flops = 1e8});
  ASSERT_TRUE(found.ok()) << found.error().message;
  Sizes sizes = legal;
  for (const auto& s : *found) {
    EXPECT_EQ(s.from, legal.at(s.constant));
    sizes[s.constant] = s.to;
  }
  EXPECT_EQ(sizes["K"] % sizes["H"], 0);
  EXPECT_EQ(sizes["H"], 12);
  EXPECT_EQ(sizes["M"] % 2, 1);
  EXPECT_EQ(sizes["N"] % 16, 0);
  EXPECT_LE(matmul(sizes, legal)->bytes, 1e6);
  EXPECT_GT(sizes["B"], 1);
}

TEST(Shrink, MovesRelatedSizesTogether) {
  // Legal only while X is twice Y.
  const auto probe = [](const Sizes& changed) -> Result<Probe> {
    Sizes s = {{"X", 2048}, {"Y", 1024}};
    for (const auto& [name, size] : changed) s[name] = size;
    return Probe{s["X"] == 2 * s["Y"], double(s["X"]), 0};
  };
  const auto found =
      find_smaller_sizes({{"X", 2048}, {"Y", 1024}}, probe, {.bytes = 300, .flops = 0}).value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].to, 256);
  EXPECT_EQ(found[1].to, 128);
}

TEST(Shrink, SaysThatNothingFits) {
  const auto probe = [](const Sizes&) -> Result<Probe> { return Probe{true, 5e9, 1e9}; };
  const auto found = find_smaller_sizes({{"N", 4096}}, probe, {.bytes = 1e6, .flops = 1e6});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().blame, Blame::kInput);
  EXPECT_THAT(found.error().message, HasSubstr("N = 4096"));
  EXPECT_THAT(found.error().message, HasSubstr("5e+03 MB"));
}

TEST(Shrink, LeavesATaskThatFits) {
  EXPECT_THAT(find_smaller_sizes({{"N", 4096}},
                                 [](const Sizes&) -> Result<Probe> {
                                   return Probe{true, 10, 10};
                                 },
                                 {.bytes = 10, .flops = 10})
                  .value(),
              IsEmpty());
}

}  // namespace
}  // namespace nereid::verify
