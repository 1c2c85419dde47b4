#include "nereid/replay/state_pairing.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::replay {
namespace {

using namespace trace;
using Pairs = std::vector<std::pair<ValueId, ValueId>>;

struct Entry {
  std::string name;  // empty: not registered
  std::vector<int64_t> sizes;
  const char* made_by;  // "ones", "zeros", "randn"
};

Call call(const std::string& op, std::vector<Arg> args, ValueId result) {
  Call out;
  out.op = op, out.args = std::move(args), out.result = tensor_arg(result);
  return out;
}

Trace with_state(const std::vector<Entry>& entries) {
  Sketch s;
  s.phase(PhaseKind::kInit, 0);
  for (const auto& entry : entries) {
    const auto value = s.tensor(entry.sizes);
    s.trace.phases.back().steps.push_back(call(std::string("aten::") + entry.made_by, {}, value));
    if (!entry.name.empty()) s.trace.state.push_back({.name = entry.name, .value = value, .parameter = true});
  }
  return s.trace;
}

TEST(StatePairingTest, NamesComeFirst) {
  const auto pairing =
      pair_state(with_state({{"a", {4}, "ones"}, {"b", {4}, "ones"}}),
                 with_state({{"b", {4}, "ones"}, {"scratch", {9}, "zeros"}, {"a", {1, 4}, "ones"}}));
  EXPECT_EQ(pairing.values, (Pairs{{0, 2}, {1, 0}}));
  EXPECT_TRUE(pairing.unpaired.empty());
}

TEST(StatePairingTest, DefaultsArePairedByWhatTheyAre) {
  const auto reference = with_state({{"gamma", {4}, "ones"}, {"beta", {4}, "zeros"}, {"w", {3, 4}, "randn"}});
  const auto renamed =
      pair_state(reference, with_state({{"fc", {3, 4}, "randn"}, {"", {4}, "zeros"}, {"g", {4}, "ones"}}));
  EXPECT_EQ(renamed.values, (Pairs{{0, 2}, {1, 1}})) << "what is drawn is drawn alike in both";
  EXPECT_EQ(renamed.unpaired, std::vector<std::string>{"w"});
}

// A table of 2^-i, and under `noise` one into which random numbers went.
Trace with_table(const std::string& name, double base, bool noise) {
  Sketch s;
  s.phase(PhaseKind::kInit, 0);
  const auto range = s.tensor({8}), table = s.tensor({8});
  s.trace.phases.back().steps.push_back(
      call(noise ? "aten::randn" : "aten::arange", {Arg{List{{Arg{int64_t{8}}}, false}}}, range));
  s.trace.phases.back().steps.push_back(call("aten::pow.Scalar", {Arg{base}, tensor_arg(range)}, table));
  if (!name.empty()) s.trace.state.push_back({.name = name, .value = table});
  return s.trace;
}

TEST(StatePairingTest, TablesArePairedByHowTheyAreMade) {
  const auto reference = with_table("slopes", 0.5, false);
  EXPECT_EQ(pair_state(reference, with_table("alibi", 0.5, false)).values, (Pairs{{1, 1}}));
  EXPECT_EQ(pair_state(reference, with_table("", 0.5, false)).values, (Pairs{{1, 1}})) << "registered or not";
  EXPECT_TRUE(pair_state(reference, with_table("alibi", 0.25, false)).values.empty());
  EXPECT_TRUE(pair_state(with_table("w", 0.5, true), with_table("v", 0.5, true)).values.empty());
  EXPECT_EQ(made_by_chance(reference), std::vector<bool>{false});
  EXPECT_EQ(made_by_chance(with_table("w", 0.5, true)), std::vector<bool>{true});
}

TEST(StatePairingTest, WhatIsLeftOutIsSaid) {
  const auto reference = with_state({{"gamma", {4}, "ones"}, {"beta", {4}, "zeros"}});
  const auto pairing = pair_state(reference, with_state({{"dummy", {5}, "ones"}, {"beta", {4}, "zeros"}}));
  EXPECT_EQ(pairing.values, (Pairs{{1, 1}}));
  EXPECT_EQ(pairing.unpaired, std::vector<std::string>{"gamma"});
  EXPECT_EQ(pair_state(reference, with_state({})).unpaired.size(), 2u);
}

TEST(StatePairingTest, ALaterWriteCounts) {
  auto trace = with_state({{"w", {4}, "zeros"}});
  auto& steps = trace.phases.back().steps;
  EXPECT_EQ(filled_with(trace, 0), 0.0);
  steps.push_back(call("aten::fill_.Scalar", {tensor_arg(0), Arg{2.5}}, 0));
  EXPECT_EQ(filled_with(trace, 0), 2.5);
  steps.push_back(call("aten::detach", {tensor_arg(0)}, 0));
  EXPECT_EQ(filled_with(trace, 0), 2.5);
  steps.push_back(call("aten::normal_", {tensor_arg(0)}, 0));
  EXPECT_EQ(filled_with(trace, 0), std::nullopt);
}

}  // namespace
}  // namespace nereid::replay
