#include "nereid/compiler/import/earlier_calls.h"

#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::compiler {
namespace {

using trace::PhaseKind;
using trace::Role;
using trace::ValueId;

class EarlierCallsTest : public ::testing::Test {
 protected:
  ValueId computed(const std::string& op, const std::vector<ValueId>& from) {
    const ValueId made = sketch_.tensor({8});
    write(op, from, made);
    return made;
  }
  void write(const std::string& op, const std::vector<ValueId>& from, ValueId to) {
    std::vector<trace::Arg> args;
    for (const ValueId id : from) args.push_back(trace::tensor_arg(id));
    sketch_.step(trace::make_call(op, std::move(args), trace::tensor_arg(to)));
  }
  void forward(int call) { sketch_.phase(PhaseKind::kForward, call); }
  // In the last two calls, which read `kept`.
  std::vector<std::string> earlier(ValueId kept) {
    for (const int call : {1, 2}) {
      forward(call);
      sketch_.trace.phases.back().output = trace::tensor_arg(computed("aten::add.Tensor", {input_, kept}));
    }
    std::vector<std::string> names;
    for (const trace::Call* call : earlier_calls(sketch_.trace)) names.push_back(call->op);
    return names;
  }
  using Names = std::vector<std::string>;
  trace::Sketch sketch_;
  ValueId input_ = sketch_.tensor({8}, trace::DType::kF32, Role::kInput);
  ValueId weight_ = sketch_.tensor({8}, trace::DType::kF32, Role::kParameter);
};

TEST_F(EarlierCallsTest, AllThatMadeWhatIsKept) {
  forward(0);
  const ValueId cosine = computed("aten::cos", {weight_});
  computed("aten::sin", {input_});
  const ValueId kept = computed("aten::exp", {cosine});
  write("aten::neg_", {kept}, kept);
  EXPECT_EQ(earlier(kept), (Names{"aten::cos", "aten::exp", "aten::neg_"}));
}

TEST_F(EarlierCallsTest, NoneOfAnInput) {
  forward(0);
  EXPECT_EQ(earlier(computed("aten::cos", {computed("aten::sin", {input_})})), Names{});
}

TEST_F(EarlierCallsTest, NoneOfRandomNumbers) {
  forward(0);
  EXPECT_EQ(earlier(computed("aten::randn_like", {weight_})), Names{});
}

TEST_F(EarlierCallsTest, NoneOfAParameterBeforeItIsLoaded) {
  sketch_.phase(PhaseKind::kInit);
  EXPECT_EQ(earlier(computed("aten::cos", {weight_})), Names{});
}

TEST_F(EarlierCallsTest, NoneThatChangesFromCallToCall) {
  forward(0);
  const ValueId first = computed("aten::cos", {weight_});
  forward(1);
  write("aten::neg_", {first}, first);
  EXPECT_EQ(earlier(first), Names{});
}

TEST_F(EarlierCallsTest, NoneOfTheCallBefore) {
  forward(0);
  const ValueId first = computed("aten::cos", {weight_});
  forward(1);
  EXPECT_EQ(earlier(computed("aten::neg", {first})), Names{});
}

}  // namespace
}  // namespace nereid::compiler
