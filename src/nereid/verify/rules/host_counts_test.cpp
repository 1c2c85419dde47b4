#include "nereid/verify/rules/host_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/support/trace_analysis.h"

namespace nereid::verify {
namespace {

using Lengths = std::vector<int32_t>;
const std::vector<Lengths> kCalls = {{5, 17, 3, 40, 8}, {9, 2, 33, 12, 7}, {50, 1, 6, 21, 14}};

// Three calls, of whose launches the counts are `counts(lengths of the call)`: one launch for each.
bool refused(const std::function<std::vector<double>(const Lengths&)>& counts) {
  AnalysisBuilder builder;
  std::vector<std::vector<double>> all;
  for (int call = 0; call < 3; ++call) {
    const auto& lengths = kCalls[static_cast<size_t>(call)];
    const int in = builder.forward(call), out = builder.storage();
    all.push_back(counts(lengths));
    for (size_t i = 0; i < all.back().size(); ++i)
      builder.step({.name = "sum_kernel", .reads = {in}, .writes = {out}});
    builder.returns({out});
    auto& storage = builder.trace().storages[static_cast<size_t>(in)];
    storage.pinned = true;
    storage.data.assign(reinterpret_cast<const char*>(lengths.data()), 4 * lengths.size());
  }
  for (auto& value : builder.trace().values)
    if (builder.trace().storages[static_cast<size_t>(value.storage)].pinned) value.dtype = trace::DType::kI32;
  TraceAnalysis facts = builder.facts();
  size_t call = 0;
  for (auto& phase : facts.phases) {
    if (phase.kind != trace::PhaseKind::kForward) continue;
    for (size_t i = 0; i < phase.steps.size(); ++i)
      phase.steps[i].counts = {{.slot = "sum_kernel:2", .value = all[call][i]}};
    ++call;
  }
  return counted_by_host(facts, trace_dataflow(facts)).has_value();
}

double most(const Lengths& l) { return std::ranges::max(l); }
double sum(const Lengths& l) { return std::accumulate(l.begin(), l.end(), 0.0); }

TEST(HostCounts, SizesAreAllowed) {
  EXPECT_FALSE(refused([](const Lengths&) { return std::vector{7.0}; }));
  EXPECT_FALSE(refused([](const Lengths& l) { return std::vector{most(l)}; }));
  EXPECT_FALSE(refused([](const Lengths& l) { return std::vector{12 * std::ceil(most(l) / 16)}; }));
  EXPECT_FALSE(
      refused([](const Lengths& l) { return std::vector{std::exp2(std::ceil(std::log2(most(l))))}; }));
  EXPECT_FALSE(refused([](const Lengths& l) { return std::vector{3 * (sum(l) + 1)}; }));
  EXPECT_FALSE(refused([](const Lengths& l) {
    double tiles = 0;
    for (const double n : l) tiles += std::ceil(n / 16);
    return std::vector{tiles};
  }));
  EXPECT_FALSE(refused([](const Lengths& l) {
    std::vector<double> blocks;
    for (const double n : l) blocks.push_back(std::ceil(n / 8));
    return blocks;
  }));
}

TEST(HostCounts, OtherFunctionsAreNot) {
  EXPECT_TRUE(refused([](const Lengths& l) { return std::vector{most(l) * most(l)}; }));
  EXPECT_TRUE(refused(
      [](const Lengths& l) { return std::vector{std::inner_product(l.begin(), l.end(), l.begin(), 0.0)}; }));
  EXPECT_TRUE(refused(
      [](const Lengths& l) { return std::vector<double>(l.size(), std::fmod(sum(l) * sum(l), 101) + 2); }));
  EXPECT_TRUE(refused([](const Lengths& l) {
    std::vector<double> squares;
    for (const double n : l) squares.push_back(n * n);
    return squares;
  }));
  EXPECT_TRUE(refused([](const Lengths& l) {
    return std::vector<double>(static_cast<size_t>(l[1] * l[2]), 1);
  })) << "launches";
}

}  // namespace
}  // namespace nereid::verify
