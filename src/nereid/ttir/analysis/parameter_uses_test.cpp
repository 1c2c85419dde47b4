#include "nereid/ttir/analysis/parameter_uses.h"

#include <gtest/gtest.h>

#include "nereid/ttir/exec/executor.h"

namespace nereid::ttir {
namespace {

// r: only read; w: only written; b: both; -: neither.
std::string uses(const std::string& parameters, const std::string& body, const std::string& more = "") {
  const auto kernel = Kernel::load("module {\n  tt.func public @k(" + parameters + ") {\n" + body +
                                   "    tt.return\n  }\n" + more + "}\n");
  if (!kernel.ok()) return kernel.error().message;
  std::string text;
  for (const auto& p : kernel->parameters()) text += p.read ? (p.written ? 'b' : 'r') : p.written ? 'w' : '-';
  return text;
}

TEST(ParameterUses, LoadsStoresAndAtomics) {
  EXPECT_EQ(uses("%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %d: !tt.ptr<f32>, %n: i32",
                 "    %t = arith.constant true\n"
                 "    %x = tt.load %a : !tt.ptr<f32>\n"
                 "    %p = tt.addptr %b, %n : !tt.ptr<f32>, i32\n"
                 "    tt.store %p, %x : !tt.ptr<f32>\n"
                 "    %o = tt.atomic_rmw fadd, acq_rel, gpu, %c, %x, %t : (!tt.ptr<f32>, f32, i1) -> f32\n"),
            "rwb--");
}

TEST(ParameterUses, ThroughLoopsAndSelections) {
  EXPECT_EQ(
      uses("%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32",
           "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n    %f = arith.constant "
           "1.0 : f32\n"
           "    %end = scf.for %i = %zero to %n step %one iter_args(%p = %a) -> (!tt.ptr<f32>) : i32 {\n"
           "      %x = tt.load %p : !tt.ptr<f32>\n"
           "      %q = tt.addptr %p, %one : !tt.ptr<f32>, i32\n"
           "      scf.yield %q : !tt.ptr<f32>\n    }\n"
           "    %low = arith.cmpi slt, %n, %one : i32\n"
           "    %s = arith.select %low, %b, %c : !tt.ptr<f32>\n"
           "    tt.store %s, %f : !tt.ptr<f32>\n"),
      "rww-");
}

TEST(ParameterUses, AChosenAddressIsPerhapsNotWritten) {
  const auto kernel = Kernel::load(
      "module {\n  tt.func public @k(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32) {\n"
      "    %z = arith.constant 0 : i32\n    %low = arith.cmpi slt, %n, %z : i32\n"
      "    %x = tt.load %c : !tt.ptr<f32>\n"
      "    %s = arith.select %low, %a, %b : !tt.ptr<f32>\n    tt.store %s, %x : !tt.ptr<f32>\n"
      "    tt.store %b, %x : !tt.ptr<f32>\n    tt.return\n  }\n}\n");
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(kernel->parameters()[0].chosen);
  EXPECT_FALSE(kernel->parameters()[1].chosen);
  EXPECT_FALSE(kernel->parameters()[2].chosen);
}

TEST(ParameterUses, HintsOnOffsetsAreReadOver) {
  EXPECT_EQ(uses("%a: !tt.ptr<f32>, %n: i32",
                 "    %m = arith.addi %n, %n {tt.contiguity = dense<1024> : tensor<1xi32>, tt.divisibility = "
                 "dense<16> : tensor<1xi32>} : i32\n"
                 "    %p = tt.addptr %a, %m : !tt.ptr<f32>, i32\n    %x = tt.load %p : !tt.ptr<f32>\n"),
            "r-");
}

TEST(ParameterUses, ThroughCalls) {
  EXPECT_EQ(
      uses("%a: !tt.ptr<f32>, %b: !tt.ptr<f32>", "    tt.call @inner(%b) : (!tt.ptr<f32>) -> ()\n",
           "  tt.func private @inner(%p: !tt.ptr<f32>) attributes {noinline = true} {\n"
           "    %f = arith.constant 1.0 : f32\n    tt.store %p, %f : !tt.ptr<f32>\n    tt.return\n  }\n"),
      "-w");
}

TEST(ParameterUses, APointerFromANumberMayBeAny) {
  EXPECT_EQ(uses("%a: !tt.ptr<f32>, %n: i64",
                 "    %f = arith.constant 1.0 : f32\n    %p = tt.int_to_ptr %n : i64 -> !tt.ptr<f32>\n    "
                 "tt.store %p, %f : !tt.ptr<f32>\n"),
            "b-");
}

}  // namespace
}  // namespace nereid::ttir
