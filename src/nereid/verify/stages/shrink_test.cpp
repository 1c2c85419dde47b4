#include "nereid/verify/stages/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Constant constant(std::string name, int64_t value, std::set<std::string> relatives = {}) {
  return {std::move(name), value, std::move(relatives)};
}
std::vector<Constant> constants_of(const Sizes& sizes) {
  std::vector<Constant> constants;
  for (const auto& [name, value] : sizes) constants.push_back(constant(name, value));
  return constants;
}
// The task's bytes are the product of its sizes; every size is legal. What is found, or nothing where it
// gives up.
Sizes shrunk(const std::vector<Constant>& constants, double most) {
  Sizes own;
  for (const auto& c : constants) own[c.name] = c.value;
  const auto probe = [&](const Sizes& changed) -> Result<Probe> {
    Sizes s = own;
    for (const auto& [name, size] : changed) s[name] = size;
    double product = 1;
    for (const auto& [name, size] : s) product *= double(size);
    return Probe{true, product, 0};
  };
  const auto found = find_smaller_sizes(constants, probe, {.bytes = most, .flops = 0});
  if (!found.ok()) return {};
  for (const auto& s : *found) own[s.constant] = s.to;
  return own;
}

TEST(ModuleConstants, ReadsTheUsualSpellings) {
  EXPECT_THAT(module_constants("batch_size = 16\nM, K = 1024, 2 * 1024  # sizes\nA = B = 8\nH: int = 1 << "
                               "4\nN=1_000\nP = 2 ** 14; Q = 3\n"),
              ElementsAre(constant("batch_size", 16), constant("M", 1024), constant("K", 2048),
                          constant("A", 8), constant("B", 8), constant("H", 16), constant("N", 1000),
                          constant("P", 16384), constant("Q", 3)));
  EXPECT_THAT(module_constants("N, H, G, D = 8, 4, 2, 64\ndef get_inputs():\n    return [rand(N, D // H)]\n"
                               "def get_init_inputs():\n    return [H,\n        G]\n"),
              ElementsAre(constant("N", 8, {"D", "H"}), constant("H", 4, {"D", "G", "N"}),
                          constant("G", 2, {"H"}), constant("D", 64, {"H", "N"})));
  EXPECT_THAT(module_constants("X = (4 + 4) * 2 - 6 // 4"), ElementsAre(constant("X", 15)));
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
  const auto found = find_smaller_sizes(constants_of(legal), [&](const Sizes& s) { return matmul(s, legal); },
                                        {.bytes = 4e6, .flops = 4e8});
  ASSERT_TRUE(found.ok()) << found.error().message;
  Sizes sizes = legal;
  for (const auto& s : *found) {
    EXPECT_EQ(s.from, legal.at(s.constant));
    sizes[s.constant] = s.to;
  }
  EXPECT_EQ(sizes["K"] % sizes["H"], 0);
  EXPECT_EQ(sizes["H"], 12);
  EXPECT_EQ(sizes["M"] % 2, 1);
  EXPECT_EQ(sizes["N"] % 256, 0);
  EXPECT_EQ(sizes["K"] % 256, 0);
  EXPECT_LE(matmul(sizes, legal)->bytes, 4e6);
  EXPECT_EQ(sizes["B"], 64);
}

TEST(Shrink, MovesRelatedSizesTogether) {
  // Legal only while X is twice Y.
  const auto probe = [](const Sizes& changed) -> Result<Probe> {
    Sizes s = {{"X", 2048}, {"Y", 1024}};
    for (const auto& [name, size] : changed) s[name] = size;
    return Probe{s["X"] == 2 * s["Y"], double(s["X"]), 0};
  };
  const auto found =
      find_smaller_sizes(constants_of({{"X", 2048}, {"Y", 1024}}), probe, {.bytes = 600, .flops = 0}).value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].to, 512);
  EXPECT_EQ(found[1].to, 256);
}

TEST(Shrink, KeepsPowersOfTwo) {
  EXPECT_EQ(shrunk(constants_of({{"N", 4096}}), 256), (Sizes{{"N", 256}}));
  EXPECT_EQ(shrunk(constants_of({{"N", 4096}}), 255), Sizes{});  // rather an error than 128
  EXPECT_EQ(shrunk(constants_of({{"N", 64}}), 63), Sizes{});
  EXPECT_EQ(shrunk(constants_of({{"N", 96 * 1000}}), 1000), (Sizes{{"N", 512}}));
  EXPECT_EQ(shrunk(constants_of({{"N", 12345}}), 100)["N"] % 2, 1);
}

TEST(Shrink, KeepsRatiosAndGroups) {
  // A feed-forward part of four times the width, both the constructor's.
  const auto width = shrunk({constant("DIM", 2048, {"HIDDEN"}), constant("HIDDEN", 8192, {"DIM"})}, 1 << 20);
  EXPECT_EQ(width, (Sizes{{"DIM", 512}, {"HIDDEN", 2048}}));
  // Channels in 32 groups of 16: neither may be less, so the batch alone is.
  const auto groups = shrunk({constant("BATCH", 1000, {}), constant("CHANNELS", 512, {"GROUPS"}),
                              constant("GROUPS", 32, {"CHANNELS"})},
                             100 * 512 * 32);
  EXPECT_EQ(groups, (Sizes{{"BATCH", 56}, {"CHANNELS", 512}, {"GROUPS", 32}}));
  // Fifteen heads of 3 * 5: heads fall by a third, and their size stays.
  EXPECT_EQ(shrunk({constant("DIM", 225, {"HEADS"}), constant("HEADS", 15, {"DIM"})}, 500),
            (Sizes{{"DIM", 75}, {"HEADS", 5}}));
  // Equal sizes stay equal, and double sizes double, though no one says that they belong together.
  EXPECT_EQ(shrunk(constants_of({{"M", 4096}, {"N", 4096}, {"K", 8192}}), 512.0 * 512 * 1024),
            (Sizes{{"M", 512}, {"N", 512}, {"K", 1024}}));
}

TEST(Shrink, SaysThatNothingFits) {
  const auto probe = [](const Sizes&) -> Result<Probe> { return Probe{true, 5e9, 1e9}; };
  const auto found = find_smaller_sizes(constants_of({{"N", 4096}}), probe, {.bytes = 1e6, .flops = 1e6});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().blame, Blame::kInput);
  EXPECT_THAT(found.error().message, HasSubstr("N = 4096"));
  EXPECT_THAT(found.error().message, HasSubstr("5e+03 MB"));
}

TEST(Shrink, LeavesATaskThatFits) {
  EXPECT_THAT(find_smaller_sizes(constants_of({{"N", 4096}}),
                                 [](const Sizes&) -> Result<Probe> { return Probe{true, 10, 10}; },
                                 {.bytes = 10, .flops = 10})
                  .value(),
              IsEmpty());
}

}  // namespace
}  // namespace nereid::verify
