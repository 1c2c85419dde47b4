#include "nereid/lm/speculation/branch_policy.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace nereid::lm {
namespace {

using Kind = Boundary::Kind;

TEST(BranchPolicy, HalfBranchOffAndTheOthersAreFresh) {
  BranchPolicy policy({1, 2, 3, 4, 5, 6, 7});
  const auto fresh = policy.fresh();
  EXPECT_EQ(fresh.size(), 3u);
  EXPECT_EQ(policy.branch_at(Kind::kPlan).size(), 2u);
  EXPECT_EQ(policy.branch_at(Kind::kKernel).size(), 1u);
  EXPECT_EQ(policy.branch_at(Kind::kKernel).size(), 1u);
  EXPECT_TRUE(policy.branch_at(Kind::kKernel).empty());
  EXPECT_TRUE(policy.branch_at(Kind::kProgram).empty());
  EXPECT_TRUE(policy.rest().empty());
}

// The same samples branch off, whether the others begin with the trunk or after it.
TEST(BranchPolicy, WhenOthersBeginDoesNotMatter) {
  BranchPolicy at_once({1, 2, 3, 4, 5}), after({1, 2, 3, 4, 5});
  EXPECT_EQ(at_once.fresh(), (std::vector<size_t>{4, 5}));
  for (const Kind kind : {Kind::kKernel, Kind::kPlan, Kind::kKernel})
    EXPECT_EQ(at_once.branch_at(kind), after.branch_at(kind));
  EXPECT_EQ(after.rest(), (std::vector<size_t>{4, 5}));
}

TEST(BranchPolicy, WhatFindsNoBoundaryIsFresh) {
  BranchPolicy policy({1, 2, 3});
  EXPECT_EQ(policy.branch_at(Kind::kPlan).size(), 1u);
  EXPECT_EQ(policy.rest().size(), 2u);
  EXPECT_TRUE(policy.rest().empty());
}

// Whatever the boundaries and their order, each sample begins once, and at most half branch off.
TEST(BranchPolicy, EachSampleBeginsOnce) {
  for (size_t samples = 0; samples < 12; ++samples)
    for (int order = 0; order < 81; ++order)
      for (const bool at_once : {false, true}) {
        std::vector<size_t> all(samples);
        for (size_t i = 0; i < samples; ++i) all[i] = i + 1;
        BranchPolicy policy(all);
        std::multiset<size_t> begun;
        const auto begin = [&](const std::vector<size_t>& some) { begun.insert(some.begin(), some.end()); };
        if (at_once) begin(policy.fresh());
        const size_t fresh = begun.size();
        for (int i = 0, code = order; i < 4; ++i, code /= 3)
          begin(policy.branch_at(
              std::array{Kind::kPlan, Kind::kKernel, Kind::kProgram}[static_cast<size_t>(code % 3)]));
        EXPECT_LE(begun.size() - fresh, (samples + 1) / 2);
        begin(policy.rest());
        EXPECT_EQ(std::vector<size_t>(begun.begin(), begun.end()), all);
      }
}

TEST(BranchPolicy, TheNewestIsJudgedFirst) {
  EXPECT_EQ(newest(std::array<int64_t, 1>{0}), 0u);
  EXPECT_EQ(newest(std::array<int64_t, 4>{0, 30, 120, 30}), 2u);
  EXPECT_EQ(newest(std::array<int64_t, 3>{30, 30, 0}), 0u);
}

}  // namespace
}  // namespace nereid::lm
