#include "nereid/replay/structure.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/trace_sketch.h"

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
      Dict dict;
      dict.items = {{"loss", tensor_arg(s.tensor({}))}, {"n", Arg{int64_t{3}}}};
      return Arg{List{{tensor_arg(s.tensor({2, 3})), Arg{dict}, Arg{None{}}}, tuple}};
    });
  };
  const auto pairing = pair_outputs(make(true), make(false));
  EXPECT_EQ(pairing.difference, "") << "a list is as good as a tuple";
  ASSERT_EQ(pairing.pairs.size(), 2u);
  EXPECT_EQ(pairing.pairs[0].path, "output[0]");
  EXPECT_EQ(pairing.pairs[1].path, "output[1]['loss']");
}

TEST(StructureTest, AContainerServesWhereItsCallersCanReadIt) {
  using Kind = Dict::Kind;
  const auto object = [](Kind kind, const char* type) {
    return with_output([&](Sketch& s) {
      Dict dict;
      dict.items = {{"loss", tensor_arg(s.tensor({}))}, {"n", Arg{int64_t{3}}}};
      dict.kind = kind, dict.type = type;
      return Arg{dict};
    });
  };
  const auto tuple =
      with_output([](Sketch& s) { return Arg{List{{tensor_arg(s.tensor({})), Arg{int64_t{3}}}, true}}; });
  const auto dict = object(Kind::kDict, ""), named = object(Kind::kNamedTuple, ":Out"),
             plain = object(Kind::kObject, ":Out"),
             mapping = object(Kind::kMapping, "transformers.modeling_outputs:Out");
  const auto passes = [](const Trace& want, const Trace& got) {
    return pair_outputs(want, got).difference.empty();
  };
  for (const auto* same : {&dict, &named, &plain, &mapping}) EXPECT_TRUE(passes(*same, *same));
  EXPECT_TRUE(passes(plain, object(Kind::kObject, ":Output"))) << "names of classes do not count";
  EXPECT_TRUE(passes(tuple, named));
  EXPECT_TRUE(passes(dict, mapping));
  EXPECT_TRUE(passes(plain, mapping));
  EXPECT_TRUE(passes(plain, named));
  EXPECT_FALSE(passes(named, tuple));
  EXPECT_FALSE(passes(named, plain));
  EXPECT_FALSE(passes(dict, plain));
  EXPECT_FALSE(passes(dict, named));
  EXPECT_FALSE(passes(mapping, dict));
  EXPECT_FALSE(passes(mapping, plain));
  EXPECT_EQ(pair_outputs(plain, dict).difference, "output: expected an object of class Out, got a dict of 2");
  EXPECT_EQ(pair_outputs(named, tuple).difference,
            "output: expected the named tuple Out of 2, got a tuple of 2");
  EXPECT_EQ(pair_outputs(plain, mapping).pairs.at(0).path, "output.loss");
}

TEST(StructureTest, NamedItemsAreTakenInTheReferencesOrder) {
  const auto make = [](std::vector<std::string> names) {
    return with_output([&](Sketch& s) {
      Dict dict;
      for (const auto& name : names)
        dict.items.push_back({name, tensor_arg(s.tensor({static_cast<int64_t>(name.size())}))});
      return Arg{List{{Arg{dict}}, true}};
    });
  };
  const auto reference = make({"a", "bb", "ccc"}),
             candidate = ordered_as(reference, make({"ccc", "a", "bb"}));
  const auto pairing = pair_outputs(reference, candidate);
  EXPECT_EQ(pairing.difference, "");
  const auto in_order = tensors_in(judged_forward(candidate)->output);
  ASSERT_EQ(pairing.pairs.size(), in_order.size());
  for (size_t i = 0; i < in_order.size(); ++i) EXPECT_EQ(pairing.pairs[i].candidate, in_order[i]);
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
  Dict with_a;
  with_a.items = {{"a", Arg{None{}}}};
  EXPECT_EQ(difference(Arg{with_a}, Arg{Dict{}}), "output: expected the key 'a', which is missing");
}

}  // namespace
}  // namespace nereid::replay
