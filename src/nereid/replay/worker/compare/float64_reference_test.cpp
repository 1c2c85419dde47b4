// The float64 reference: how inputs, state and results are changed.
#include "nereid/replay/worker/compare/float64_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/inputs/rounding.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;

at::Generator generator(uint64_t seed) {
  auto made = at::globalContext().defaultGenerator(c10::Device(c10::kCPU)).clone();
  made.set_current_seed(seed);
  return made;
}

// A task whose judged forward has begun, and its first output under a change.
class Recomputed {
 public:
  Recomputed(const Trace& trace, Machine& machine)
      : program_(Program::prepare(trace, machine, {.may_keep_inputs = true, .reference = true})),
        own_(*program_, machine),
        reference_(upcast(trace, {}).value(), {}, machine) {
    own_.start(options_, [](StorageId, Replay&) {}, {});
    own_.begin_judged();
  }
  at::Tensor operator()(Change change) {
    return reference_.run(own_, options_, program_->outputs(), std::move(change)).at(0);
  }

 private:
  std::unique_ptr<const Program> program_;
  Replay own_;
  RunOptions options_{.seed = 3};
  Float64Reference reference_;
};

TEST(RoundByChanceTest, NumbersGoToOneOfTheirNeighboursAndStayWhereTheyAreOne) {
  const auto options = at::TensorOptions().dtype(c10::kDouble);
  auto numbers = at::full({1000}, 1 + 0.4 * 0x1p-23, options);
  numbers[0] = 3, numbers[1] = std::nan(""), numbers[2] = 1e300;
  round_by_chance(numbers, DType::kF32, generator(1));
  EXPECT_EQ(numbers[0].item().toDouble(), 3);
  EXPECT_TRUE(std::isnan(numbers[1].item().toDouble()));
  EXPECT_EQ(numbers[2].item().toDouble(), 1e300) << "beyond what float32 holds";
  std::set<double> found;
  for (int64_t i = 3; i < 1000; ++i) found.insert(numbers[i].item().toDouble());
  EXPECT_EQ(found, (std::set<double>{1, 1 + 0x1p-23}));
}

TEST(NoiseOnExactNumbersTest, IsHalfAnUlpEitherWay) {
  auto numbers = at::full({1000}, 40, at::TensorOptions().dtype(c10::kDouble));
  numbers[0] = 0, numbers[1] = 1 + 0.4 * 0x1p-23;
  add_noise_to_exact(numbers, DType::kF32, generator(1));
  EXPECT_EQ(numbers[0].item().toDouble(), 0);
  EXPECT_EQ(numbers[1].item().toDouble(), 1 + 0.4 * 0x1p-23) << "no float32 number";
  std::set<double> found;
  for (int64_t i = 2; i < 1000; ++i) found.insert(numbers[i].item().toDouble());
  EXPECT_EQ(found, (std::set<double>{40 - 0x1p-19, 40 + 0x1p-19}));
}

TEST(MarkOverflowTest, NumbersAtTheEdgeOfTheDtypeBecomeNan) {
  auto numbers = at::tensor({3.3e38, 3.41e38, -3.4e38, 3.5e38, 1e39, 1.0}, c10::kDouble);
  mark_overflow(numbers, DType::kF32);
  EXPECT_TRUE(numbers.isnan().equal(at::tensor({0, 1, 1, 0, 0, 0}, c10::kInt).to(c10::kBool)));
  mark_overflow(numbers.fill_(65500), DType::kF16);
  EXPECT_TRUE(numbers.isnan().all().item().toBool());
}

// The sigmoid of a number that is the same for all inputs.
TEST(Float64ReferenceTest, WhatIsMadeOfNumbersThatJustOverflowIsMarked) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  for (const auto& [number, marked] :
       {std::pair{3.4e38, true}, {-3.39e38, true}, {3e38, false}, {1e39, false}}) {
    constexpr int64_t kN = 300;
    const auto trace = sample_task(true, kN, [number = number](Sketch& s, const TaskTensors& t) {
      const auto zero = s.tensor({kN}), middle = s.tensor({kN}), out = s.tensor({kN});
      s.step(make_call("aten::mul.Scalar", {tensor_arg(t.x), Arg{0.0}}, tensor_arg(zero)));
      s.step(make_call("aten::add.Scalar", {tensor_arg(zero), Arg{number}}, tensor_arg(middle)));
      s.step(make_call("aten::sigmoid", {tensor_arg(middle)}, tensor_arg(out)));
      return tensor_arg(out);
    });
    Recomputed run(trace, *machine);
    EXPECT_FALSE(run({}).isnan().any().item().toBool());
    EXPECT_EQ(run({.mark_overflow = true}).isnan().all().item().toBool(), marked) << number;
  }
}

