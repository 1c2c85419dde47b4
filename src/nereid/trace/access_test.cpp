#include "nereid/trace/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_sketch.h"

namespace nereid::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<StorageId> storages(const std::vector<Access>& accesses) {
  std::vector<StorageId> ids;
  for (const Access& access : accesses) ids.push_back(access.storage);
  return ids;
}

class AccessTest : public ::testing::Test {
 protected:
  StepAccess of(std::string op, std::vector<Arg> args, Arg result,
                std::vector<std::pair<std::string, Arg>> kwargs = {}) {
    Call call = make_call(std::move(op), std::move(args), std::move(result));
    call.kwargs = std::move(kwargs);
    return access_of(sketch.trace, call);
  }
  Sketch sketch;
  // Storages 0, 1, 2, 3: each the only one of its value.
  const ValueId x = sketch.tensor({4, 4}), y = sketch.tensor({4, 4}), z = sketch.tensor({4, 4}),
                w = sketch.tensor({4});
  const Arg ax = tensor_arg(x), ay = tensor_arg(y), az = tensor_arg(z), aw = tensor_arg(w);
};

TEST_F(AccessTest, AResultInItsOwnStorageIsMadeAndWritten) {
  const StepAccess add = of("aten::add.Tensor", {ax, ay}, az);
  EXPECT_THAT(storages(add.reads), ElementsAre(0, 1));
  EXPECT_THAT(storages(add.writes), ElementsAre(2));
  EXPECT_THAT(add.made, ElementsAre(2));
  EXPECT_TRUE(add.writes[0].covers);
  EXPECT_EQ(add.writes[0].last, 64);
  EXPECT_FALSE(add.random);
}

TEST_F(AccessTest, ViewsAndAllocationsMoveNothing) {
  const ValueId t = sketch.view(x, {4, 4}, {1, 4});
  const StepAccess view = of("aten::t", {ax}, tensor_arg(t));
  EXPECT_THAT(view.reads, IsEmpty());
  EXPECT_THAT(view.writes, IsEmpty());
  const StepAccess empty = of("aten::empty_like", {ax}, ay);
  EXPECT_THAT(empty.reads, IsEmpty());
  EXPECT_THAT(empty.writes, IsEmpty());
  EXPECT_THAT(empty.made, ElementsAre(1));
  EXPECT_THAT(of("aten::squeeze_", {ax}, ax).writes, IsEmpty());
}

TEST_F(AccessTest, InPlaceWritesAreFound) {
  const StepAccess add = of("aten::add_.Tensor", {ax, ay}, ax);
  EXPECT_THAT(storages(add.reads), ElementsAre(0, 1));
  EXPECT_THAT(storages(add.writes), ElementsAre(0));
  const StepAccess copy = of("aten::copy_", {ax, ay}, ax);
  EXPECT_THAT(storages(copy.reads), ElementsAre(1));
  EXPECT_TRUE(copy.writes[0].covers);
  // Nothing is laundered by copying it onto itself.
  EXPECT_THAT(storages(of("aten::copy_", {ax, ax}, ax).reads), ElementsAre(0));
  const StepAccess out = of("aten::add.out", {ax, ay}, az, {{"out", az}});
  EXPECT_THAT(storages(out.reads), ElementsAre(0, 1));
  EXPECT_THAT(storages(out.writes), ElementsAre(2));
  EXPECT_THAT(storages(of("aten::add.out", {ax, ay}, ax, {{"out", ax}}).reads), ElementsAre(0, 1));
}

TEST_F(AccessTest, PartsOfStoragesAreRecorded) {
  const ValueId rows = sketch.view(x, {2, 4}, {4, 1}, 8), column = sketch.view(x, {4}, {4}, 1);
  const StepAccess fill = of("aten::fill_.Scalar", {tensor_arg(rows), Arg{1.0}}, tensor_arg(rows));
  EXPECT_EQ(fill.writes[0].first, 32);
  EXPECT_EQ(fill.writes[0].last, 64);
  EXPECT_TRUE(fill.writes[0].covers);
  const StepAccess strided = of("aten::zero_", {tensor_arg(column)}, tensor_arg(column));
  EXPECT_FALSE(strided.writes[0].covers);  // the bytes between its elements stay
  EXPECT_EQ(strided.writes[0].first, 4);
  EXPECT_EQ(strided.writes[0].last, 56);
}

