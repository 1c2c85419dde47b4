#include "nereid/compiler/transforms/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/estimate.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/plain_fusion.h"
#include "nereid/compiler/transforms/update_in_place.h"

namespace nereid::compiler {
namespace {

// Graphs of a few nodes, written by hand.
struct Sketch {
  Graph graph;

  TensorId leaf(const Extents& sizes) {
    const TracedTensor value{.storage = 0, .dtype = DType::kF32, .sizes = sizes, .strides = row_major(sizes)};
    return graph.add_leaf(value, static_cast<trace::ValueId>(graph.tensors.size()), "x");
  }
  Value at(TensorId tensor, std::vector<Index> index) {
    return {graph.exprs, graph.exprs.load(tensor, std::move(index), DType::kF32)};
  }
  Value element(TensorId tensor) {
    return at(tensor, dimensions(graph.tensors[static_cast<size_t>(tensor)].sizes.size()));
  }
  TensorId map(const Extents& sizes, Value body, const char* name = "map") {
    return graph.add_node({.sizes = sizes, .body = body.id(), .name = name}, DType::kF32);
  }
  TensorId reduce(const Extents& sizes, const Extents& reduced, Value body,
                  Reduction kind = Reduction::kSum) {
    return graph.add_node(
        {.sizes = sizes, .reduced = reduced, .reduction = kind, .body = body.id(), .name = "reduce"},
        DType::kF32);
  }
  TensorId product(TensorId a, TensorId b, int64_t m, int64_t n, int64_t k) {
    return reduce({m, n}, {k}, at(a, {d(0), d(2)}) * at(b, {d(2), d(1)}));
  }
  static Index d(int dimension) { return Index::dimension(dimension); }
  std::vector<size_t> fused() {
    std::vector<size_t> members;
    for (const auto& kernel : fuse(graph).kernels) members.push_back(kernel.members.size());
    return members;
  }
};

using Sizes = std::vector<size_t>;

TEST(Fuse, AChainOfMapsIsOne) {
  Sketch s;
  const TensorId x = s.leaf({8, 9}), y = s.map({8, 9}, s.element(x) * 2), z = s.map({8, 9}, s.element(y) + 1);
  s.graph.outputs = {z};
  EXPECT_EQ(s.fused(), Sizes{1});
}

TEST(Fuse, AGatherReadsTheRowsThatItLooksUp) {
  Sketch s;
  const TensorId table = s.leaf({1000, 64}), places = s.leaf({5});
  const ExprId place = s.graph.exprs.cast(s.at(places, {Sketch::d(0)}).id(), DType::kI64);
  const ExprId row =
      s.graph.exprs.load(table, {Index(), Sketch::d(1)}, DType::kF32, {place, s.graph.exprs.integer(0)});
  s.graph.outputs = {s.map({5, 64}, {s.graph.exprs, row})};
  const Fused fused = fuse(s.graph);
  const KernelText text = emit(s.graph, fused, fused.kernels.at(0), "k").value();
  EXPECT_EQ(estimate(s.graph, fused, fused.kernels[0], text, targets()[1]).bytes_read, 4 * (5 * 64 + 5));
}

TEST(Fuse, ACutEndsKernels) {
  const auto kernels = [](const std::set<int>& cuts) {
    Sketch s;
    const TensorId x = s.leaf({8, 9}), y = s.map({8, 9}, s.element(x) * 2),
                   sum = s.reduce({8}, {9}, s.element(y)), z = s.map({8}, s.element(sum) + 1);
    s.graph.outputs = {z};
    for (size_t n = 0; n < 3; ++n) s.graph.nodes[n].steps = {static_cast<int>(10 * n)};
    return fuse(s.graph, targets()[1], true, cuts).kernels.size();
  };
  EXPECT_EQ(kernels({}), 1);
  EXPECT_EQ(kernels({0}), 1);   // nothing is before it
  EXPECT_EQ(kernels({10}), 2);  // the map, then the sum and what follows it
  EXPECT_EQ(kernels({15}), 2);
  EXPECT_EQ(kernels({10, 20}), 3);
}

// Sizes of what the first stage makes, and what it adds up for each; nothing where there is one stage.
TEST(Fuse, ALongSumIsCutWhereItsSizesSaySo) {
  const auto stages = [](const Extents& reduced) {
    Sketch s;
    const TensorId x = s.leaf(reduced);
    s.graph.outputs = {s.reduce({}, reduced, s.element(x))};
    fuse(s.graph, targets()[1], false);
    const Node& first = s.graph.nodes.front();
    return s.graph.nodes.size() == 1 ? std::pair<Extents, Extents>() : std::pair(first.sizes, first.reduced);
  };
  using Stages = std::pair<Extents, Extents>;
  EXPECT_EQ(stages({4, 4096}), Stages());
  EXPECT_EQ(stages({100, 300}), Stages({100}, {300}));
  EXPECT_EQ(stages({63, 1000}), Stages({63}, {1000}));
  EXPECT_EQ(stages({20, 4096}), Stages({20, 4}, {1024}));
  EXPECT_EQ(stages({51, 3003}), Stages({51, 3}, {1024}));
  EXPECT_EQ(stages({20'000}), Stages({20}, {1024}));
}

// Each node is of a call of its own.
class PlainFusion : public ::testing::Test {
 protected:
  Fused made(Fusion fusion = Fusion::kPlain) {
    for (size_t n = 0; n < s.graph.nodes.size(); ++n) s.graph.nodes[n].steps = {static_cast<int>(n)};
    return fuse(s.graph, targets()[1], false, {}, fusion);
  }
  size_t kernels(Fusion fusion = Fusion::kPlain) { return made(fusion).kernels.size(); }
  Sketch s;
  const TensorId x = s.leaf({8, 9});
  const TensorId y = s.map({8, 9}, s.element(x) * 2);
};

TEST_F(PlainFusion, WhatGoesElementByElementIsOne) {
  s.graph.outputs = {s.map({8, 9}, s.element(y) + 1)};
  EXPECT_EQ(kernels(), 1);
}

TEST_F(PlainFusion, AReshapeGoesElementByElement) {
  s.graph.outputs = {
      s.map({2, 4, 9}, s.at(y, {Sketch::d(0) * 4 + Sketch::d(1), Sketch::d(2)}).apply(Fn::kExp))};
  EXPECT_EQ(kernels(), 1);
}

TEST_F(PlainFusion, ATransposeDoesNot) {
  s.graph.outputs = {s.map({9, 8}, s.at(y, {Sketch::d(1), Sketch::d(0)}).apply(Fn::kExp))};
  EXPECT_EQ(kernels(), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, AFlipDoesNot) {
  s.graph.outputs = {s.map({8, 9}, s.at(y, {Sketch::d(0), Index(8) - Sketch::d(1)}) + 1)};
  EXPECT_EQ(kernels(), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, ASliceDoesNot) {
  s.graph.outputs = {s.map({8, 4}, s.at(y, {Sketch::d(0), Sketch::d(1)}) + 1)};
  EXPECT_EQ(kernels(), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, ABroadcastIsRepeatedByIndexAlone) {
  const TensorId row = s.map({9}, s.at(s.leaf({9}), {Sketch::d(0)}) * 2);
  s.graph.outputs = {s.map({8, 9}, s.element(x) + s.at(row, {Sketch::d(1)}))};
  EXPECT_EQ(kernels(), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, WhatAsksWhereItStandsIsReadByIndexAlone) {
  const Value inside(s.graph.exprs, s.graph.exprs.within(Sketch::d(1), 0, 4, {8, 9}));
  const TensorId padded = s.map({8, 9}, inside.where(s.element(x), inside.constant(0)));
  s.graph.outputs = {s.map({8, 5}, s.at(padded, {Sketch::d(0), Sketch::d(1) + Index(2)}) + 1)};
  EXPECT_EQ(kernels(Fusion::kPlain), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, AGatherIsReadByIndexAlone) {
  const TensorId places = s.leaf({5});
  s.graph.tensors[static_cast<size_t>(places)].type = DType::kI64;
  const ExprId place = s.graph.exprs.load(places, {Sketch::d(1)}, DType::kI64);
  const Value taken(s.graph.exprs, s.graph.exprs.load(y, {Sketch::d(0), Index(0)}, DType::kF32,
                                                      {s.graph.exprs.integer(0), place}));
  s.graph.outputs = {s.map({8, 5}, taken + 1)};
  EXPECT_EQ(kernels(Fusion::kPlain), 2);
  EXPECT_EQ(kernels(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, WhatIsReadAtSeveralPlacesIsShort) {
  const auto halves = [&](int operators) {
    s = {};
    Value value = s.element(s.leaf({8, 8}));
    for (int n = 0; n < operators; ++n) value = value.apply(Fn::kExp);
    const TensorId made = s.map({8, 8}, value);
    const Index d0 = Sketch::d(0), d1 = Sketch::d(1);
    s.graph.outputs = {s.map({8, 4}, s.at(made, {d0, d1}) * s.at(made, {d0, d1 + Index(4)}))};
    return kernels(Fusion::kIndexed);
  };
  EXPECT_EQ(halves(kMaxRepeated), 1);
  EXPECT_EQ(halves(kMaxRepeated + 1), 2);
}

TEST_F(PlainFusion, NothingIsReadAtMorePlaces) {
  const auto window = [&](size_t places) {
    s = {};
    const TensorId made = s.map({32}, s.element(s.leaf({32})).apply(Fn::kExp));
    Value all = s.at(made, {Sketch::d(0)});
    for (size_t n = 1; n < places; ++n)
      all = all + s.at(made, {Sketch::d(0) + Index(static_cast<int64_t>(n))});
    s.graph.outputs = {s.map({16}, all)};
    return kernels(Fusion::kIndexed);
  };
  EXPECT_EQ(window(kMaxPlaces), 1);
  EXPECT_EQ(window(kMaxPlaces + 1), 2);
}

TEST_F(PlainFusion, WhatCutsADimensionIsNoView) {
  s.graph.outputs = {
      s.map({72}, s.at(y, {remainder(Sketch::d(0), 8, {72}), quotient(Sketch::d(0), 8, {72})}) + 1)};
  EXPECT_EQ(kernels(Fusion::kIndexed), 2);
}

TEST_F(PlainFusion, AReductionTakesInWhatIsReducedAndHasWhatFollows) {
  const TensorId sum = s.reduce({8}, {9}, s.at(y, {Sketch::d(0), Sketch::d(1)}));
  s.graph.outputs = {s.map({8, 9}, s.element(x) / s.at(sum, {Sketch::d(0)}))};
  EXPECT_EQ(kernels(), 1);
}

TEST_F(PlainFusion, AReductionOverTheFirstDimensionGoesElementByElement) {
  s.graph.outputs = {s.reduce({9}, {8}, s.at(y, {Sketch::d(1), Sketch::d(0)}))};
  EXPECT_EQ(kernels(), 1);
}

TEST_F(PlainFusion, AReductionTakesInWhatAsksWhereItStandsByIndexAlone) {
  const auto sum = [&](Fusion fusion) {
    s = {};
    const TensorId input = s.leaf({8, 9});
    const Value inside(s.graph.exprs, s.graph.exprs.within(Sketch::d(1), 0, 4, {8, 9}));
    const TensorId padded = s.map({8, 9}, inside.where(s.element(input), inside.constant(0)));
    s.graph.outputs = {s.reduce({8}, {9}, s.at(padded, {Sketch::d(0), Sketch::d(1)}))};
    return kernels(fusion);
  };
  EXPECT_EQ(sum(Fusion::kPlain), 2);
  EXPECT_EQ(sum(Fusion::kIndexed), 1);
}

TEST_F(PlainFusion, AProductHasWhatFollowsAndTakesInNothing) {
  const TensorId w = s.leaf({9, 16}), product = s.product(y, w, 8, 16, 9);
  s.graph.outputs = {s.map({8, 16}, s.element(product) + 1)};
  EXPECT_EQ(kernels(), 2);
}

TEST_F(PlainFusion, WhatIsReadThroughAViewAndWithoutOneIsComputedOnce) {
  const TensorId left = s.map({8, 9}, s.element(y) + 1);
  s.graph.outputs = {left, s.map({9, 8}, s.at(y, {Sketch::d(1), Sketch::d(0)}) + 1)};
  const Fused fused = made();
  EXPECT_EQ(fused.kernels.size(), 2);
  EXPECT_TRUE(fused.stored[static_cast<size_t>(y)]);
}

TEST_F(PlainFusion, AKernelDoesSoManyCalls) {
  const auto of_calls = [&](size_t calls) {
    s = {};
    TensorId last = s.leaf({8, 9});
    for (size_t n = 0; n < calls; ++n) last = s.map({8, 9}, s.element(last) + 1);
    s.graph.outputs = {last};
    return kernels();
  };
  EXPECT_EQ(of_calls(kMaxPlainSteps), 1);
  EXPECT_EQ(of_calls(kMaxPlainSteps + 1), 2);
}

TEST_F(PlainFusion, OneCallIsOneKernelWhateverItReads) {
  s.graph.outputs = {s.map({8, 9}, s.at(y, {Sketch::d(0), Index(8) - Sketch::d(1)}) + 1)};
  for (Node& node : s.graph.nodes) node.steps = {3};
  EXPECT_EQ(fuse(s.graph, targets()[1], false, {}, Fusion::kPlain).kernels.size(), 1);
}

// A norm, and a sum of norms.
TEST_F(PlainFusion, WhatEndsACallIsInItsKernel) {
  const TensorId squares = s.reduce({8}, {9}, s.element(x) * s.element(x)),
                 norm = s.map({8}, s.element(squares).apply(Fn::kSqrt)),
                 all = s.reduce({}, {8}, s.element(norm));
  s.graph.outputs = {all};
  s.graph.nodes[1].steps = s.graph.nodes[2].steps = {1};
  s.graph.nodes[3].steps = {2};
  const Fused fused = fuse(s.graph, targets()[1], false, {}, Fusion::kPlain);
  ASSERT_EQ(fused.kernels.size(), 2);
  EXPECT_EQ(fused.kernels[0].members.size(), 2);
  EXPECT_TRUE(fused.stored[static_cast<size_t>(norm)]);
  EXPECT_FALSE(fused.stored[static_cast<size_t>(squares)]);
}

TEST_F(PlainFusion, WhatIsAResultIsReadWhereElseItIsWanted) {
  const auto reads = [&](Fusion fusion) {
    s = {};
    const TensorId input = s.leaf({8, 9}), half = s.map({8, 9}, s.element(input) * 0.5);
    s.graph.outputs = {half, s.reduce({9}, {8}, s.at(half, {Sketch::d(1), Sketch::d(0)}))};
    made(fusion);
    return s.graph.reads(s.graph.nodes.back()) == std::vector<TensorId>{half};
  };
  EXPECT_TRUE(reads(Fusion::kPlain));
  EXPECT_TRUE(reads(Fusion::kIndexed));
  EXPECT_FALSE(reads(Fusion::kFree));
}

TEST_F(PlainFusion, WhatHasNothingInCommonIsNotOneKernel) {
  const auto maps = [&](bool of_one_leaf, Fusion fusion) {
    s = {};
    const TensorId a = s.leaf({8, 9}), b = of_one_leaf ? a : s.leaf({8, 9});
    s.graph.outputs = {s.map({8, 9}, s.element(a) + 1), s.map({8, 9}, s.element(b) * 2)};
    return kernels(fusion);
  };
  EXPECT_EQ(maps(false, Fusion::kPlain), 2);
  EXPECT_EQ(maps(true, Fusion::kPlain), 1);
  EXPECT_EQ(maps(false, Fusion::kFree), 1);
}

// A softmax of what a kernel with a reduction made: its largest could join that kernel, its sum could not.
TEST_F(PlainFusion, ACallIsNotSplitBetweenKernels) {
  const auto members = [&](Fusion fusion) {
    s = {};
    const TensorId input = s.leaf({8, 9}), sum = s.reduce({8}, {9}, s.element(input)),
                   share = s.map({8, 9}, s.element(input) / s.at(sum, {Sketch::d(0)})),
                   most = s.reduce({8}, {9}, s.element(share), Reduction::kMax),
                   all = s.reduce({8}, {9}, (s.element(share) - s.at(most, {Sketch::d(0)})).apply(Fn::kExp));
    s.graph.outputs = {share, all};
    for (size_t n = 0; n < 4; ++n) s.graph.nodes[n].steps = {n < 2 ? static_cast<int>(n) : 2};
    Sizes sizes;
    for (const auto& kernel : fuse(s.graph, targets()[1], false, {}, fusion).kernels)
      sizes.push_back(kernel.members.size());
    return sizes;
  };
  EXPECT_EQ(members(Fusion::kPlain), (Sizes{2, 2}));
  EXPECT_EQ(members(Fusion::kFree), (Sizes{4}));
}

// exp of the first, tanh of the second, chosen by the third: written in the order in which a trace has them.
TEST(Fuse, StepsAreWrittenInTheirOrder) {
  Sketch s;
  const TensorId a = s.leaf({8, 9}), b = s.leaf({8, 9}), c = s.leaf({8, 9});
  for (size_t i = 0; i < 3; ++i) s.graph.tensors[i].name = std::string(1, static_cast<char>('a' + i));
  const Value first = s.element(a).apply(Fn::kExp), second = s.element(b).apply(Fn::kTanh),
              third = s.element(c) > 0;
  const TensorId chosen = s.map({8, 9}, third.where(first, second));
  s.graph.outputs = {chosen};
  s.graph.nodes[0].steps = {3};
  const auto pointers = [&] {
    Graph graph = s.graph;
    const Fused fused = fuse(graph);
    std::string names;
    const KernelText kernel = emit(graph, fused, fused.kernels[0], "kernel").value();
    for (const auto& pointer : kernel.pointers) names += pointer.name[0];
    return names.substr(0, 3);
  };
  EXPECT_EQ(pointers(), "cab");  // as the expression has them
  for (const auto& [value, step] : {std::pair{first, 0}, {second, 1}, {third, 2}})
    s.graph.exprs.result_of(value.id(), step);
  EXPECT_EQ(pointers(), "abc");
}

TEST(Fuse, MapsOfOneShapeShareALaunch) {
  Sketch s;
  const TensorId x = s.leaf({8, 9});
  for (int i = 0; i < 5; ++i) s.graph.outputs.push_back(s.map({8, 9}, s.element(x) * (i + 2)));
  EXPECT_EQ(s.fused(), Sizes{5});
}

TEST(Fuse, WhatFollowsAReductionRowByRowJoinsIt) {
  Sketch s;
  const TensorId x = s.leaf({8, 90});
  const TensorId sum = s.reduce({8}, {90}, s.element(x));
  const TensorId scaled = s.map({8, 90}, s.element(x) / s.at(sum, {Sketch::d(0)}));
  s.graph.outputs = {scaled};
  EXPECT_EQ(s.fused(), Sizes{2});
}

TEST(Fuse, WhatReadsOtherRowsDoesNot) {
  Sketch s;
  const TensorId x = s.leaf({8, 8});
  const TensorId sum = s.reduce({8}, {8}, s.element(x));
  const TensorId scaled = s.map({8, 8}, s.element(x) / s.at(sum, {Sketch::d(1)}));
  s.graph.outputs = {scaled, sum};
  const Fused fused = fuse(s.graph);
  EXPECT_TRUE(fused.stored[static_cast<size_t>(sum)]);
}

TEST(Fuse, ReductionsAlongRowsAndAlongColumnsAreApart) {
  const auto kernels = [](bool transposed) {
    Sketch s;
    const TensorId x = s.leaf({20000, 20000});
    const Index row = Sketch::d(0), column = Sketch::d(1);
    const Value same = s.at(x, {row, column}), other = transposed ? s.at(x, {column, row}) : same;
    s.graph.outputs = {s.reduce({20000}, {20000}, same, Reduction::kMax),
                       s.reduce({20000}, {20000}, other, Reduction::kMin)};
    return s.fused();
  };
  EXPECT_EQ(kernels(false), Sizes{2});
  EXPECT_EQ(kernels(true), (Sizes{1, 1}));
}

TEST(Fuse, AMapBetweenTwoProductsEndsTheFirst) {
  Sketch s;
  const TensorId a = s.leaf({32, 40}), b = s.leaf({40, 48}), c = s.leaf({48, 16});
  const TensorId first = s.product(a, b, 32, 48, 40);
  const TensorId relu = s.map({32, 48}, maximum(s.element(first), 0));
  s.graph.outputs = {s.product(relu, c, 32, 16, 48)};
  const Fused fused = fuse(s.graph);
  ASSERT_EQ(fused.kernels.size(), 2);
  EXPECT_EQ(fused.kernels[0].members.size(), 2);
  EXPECT_FALSE(fused.stored[static_cast<size_t>(first)]);
  EXPECT_TRUE(fused.stored[static_cast<size_t>(relu)]);
}

TEST(Fuse, AMapGoesThroughItsResultAsItLies) {
  Sketch s;
  const TensorId x = s.leaf({12, 40});
  const TensorId turned = s.graph.add_node(
      {.sizes = {40, 12}, .body = s.at(x, {Sketch::d(1), Sketch::d(0)}).id(), .name = "copy"}, DType::kF32,
      {1, 40});
  s.graph.outputs = {turned};
  const Fused fused = fuse(s.graph);
  ASSERT_EQ(fused.kernels.size(), 1);
  EXPECT_EQ(fused.kernels[0].rows, (Extents{12, 40}));
  EXPECT_EQ(fused.kernels[0].members[0].at, (std::vector<Index>{Sketch::d(1), Sketch::d(0)}));
}

TEST(Fuse, ALongReductionOfFewRowsTakesTwoStages) {
  Sketch s;
  const TensorId x = s.leaf({3, 1 << 18});
  s.graph.outputs = {s.reduce({3}, {1 << 18}, s.element(x))};
  const Fused fused = fuse(s.graph);
  ASSERT_EQ(fused.kernels.size(), 2);
  EXPECT_EQ(fused.kernels[0].row_count() * fused.kernels[0].column_count(), 3 << 18);
}

// The sum of [n, channels, width] over n and width, and the distance from it.
std::vector<size_t> centered(int64_t n, int64_t channels, int64_t width) {
  Sketch s;
  const TensorId x = s.leaf({n, channels, width});
  const TensorId sum = s.reduce({channels}, {n, width}, s.at(x, {s.d(1), s.d(0), s.d(2)}));
  s.graph.outputs = {s.map({n, channels, width}, s.element(x) - s.at(sum, {s.d(1)}))};
  return s.fused();
}

TEST(Fuse, RowsOfShortRunsAreReadAgainInsteadOfShared) {
  EXPECT_EQ(centered(20, 64, 27200), (std::vector<size_t>{2}));
  EXPECT_EQ(centered(32000, 64, 17), (std::vector<size_t>{1, 1, 1}));
}

TEST(Fuse, WherePlacesAreAskedForEachStageKeepsThem) {
  Sketch s;
  const TensorId x = s.leaf({1 << 18});
  const TensorId place = s.graph.add_node({.sizes = {},
                                           .reduced = {1 << 18},
                                           .reduction = Reduction::kArgMax,
                                           .body = s.element(x).id(),
                                           .name = "argmax"},
                                          DType::kI64);
  s.graph.outputs = {place};
  const Fused fused = fuse(s.graph);
  ASSERT_GE(fused.kernels.size(), 2);
  EXPECT_EQ(fused.kernels[0].members.size(), 2);  // the best of each part, and where it stands
}

TEST(Fuse, ALongSumOfFewTilesTakesTwoStagesWhereverItsResultsGo) {
  for (const bool elsewhere : {false, true}) {
    Sketch s;
    const TensorId a = s.leaf({8, 9000}), b = s.leaf({9000, 6});
    s.product(a, b, 8, 6, 9000);
    Node& product = s.graph.nodes.back();
    if (elsewhere) product.at = {Sketch::d(1), Sketch::d(0)};
    s.graph.tensors.back().sizes = elsewhere ? Extents{6, 8} : Extents{8, 6};
    s.graph.outputs = {product.out};
    EXPECT_EQ(s.fused(), (Sizes{1, 1})) << elsewhere;
  }
}

TEST(Emit, ADistanceFromTheLargestIsOfRoundedProducts) {
  Sketch s;
  const TensorId x = s.leaf({8, 9});
  const TensorId scaled = s.map({8, 9}, s.element(x) * 0.3 + 1);
  const TensorId largest = s.reduce({8}, {9}, s.at(scaled, {Sketch::d(0), Sketch::d(1)}), Reduction::kMax);
  const TensorId distance =
      s.map({8, 9}, (s.element(scaled) - s.at(largest, {Sketch::d(0)})).apply(Fn::kExp));
  const TensorId other = s.map({5}, s.at(x, {Sketch::d(0), Index(0)}) * 0.3 + 1);
  s.graph.outputs = {distance, other};
  const Fused fused = fuse(s.graph, targets()[1], false);
  ASSERT_EQ(fused.kernels.size(), 2U);
  for (const auto& kernel : fused.kernels)
    EXPECT_EQ(emit(s.graph, fused, kernel, "k").value().fused_multiply_add, kernel.members.size() == 1);
}

TEST(Emit, FewRowsAreSharedOut) {
  Sketch s;
  const TensorId x = s.leaf({64, 32});
  s.graph.outputs = {s.reduce({64}, {32}, s.element(x), Reduction::kMax)};
  const Fused fused = fuse(s.graph, targets()[1], false);
  const auto text = emit(s.graph, fused, fused.kernels.at(0), "k").value();
  EXPECT_GE(text.programs, 8);
  const auto asked = emit(s.graph, fused, fused.kernels.at(0), "k", {.rows = 64, .warps = 4}).value();
  EXPECT_EQ(asked.programs, 1);
}

TEST(Emit, APersistentProductHasAProgramForEachProcessor) {
  Sketch s;
  const TensorId a = s.leaf({2048, 64}), b = s.leaf({64, 2048});
  s.graph.outputs = {s.product(a, b, 2048, 2048, 64)};
  const Target& target = targets()[1];
  const Fused fused = fuse(s.graph, target, false);
  const auto usual = emit(s.graph, fused, fused.kernels.at(0), "k").value();
  const auto others = alternatives(fused.kernels[0], usual, target);
  const auto order =
      std::ranges::find_if(others, [](const KernelChoice& choice) { return choice.persistent; });
  ASSERT_NE(order, others.end());
  const auto text = emit(s.graph, fused, fused.kernels[0], "k", *order).value();
  EXPECT_EQ(text.programs, target.multiprocessors);
  EXPECT_NE(text.text.find(fmt::format("for tile in range(tl.program_id(0), {}, {}):", usual.programs,
                                       target.multiprocessors)),
            std::string::npos);
  EXPECT_EQ(text.choice.m, usual.choice.m);
}

TEST(Update, StateIsWrittenWhereItIsComputed) {
  enum class Also { kNothing, kHandedOut, kReadElsewhere, kReadLater };
  for (const Also also : {Also::kNothing, Also::kHandedOut, Also::kReadElsewhere, Also::kReadLater}) {
    Sketch s;
    const TensorId state = s.leaf({5}), x = s.leaf({5});
    s.graph.tensors[1].storage = 1;
    const Index from = also == Also::kReadElsewhere ? Sketch::d(0) * -1 + Index(4) : Sketch::d(0);
    const TensorId next = s.map({5}, s.at(state, {from}) * 0.9 + s.element(x) * 0.1);
    const TensorId sum = s.reduce({}, {5}, s.element(also == Also::kReadLater ? state : x));
    s.graph.outputs = {also == Also::kHandedOut ? next : sum};
    s.graph.updates = {{state, next}};
    const Fused fused = fuse(s.graph);
    update_in_place(s.graph, fused);
    EXPECT_EQ(s.graph.tensors[static_cast<size_t>(next)].into, also == Also::kNothing ? state : -1)
        << static_cast<int>(also);
  }
}

TEST(Emit, OfLongCodeAThreadHasFewElements) {
  const auto elements_a_thread = [](int length) {
    Sketch s;
    const TensorId x = s.leaf({50000, 16});
    Value body = s.element(x);
    for (int i = 0; i < length; ++i) body = body.apply(i % 2 == 0 ? Fn::kExp : Fn::kTanh);
    s.graph.outputs = {s.reduce({50000}, {16}, body, Reduction::kMax)};
    const Fused fused = fuse(s.graph, targets()[1], false);
    const KernelChoice choice = emit(s.graph, fused, fused.kernels.at(0), "k").value().choice;
    return choice.rows * choice.columns / (32 * choice.warps);
  };
  EXPECT_EQ(elements_a_thread(1), 16);
  EXPECT_LE(elements_a_thread(30), 4);
}

TEST(Prepare, ASmallWindowIsWrittenOut) {
  Sketch s;
  const TensorId x = s.leaf({10});
  const TensorId pool = s.reduce({4}, {3}, s.at(x, {Sketch::d(0) * 2 + Sketch::d(1)}), Reduction::kMax);
  s.graph.nodes.back().window = true;
  s.graph.outputs = {pool};
  prepare(s.graph, targets()[1], true);
  const Node& node = s.graph.nodes.back();
  EXPECT_EQ(node.reduction, Reduction::kNone);
  const auto load = [&](int64_t offset) { return s.at(x, {Sketch::d(0) * 2 + Index(offset)}); };
  EXPECT_EQ(node.body, maximum(maximum(load(0), load(1)), load(2)).id());
}

TEST(Prepare, WhatReachesNoResultIsNotLive) {
  Sketch s;
  const TensorId x = s.leaf({10});
  const TensorId used = s.map({10}, s.element(x) * 2);
  s.map({10}, s.element(x) * 3);
  s.graph.outputs = {used};
  EXPECT_EQ(live_nodes(s.graph), (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace nereid::compiler
