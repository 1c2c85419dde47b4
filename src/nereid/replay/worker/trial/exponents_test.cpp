#include "nereid/replay/worker/trial/exponents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;
using testing::Pair;
using testing::UnorderedElementsAre;

struct Chain {
  std::vector<ValueId> values;  // x, y, then what each operator makes of the one before and, if it adds, of y
  std::set<std::pair<int, ValueId>> found;
};

Chain chain_of(const std::vector<std::string>& ops) {
  Chain chain;
  const auto trace = sample_task(true, 8, [&](Sketch& s, const TaskTensors& t) {
    chain.values = {t.x, t.y};
    auto last = t.x;
    for (const auto& op : ops) {
      const auto made = s.tensor({8});
      std::vector<Arg> args = {tensor_arg(last)};
      if (op == "aten::sub.Tensor" || op == "aten::mul.Tensor") args.push_back(tensor_arg(t.y));
      s.step(make_call(op, args, tensor_arg(made)));
      chain.values.push_back(last = made);
    }
    return tensor_arg(last);
  });
  chain.found = exponent_operands(trace);
  return chain;
}

TEST(Exponents, WhatASoftmaxWorksOnIsMeasured) {
  const auto alone = chain_of({"aten::mul.Tensor", "aten::softmax.int"});
  EXPECT_THAT(alone.found, UnorderedElementsAre(Pair(1, alone.values[2])));
  const auto lessened = chain_of({"aten::sub.Tensor", "aten::neg", "aten::_log_softmax"});
  EXPECT_THAT(lessened.found, UnorderedElementsAre(Pair(0, lessened.values[0]), Pair(0, lessened.values[1]),
                                                   Pair(2, lessened.values[3])));
}

TEST(Exponents, AnExponentialIsAskedForDifferencesAlone) {
  const auto lessened = chain_of({"aten::sub.Tensor", "aten::exp"});
  EXPECT_THAT(lessened.found, UnorderedElementsAre(Pair(0, lessened.values[0]), Pair(0, lessened.values[1])));
  EXPECT_TRUE(chain_of({"aten::mul.Tensor", "aten::exp"}).found.empty());
  EXPECT_TRUE(chain_of({"aten::sub.Tensor", "aten::tanh"}).found.empty());
}

}  // namespace
}  // namespace nereid::replay
