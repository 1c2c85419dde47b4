#include "nereid/replay/host/rounded_scalars.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::replay {
namespace {

using namespace trace;

Trace one_call(DType type, const std::string& op, double number) {
  Sketch s;
  const auto x = s.tensor({4}, type), out = s.tensor({4}, type);
  s.phase(PhaseKind::kForward, 1);
  s.step(make_call(op, {tensor_arg(x), Arg{number}}, tensor_arg(out)));
  s.trace.phases.back().output = tensor_arg(out);
  return s.trace;
}

double number_of(const Trace& trace) {
  return std::get<double>(std::get<Call>(trace.phases.back().steps.front()).args[1].node);
}

double rounded(DType type, const std::string& op, double number, RoundedScalars kind) {
  auto trace = one_call(type, op, number);
  round_scalars(trace, kind);
  return number_of(trace);
}

TEST(RoundedScalarsTest, ToTheTensorsDtype) {
  EXPECT_EQ(rounded(DType::kF16, "aten::sub.Tensor", 1.702, RoundedScalars::kByCpu), 0x1.b3cp+0);
  EXPECT_EQ(rounded(DType::kBF16, "aten::sub_.Tensor", 1.702, RoundedScalars::kByCpu), 0x1.b4p+0);
  EXPECT_EQ(rounded(DType::kF32, "aten::sub.Tensor", 1.702, RoundedScalars::kByCpu), 1.702);
  EXPECT_EQ(rounded(DType::kF16, "aten::mul.Tensor", 1e-9, RoundedScalars::kAlways), 0);
  EXPECT_EQ(rounded(DType::kF16, "aten::add.Tensor", 1e9, RoundedScalars::kByCpu), 1e9);
  EXPECT_EQ(rounded(DType::kF16, "aten::layer_norm", 1e-5, RoundedScalars::kAlways), 1e-5);
}

TEST(RoundedScalarsTest, TheSlopeThatATraceLeavesOut) {
  auto trace = one_call(DType::kF16, "aten::leaky_relu", 0);
  std::get<Call>(trace.phases.back().steps.front()).args.pop_back();
  EXPECT_TRUE(round_scalars(trace, RoundedScalars::kAlways));
  EXPECT_EQ(number_of(trace), 0x1.47cp-7);
}

TEST(RoundedScalarsTest, ByKindOfOperator) {
  using enum RoundedScalars;
  const std::pair<const char*, RoundedScalars> ops[] = {
      {"aten::pow.Tensor_Scalar", kByCuda}, {"aten::add.Tensor", kByCpu}, {"aten::mul.Tensor", kAlways}};
  for (const auto& [op, first] : ops)
    for (const auto kind : {kByCuda, kByCpu, kAlways}) {
      auto trace = one_call(DType::kF16, op, 2.2);
      EXPECT_EQ(round_scalars(trace, kind), kind == first) << op;
      EXPECT_EQ(number_of(trace) != 2.2, kind >= first) << op;
    }
}

}  // namespace
}  // namespace nereid::replay
