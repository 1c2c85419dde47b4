#include "nereid/ttir/parse/parser.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "nereid/base/file.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/ir/verifier.h"

namespace nereid::ttir {
namespace {

std::string kernel(const std::string& body, const std::string& parameters = "%p: !tt.ptr<f32>, %n: i32") {
  return "module {\n  tt.func public @k(" + parameters + ") attributes {noinline = false} {\n" + body +
         "\n    tt.return\n  }\n}\n";
}
std::string trouble(const std::string& text) {
  const auto loaded = Kernel::load(text);
  return loaded ? "" : loaded.error().message;
}

TEST(Parser, ReadsEveryGoldenKernel) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(NEREID_SOURCE_DIR "/tests/ttir/golden")) {
    if (entry.path().extension() != ".ttir") continue;
    const auto text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    const auto loaded = Kernel::load(*text);
    EXPECT_TRUE(loaded.ok()) << entry.path() << ": " << (loaded ? "" : loaded.error().message);
    ++count;
    // No prefix of it does harm.
    for (size_t length = 0; length < text->size(); length += 1 + text->size() / 50)
      EXPECT_FALSE(parse(text->substr(0, length)).ok() && length < 40);
  }
  EXPECT_GE(count, 17);
}

TEST(Parser, LocationsGiveTheInnermostLineOfTheUser) {
  const auto module = parse(
      "#loc = loc(\"user.py\":3:0)\n#loc9 = loc(\"x\"(#loc))\n"
      "module {\n  tt.func public @k(%arg0: i32 loc(\"count\"(#loc))) attributes {noinline = false} {\n"
      "    %0 = arith.addi %arg0, %arg0 : i32 loc(#loc1)\n    %1 = arith.addi %arg0, %0 : i32 loc(#loc2)\n"
      "    %2 = arith.addi %arg0, %0 : i32 loc(fused[#loc9, #loc3])\n    tt.return loc(#loc)\n  } "
      "loc(#loc)\n} loc(#loc)\n"
      "#loc1 = loc(callsite(#loc3 at #loc4))\n#loc2 = loc(\"v\"(#loc5))\n#loc3 = "
      "loc(\"/x/triton/language/standard.py\":40:1)\n"
      "#loc4 = loc(\"user.py\":17:4)\n#loc5 = loc(callsite(#loc6 at #loc4))\n#loc6 = loc(\"user.py\":9:2)\n");
  ASSERT_TRUE(module.ok()) << module.error().message;
  const auto& f = module->functions[0];
  EXPECT_EQ(f.parameter_names[0], "count");
  const auto line = [&](size_t op) {
    return module->lines[static_cast<size_t>(f.body.blocks[0].ops[op].location)].line;
  };
  EXPECT_EQ(line(0), 17);
  EXPECT_EQ(line(1), 9);
  EXPECT_EQ(line(2), 3);
}

TEST(Parser, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(trouble("module {"), "TTIR line 1, column 9: expected a name");
  EXPECT_EQ(trouble(kernel("    %0 = arith.addi %n, %m : i32")),
            "TTIR line 3, column 28: %m is not defined here");
  EXPECT_EQ(trouble(kernel("    %0 = arith.addi %n, %n : i64")),
            "TTIR line 3, column 33: a value of type i32 is used as i64");
  EXPECT_EQ(trouble(kernel("    %0 = tt.frobnicate %n : i32")),
            "Unsupported: operation tt.frobnicate (TTIR line 3)");
  EXPECT_EQ(trouble(kernel("    %0 = arith.constant 1 : i32\n    %0 = arith.constant 2 : i32")),
            "TTIR line 5, column 5: %0 is defined twice");
  EXPECT_NE(trouble(kernel("    cf.br ^bb7")).find("^bb7 is never defined"), std::string::npos);
  EXPECT_NE(
      trouble(kernel("    %0 = arith.constant dense<1.0> : tensor<99999999x99999999xf32>")).find("at most"),
      std::string::npos);
  EXPECT_NE(
      trouble(kernel("    %0 = arith.constant dense<[1, 2, 3]> : tensor<4xi32>")).find("expected 4 numbers"),
      std::string::npos);
}

TEST(Parser, NestingIsBounded) {
  std::string body, end;
  for (int k = 0; k < 5000; ++k) {
    body += "scf.if %c {\n";
    end += "}\n";
  }
  EXPECT_NE(trouble(kernel(body + end, "%c: i1")).find("nested deeper"), std::string::npos);
  std::string location = "loc(";
  for (int k = 0; k < 5000; ++k) location += "\"x\"(";
  EXPECT_NE(trouble("#loc = " + location).find("nested too deeply"), std::string::npos);
  // Aliases that go round in a circle are unknown places, not endless ones.
  EXPECT_EQ(trouble("#loc1 = loc(#loc2)\n#loc2 = loc(callsite(#loc1 at #loc1))\n" +
                    kernel("    gpu.barrier loc(#loc1)")),
            "");
}

TEST(Verifier, RejectsWhatDoesNotFit) {
  EXPECT_NE(trouble(kernel("    %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<16xi32>"))
                .find("expected a tensor of end - start"),
            std::string::npos);
  EXPECT_NE(trouble(kernel("    %0 = tt.load %p, %n : !tt.ptr<f32>")).find("expected a mask of i1"),
            std::string::npos);
  EXPECT_NE(trouble(kernel("    %0 = tt.splat %n : i32 -> tensor<4xi32>\n    %1 = tt.reshape %0 : "
                           "tensor<4xi32> -> tensor<8xi32>"))
                .find("as many elements"),
            std::string::npos);
  EXPECT_NE(trouble(kernel("    %0 = tt.splat %n : i32 -> tensor<4xi32>\n    %1 = tt.trans %0 {order = "
                           "array<i32: 3>} : tensor<4xi32> -> tensor<4xi32>"))
                .find("an order"),
            std::string::npos);
  EXPECT_NE(trouble(kernel("    tt.call @k(%p, %n) : (!tt.ptr<f32>, i32) -> ()")).find("nested deeper"),
            std::string::npos);
  EXPECT_NE(trouble(kernel("    scf.yield")).find("to end its block"), std::string::npos);
}

}  // namespace
}  // namespace nereid::ttir
