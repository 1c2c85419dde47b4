#include "nereid/replay/structure.h"

#include <gtest/gtest.h>

#include <functional>

#include "nereid/trace/sketch_for_tests.h"

namespace nereid::replay {
namespace {

using namespace trace;

Trace with_output(const std::function<Arg(Sketch&)>& output) {
  Sketch s;
  s.phase(PhaseKind::kForward, 2);
  auto made = output(s);
  s.trace.phases.back().output = std::move(made);
  return s.trace;
}

TEST(StructureTest, TensorsArePairedByPath) {
  const auto make = [](bool tuple) {
    return with_output([&](Sketch& s) {
      Dict dict{{{"loss", tensor_arg(s.tensor({}))}, {"n", Arg{int64_t{3}}}}};
      return Arg{List{{tensor_arg(s.tensor({2, 3})), Arg{dict}, Arg{None{}}}, tuple}};
    });
  };
  const auto pairing = pair_outputs(make(true), make(false));
  EXPECT_EQ(pairing.difference, "") << "a list is as good as a tuple";
  ASSERT_EQ(pairing.pairs.size(), 2u);
  EXPECT_EQ(pairing.pairs[0].path, "output[0]");
  EXPECT_EQ(pairing.pairs[1].path, "output[1]['loss']");
}

TEST(StructureTest, ADifferenceIsOneSentence) {
  const auto difference = [](Arg want, Arg got) {
    return pair_outputs(with_output([&](Sketch& s) {
                          s.tensor({2});
                          return want;
                        }),
                        with_output([&](Sketch& s) {
                          s.tensor({2}, DType::kF16);
                          return got;
                        }))
        .difference;
  };
  EXPECT_EQ(difference(tensor_arg(0), tensor_arg(0)), "output: expected f32[2], got f16[2]");
  EXPECT_EQ(difference(Arg{int64_t{3}}, Arg{int64_t{4}}), "output: expected 3, got 4");
  EXPECT_EQ(difference(tensor_arg(0), Arg{List{{tensor_arg(0)}, true}}),
            "output: expected a tensor, got a tuple of 1");
  EXPECT_EQ(difference(Arg{Dict{{{"a", Arg{None{}}}}}}, Arg{Dict{}}),
            "output: expected the key 'a', which is missing");
}

}  // namespace
}  // namespace nereid::replay
