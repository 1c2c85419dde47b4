// What is sampled stays what it was when the catalogue grows.
#include "nereid/synth/sample/generations.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "nereid/synth/sample/maker.h"

namespace nereid::synth {
namespace {

// tests/golden/operators.txt: a generation and an operator a line.
TEST(Generations, EveryOperatorIsOfTheOneItJoinedIn) {
  std::map<std::string, int> golden;
  std::ifstream file(NEREID_SOURCE_DIR "/tests/golden/operators.txt");
  std::string name;
  for (int number; file >> number >> name;) golden[name] = number;
  ASSERT_GT(golden.size(), 100U);
  for (const ops::Operator& op : ops::catalogue()) {
    const auto known = golden.find(std::string(op.name));
    if (known == golden.end())
      ADD_FAILURE() << op.name
                    << " is new: name it in a list of its own at the end of generations.cpp, and in "
                    << "tests/golden/operators.txt";
    else
      EXPECT_EQ(generation(op), known->second) << op.name;
  }
}

// A catalogue without `later`, and one to which these were added one after the other: at any place, with
// forms and rules that no other has, or as a further one of a group.
struct Grown {
  explicit Grown(std::vector<std::string_view> names) : later(std::move(names)) {
    std::erase_if(first, [&](const ops::Operator* op) { return generation_of(*op) > 0; });
  }
  int generation_of(const ops::Operator& op) const {
    const auto found = std::ranges::find(later, op.name);
    return found == later.end() ? 0 : 1 + static_cast<int>(found - later.begin());
  }
  bool is_used_by(const Program& program) const {
    return std::ranges::any_of(program.steps,
                               [&](const Step& step) { return generation_of(*step.applied.op) > 0; });
  }

  const std::vector<std::string_view> later;
  const std::vector<const ops::Operator*> all = ops::every_operator();
  std::vector<const ops::Operator*> first = all;
};

TEST(Generations, WhatDoesNotUseNewOperatorsStaysTheSameTextByteByByte) {
  const Grown grown({"silu", "logsumexp", "conv2d", "softmax"});
  const Bounds bounds{.elements = 5, .work = 7};
  const Space before(grown.first, bounds), after(grown.all, bounds);
  for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms})
    for (const int length : {1, 3}) {
      MakerConfig config{
          .length = length, .uniform = uniform, .seed = 5, .free_sizes = 0.3, .free_forms = 0.3};
      Maker old(before, config);
      config.generation = [&](const ops::Operator& op) { return grown.generation_of(op); };
      Maker now(after, config);
      int same = 0, with_new = 0;
      for (uint64_t index = 0; index < 400; ++index)
        for (const int sizes : {0, 1}) {
          Made first, second;
          old.draw(index, sizes, first), now.draw(index, sizes, second);
          const bool other = grown.is_used_by(second.program);
          (other ? with_new : same) += 1;
          if (other) continue;
          ASSERT_EQ(first.outcome, second.outcome) << index;
          if (first.outcome != Outcome::kMade) continue;
          old.write(first), now.write(second);
          ASSERT_EQ(first.code, second.code) << index;
          ASSERT_EQ(first.hashes.program, second.hashes.program) << index;
        }
      EXPECT_GT(with_new, 4) << "nothing is sampled of what joined";
      EXPECT_GT(same, 400) << "most have only what was there before";
    }
}

// Without the generations, one operator more does shift what is drawn: the test above can fail.
TEST(Generations, OneMoreOperatorOfTheSameGenerationShiftsDraws) {
  const Grown grown({"logsumexp"});
  const Bounds bounds{.elements = 5, .work = 7};
  const Space before(grown.first, bounds), after(grown.all, bounds);
  Maker old(before, {.length = 3, .seed = 5}), now(after, {.length = 3, .seed = 5});
  int changed = 0;
  for (uint64_t index = 0; index < 100; ++index) {
    Made first, second;
    old.draw(index, 0, first), now.draw(index, 0, second);
    changed += !grown.is_used_by(second.program) && first.hashes.program != second.hashes.program;
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace nereid::synth