TEST(Float64ReferenceTest, WhatReplacesAnInfinityIsNotMarked) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 300;
  const auto trace = sample_task(true, kN, [](Sketch& s, const TaskTensors& t) {
    const auto middle = s.tensor({kN}), out = s.tensor({kN});
    s.step(make_call("aten::add.Scalar", {tensor_arg(t.x), Arg{INFINITY}}, tensor_arg(middle)));
    s.step(make_call("aten::nan_to_num", {tensor_arg(middle)}, tensor_arg(out)));
    return tensor_arg(out);
  });
  Recomputed run(trace, *machine);
  const auto made = run({.mark_overflow = true});
  EXPECT_TRUE(made.eq(0x1.FFFFFEp127).all().item().toBool()) << made[0];
}

// exp of the input, then of that its square root: each is rounded.
TEST(Float64ReferenceTest, WhatOperatorsMakeIsRoundedAnewEachTime) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 300;
  const auto trace = sample_task(true, kN, [](Sketch& s, const TaskTensors& t) {
    const auto middle = s.tensor({kN}), out = s.tensor({kN});
    s.step(make_call("aten::exp", {tensor_arg(t.x)}, tensor_arg(middle)));
    s.step(make_call("aten::sqrt", {tensor_arg(middle)}, tensor_arg(out)));
    return tensor_arg(out);
  });
  Recomputed run(trace, *machine);
  const auto truth = run({});
  EXPECT_TRUE(run({}).equal(truth));
  const auto one = run({.rounding = generator(1)}), other = run({.rounding = generator(2)});
  EXPECT_FALSE(one.equal(other));
  EXPECT_TRUE(run({.rounding = generator(1)}).equal(one));
  EXPECT_TRUE(one.to(c10::kFloat).to(c10::kDouble).equal(one)) << "a float32";
  const auto error = one.div(truth).sub(1).abs().max().item().toDouble();
  EXPECT_GT(error, 0x1p-25);
  EXPECT_LT(error, 0x1p-22);
  EXPECT_TRUE(run({}).equal(truth)) << "and not afterwards";
}

// A result less itself, through another call: zero, and noise where each reader has a rounding of its own.
// What is exact has none.
TEST(Float64ReferenceTest, WhatSeveralCallsReadIsRoundedApart) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 300;
  for (const auto& [op, exact] : {std::pair{"aten::exp", false}, {"aten::relu", true}}) {
    const auto trace = sample_task(true, kN, [op = op](Sketch& s, const TaskTensors& t) {
      const auto made = s.tensor({kN}), negated = s.tensor({kN}), out = s.tensor({kN});
      s.step(make_call(op, {tensor_arg(t.x)}, tensor_arg(made)));
      s.step(make_call("aten::neg", {tensor_arg(made)}, tensor_arg(negated)));
      s.step(make_call("aten::add.Tensor", {tensor_arg(negated), tensor_arg(made)}, tensor_arg(out)));
      return tensor_arg(out);
    });
    Recomputed run(trace, *machine);
    EXPECT_TRUE(run({}).eq(0).all().item().toBool());
    const auto noise = run({.apart = generator(1)}).abs();
    EXPECT_EQ(noise.eq(0).all().item().toBool(), exact) << op;
    EXPECT_LT(noise.max().item().toDouble(), 1e-4);
    EXPECT_TRUE(run({}).eq(0).all().item().toBool()) << "and not afterwards";
  }
}

// Rows that are all one number, less their mean: 0 in float64, and what summing rounds elsewhere.
TEST(Float64ReferenceTest, ASoftmaxOfLargeNumbersMaySubtractAnotherMaximum) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 64;
  const auto most = [&](double factor) {
    const auto trace = sample_task(true, kN, [&](Sketch& s, const TaskTensors& t) {
      const auto large = s.tensor({kN}), out = s.tensor({kN});
      s.step(make_call("aten::mul.Scalar", {tensor_arg(t.x), Arg{factor}}, tensor_arg(large)));
      s.step(make_call("aten::_softmax", {tensor_arg(large), Arg{int64_t{0}}, Arg{false}}, tensor_arg(out)));
      return tensor_arg(out);
    });
    Recomputed run(trace, *machine);
    const auto truth = run({});
    double error = 0;
    for (int i = 0; i < 8; ++i)
      error = std::max(error, run({.rounding = generator(i)}).sub(truth).abs().max().item().toDouble());
    EXPECT_TRUE(run({}).equal(truth)) << "and not afterwards";
    return error;
  };
  EXPECT_GT(most(0x1p17), 0x1p-9);  // all but one are zero, and that one is an exponent of about 2^17 ± 2^-7
  EXPECT_LT(most(1), 0x1p-21);
}

