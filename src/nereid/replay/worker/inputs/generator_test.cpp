// Random generators of a module's own, and their states.
#include <gtest/gtest.h>

#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/replay.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;

constexpr int64_t kDrawn = 64;
const Arg kOwnGenerator{Named{"generator", "cpu:7#0"}};

ValueId drawn(Sketch& s, const Arg& generator = kOwnGenerator) {
  const auto out = s.tensor({kDrawn});
  const bool named = std::holds_alternative<Named>(generator.node);
  auto call = make_call(named ? "aten::rand.generator" : "aten::rand", {Arg{List{{Arg{kDrawn}}, false}}},
                        tensor_arg(out));
  if (named) call.kwargs.emplace_back("generator", generator);
  s.step(std::move(call));
  return out;
}

// The outputs of the judged forward, run `times` times.
std::vector<std::vector<at::Tensor>> outputs_of(const TaskForward& forward, int times) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  const auto trace = sample_task(true, kDrawn, forward);
  const auto program = Program::prepare(trace, *machine, {.may_keep_inputs = true, .reference = true});
  Replay replay(*program, *machine);
  const RunOptions options{.seed = 3};
  replay.start(options, [](StorageId, Replay&) {}, {});
  replay.begin_judged();
  std::vector<std::vector<at::Tensor>> out;
  for (int i = 0; i < times; ++i) {
    replay.run_judged(options);
    auto& one = out.emplace_back();
    for (const auto value : program->outputs()) one.push_back(replay.value(value).clone());
  }
  return out;
}

TEST(GeneratorTest, EveryRunDrawsTheSame) {
  const auto runs = outputs_of([](Sketch& s, const TaskTensors&) { return tensor_arg(drawn(s)); }, 3);
  EXPECT_TRUE(runs[0][0].equal(runs[1][0]));
  EXPECT_TRUE(runs[0][0].equal(runs[2][0]));
}

TEST(GeneratorTest, OneThatAnEarlierCallDrewFromGoesOnFromThere) {
  ValueId first = -1;
  const auto runs = outputs_of(
      [&](Sketch& s, const TaskTensors&) {
        if (first < 0) first = drawn(s);
        return tuple_of({first, drawn(s)});
      },
      2);
  EXPECT_FALSE(runs[0][0].equal(runs[0][1]));
  EXPECT_TRUE(runs[0][1].equal(runs[1][1]));
}

TEST(GeneratorTest, AStateThatIsPutBackDrawsAgain) {
  for (const auto& generator : {kOwnGenerator, Arg{}}) {
    const auto runs = outputs_of(
        [&](Sketch& s, const TaskTensors&) {
          const auto before = drawn(s, generator);
          s.step(make_call("nereid::save_generator", {Arg{int64_t{0}}, generator}, Arg{}));
          const auto first = drawn(s, generator);
          s.step(make_call("nereid::restore_generator", {Arg{int64_t{0}}, generator}, Arg{}));
          return tuple_of({before, first, drawn(s, generator)});
        },
        1);
    EXPECT_FALSE(runs[0][0].equal(runs[0][1]));
    EXPECT_TRUE(runs[0][1].equal(runs[0][2]));
  }
}

TEST(GeneratorTest, AStateThatWasNotSavedIsRefused) {
  const auto forward = [](Sketch& s, const TaskTensors&) {
    s.step(make_call("nereid::restore_generator", {Arg{int64_t{5}}, kOwnGenerator}, Arg{}));
    return tensor_arg(drawn(s));
  };
  EXPECT_THROW(outputs_of(forward, 1), Failed);
}

}  // namespace
}  // namespace nereid::replay
