#include "nereid/ttir/exec/lowering/masked_divisions.h"

#include <gtest/gtest.h>

#include <vector>

#include "nereid/ttir/exec/executor.h"

namespace nereid::ttir {
namespace {

// %q[i] = %i / (what %p[i] holds, in so many columns), of 8 lanes of which 5 are on; `stored`: the mask of
// the store.
struct Divided {
  std::vector<FindingKind> found;
  std::vector<int32_t> q = std::vector<int32_t>(8, -7);
};
Divided divide(const std::string& divisor, const std::string& stored, std::vector<int32_t> p) {
  const auto kernel = Kernel::load(
      "module {\n  tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {\n"
      "    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
      "    %five = arith.constant dense<5> : tensor<8xi32>\n"
      "    %all = arith.constant dense<true> : tensor<8xi1>\n"
      "    %on = arith.cmpi slt, %i, %five : tensor<8xi32>\n"
      "    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>\n"
      "    %pa = tt.addptr %ps, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>\n"
      "    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>\n"
      "    %qa = tt.addptr %qs, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>\n"
      "    %c = tt.load %pa, %on : tensor<8x!tt.ptr<i32>>\n" +
      divisor + "    %r = arith.divsi %i, %d : tensor<8xi32>\n    tt.store %qa, %r, " + stored +
      " : tensor<8x!tt.ptr<i32>>\n    tt.return\n  }\n}\n");
  EXPECT_TRUE(kernel.ok()) << (kernel ? "" : kernel.error().message);
  Divided ran;
  if (!kernel) return ran;
  std::vector<Buffer> buffers(2);
  for (size_t k = 0; k < 2; ++k) {
    buffers[k].data = reinterpret_cast<std::byte*>(k == 0 ? p.data() : ran.q.data());
    buffers[k].bytes = 32;
    buffers[k].element_bytes = 4;
  }
  Launch launch;
  launch.grid = {1, 1, 1};
  launch.arguments = {Pointer{0, 0}, Pointer{1, 0}};
  const auto report = kernel->run(launch, buffers, {});
  EXPECT_TRUE(report.ok());
  for (const auto& finding : report->findings) ran.found.push_back(finding.kind);
  return ran;
}

const std::string kSame = "    %d = arith.muli %c, %c : tensor<8xi32>\n";
const std::string kShaped =
    "    %e = tt.expand_dims %c {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
    "    %d = tt.reshape %e : tensor<8x1xi32> -> tensor<8xi32>\n";

TEST(MaskedDivisions, LanesThatAreOffDivideByNothing) {
  for (const auto& divisor : {kSame, kShaped}) {
    const auto ran = divide(divisor, "%on", {1, 1, 1, 1, 1, 0, 0, 0});
    EXPECT_TRUE(ran.found.empty());
    EXPECT_EQ(ran.q, (std::vector<int32_t>{0, 1, 2, 3, 4, -7, -7, -7}));
  }
}

TEST(MaskedDivisions, TheirQuotientsAreUndefined) {
  const auto ran = divide(kSame, "%all", {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(ran.found.empty());
  EXPECT_EQ(ran.q[4], 4);
  for (size_t k = 5; k < 8; ++k) EXPECT_EQ(ran.q[k], 0x5A5A5A5A);
}

TEST(MaskedDivisions, LanesThatAreOnAreJudged) {
  const auto ran = divide(kSame, "%on", {1, 1, 0, 1, 1, 1, 1, 1});
  ASSERT_EQ(ran.found.size(), 1U);
  EXPECT_EQ(ran.found[0], FindingKind::kDivisionByZero);
}

}  // namespace
}  // namespace nereid::ttir