TEST(Float64ReferenceTest, RootsOfSquaresThatUnderflowMayVanish) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 64;
  const auto vanishes = [&](double factor, std::string op) {
    const auto trace = sample_task(true, kN, [&](Sketch& s, const TaskTensors& t) {
      const auto small = s.tensor({kN}), out = s.tensor({});
      s.step(make_call("aten::mul.Scalar", {tensor_arg(t.x), Arg{factor}}, tensor_arg(small)));
      s.step(make_call(op, {tensor_arg(small)}, tensor_arg(out)));
      return tensor_arg(out);
    });
    Recomputed run(trace, *machine);
    EXPECT_GT(run({}).item().toDouble(), 0);
    return run({.rounding = generator(1)}).item().toDouble() == 0;
  };
  EXPECT_TRUE(vanishes(0x1p-70, "aten::std"));
  EXPECT_FALSE(vanishes(0x1p-40, "aten::std"));
  EXPECT_FALSE(vanishes(0x1p-70, "aten::amax"));
}

TEST(Float64ReferenceTest, MeansOfEqualNumbersAreRoundedWhereWhatIsExactStays) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 79;
  const auto run = [&](const std::string& op) {
    const auto trace = sample_task(true, kN, [&](Sketch& s, const TaskTensors& t) {
      const auto bound = s.tensor({kN}), middle = s.tensor({1}), out = s.tensor({kN});
      s.step(make_call("aten::clamp", {tensor_arg(t.x), Arg{double{0.83F}}, Arg{double{0.83F}}},
                       tensor_arg(bound)));
      s.step(make_call(op, {tensor_arg(bound), Arg{trace::List{{Arg{int64_t{0}}}}}, Arg{true}},
                       tensor_arg(middle)));
      s.step(make_call("aten::sub.Tensor", {tensor_arg(bound), tensor_arg(middle)}, tensor_arg(out)));
      return tensor_arg(out);
    });
    Recomputed recomputed(trace, *machine);
    const auto apart = [&](Change change) {
      return recomputed(std::move(change)).abs().max().item().toDouble();
    };
    EXPECT_LT(apart({}), 1e-14) << op;
    double most = 0;
    for (int i = 0; i < 4; ++i) most = std::max(most, apart({.rounding = generator(i)}));
    EXPECT_LT(apart({}), 1e-14) << op << ", and not afterwards";
    return most;
  };
  const double mean = run("aten::mean.dim");
  EXPECT_GT(mean, 0x1p-26);
  EXPECT_LT(mean, 0x1p-22);
  EXPECT_EQ(run("aten::amax"), 0) << "nothing is summed";
}

// A product whose bias is what the same product was rounded to, negated.
TEST(Float64ReferenceTest, InPartsAProductIsRoundedBeforeItsBiasIsAdded) {
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  constexpr int64_t kN = 40;
  const auto trace = sample_task(true, kN, [](Sketch& s, const TaskTensors& t) {
    const auto weight = s.tensor({kN, kN}), product = s.tensor({kN}), bias = s.tensor({kN}),
               out = s.tensor({kN});
    s.step(make_call("aten::outer", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(weight)));
    s.step(make_call("aten::linear", {tensor_arg(t.x), tensor_arg(weight)}, tensor_arg(product)));
    s.step(make_call("aten::neg", {tensor_arg(product)}, tensor_arg(bias)));
    s.step(
        make_call("aten::linear", {tensor_arg(t.x), tensor_arg(weight), tensor_arg(bias)}, tensor_arg(out)));
    return tensor_arg(out);
  });
  Recomputed run(trace, *machine);
  EXPECT_GT(run({.rounding = generator(1)}).abs().max().item().toDouble(), 0);
  EXPECT_EQ(run({.in_parts = true}).abs().max().item().toDouble(), 0);
}

}  // namespace
}  // namespace nereid::replay