TEST_F(AccessTest, ShapesAloneAreNotRead) {
  EXPECT_THAT(of("aten::zeros_like", {ax}, ay).reads, IsEmpty());
  EXPECT_THAT(of("aten::randn_like", {ax}, ay).reads, IsEmpty());
  EXPECT_THAT(of("aten::new_full", {ax}, ay).reads, IsEmpty());
  EXPECT_TRUE(of("aten::randn_like", {ax}, ay).random);
}

TEST_F(AccessTest, RunningStatisticsAreUpdatedInTrainingAlone) {
  const ValueId mean = sketch.tensor({4}), var = sketch.tensor({4});  // storages 4 and 5
  const auto norm = [&](bool training) {
    return of("aten::batch_norm",
              {ax, aw, aw, tensor_arg(mean), tensor_arg(var), Arg{training}, Arg{0.1}, Arg{1e-5}, Arg{true}},
              ay);
  };
  EXPECT_THAT(storages(norm(true).reads), ElementsAre(0, 3, 3));
  EXPECT_THAT(storages(norm(true).writes), ElementsAre(1, 4, 5));
  EXPECT_FALSE(norm(true).writes[1].covers);
  EXPECT_THAT(storages(norm(false).reads), ElementsAre(0, 3, 3, 4, 5));
  EXPECT_THAT(storages(norm(false).writes), ElementsAre(1));
}

TEST_F(AccessTest, DropoutDrawsOnlyWhereItIsOn) {
  EXPECT_TRUE(of("aten::dropout", {ax, Arg{0.5}, Arg{true}}, ay).random);
  EXPECT_FALSE(of("aten::dropout", {ax, Arg{0.5}, Arg{false}}, ax).random);
  EXPECT_FALSE(of("aten::dropout", {ax, Arg{0.0}, Arg{true}}, ay).random);
  EXPECT_FALSE(of("aten::scaled_dot_product_attention", {ax, ax, ax}, ay).random);
  EXPECT_TRUE(of("aten::scaled_dot_product_attention", {ax, ax, ax, Arg{}, Arg{0.1}}, ay).random);
  EXPECT_TRUE(of("aten::bernoulli", {ax}, ay).random);
  EXPECT_TRUE(of("nereid::manual_seed", {Arg{int64_t{3}}}, Arg{}).seeds);
  EXPECT_TRUE(of("nereid::restore_generator", {Arg{int64_t{0}}, Arg{}}, Arg{}).seeds);
  EXPECT_FALSE(of("nereid::save_generator", {Arg{int64_t{0}}, Arg{}}, Arg{}).seeds);
}

TEST_F(AccessTest, LaunchesReachWhatTheirPointersReach) {
  const ValueId half = sketch.view(x, {2, 4}, {4, 1});
  const Launch launch = make_launch(sketch.kernel(), {half, y});
  const StepAccess unknown = access_of(sketch.trace, launch, {});
  EXPECT_THAT(storages(unknown.reads), ElementsAre(0, 1));
  EXPECT_THAT(storages(unknown.writes), ElementsAre(0, 1));
  EXPECT_EQ(unknown.reads[0].last, 64);  // the whole storage, not only the view
  const StepAccess known = access_of(sketch.trace, launch, [](const Kernel&) {
    return std::vector<ParameterUse>{{.read = true, .written = false}, {.read = false, .written = true}};
  });
  EXPECT_THAT(storages(known.reads), ElementsAre(0));
  EXPECT_THAT(storages(known.writes), ElementsAre(1));
  EXPECT_FALSE(known.writes[0].covers);
}

TEST_F(AccessTest, ADescriptorCoversItsShapeAndStrideParameters) {
  Launch launch = make_launch(sketch.kernel(), {});
  launch.alternatives[0].args = {
      DescriptorArg{.value = x, .shape = {4, 4}, .strides = {4, 1}, .block = {2, 2}},
      PointerArg{.value = y, .offset = 0}};
  const StepAccess access = access_of(sketch.trace, launch, [](const Kernel&) {
    return std::vector<ParameterUse>{{true, false},  {false, false}, {false, false},
                                     {false, false}, {false, false}, {false, true}};
  });
  EXPECT_THAT(storages(access.reads), ElementsAre(0));
  EXPECT_THAT(storages(access.writes), ElementsAre(1));
}

}  // namespace
}  // namespace nereid::trace
