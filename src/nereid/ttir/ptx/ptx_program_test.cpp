#include "nereid/ttir/ptx/ptx_program.h"

#include <gtest/gtest.h>

#include <bit>

namespace nereid::ttir {
namespace {

// Runs `text` on operands given as bits; the results' bits.
std::vector<uint64_t> run(std::string_view text, std::string_view constraints,
                          const std::vector<uint64_t>& operands) {
  const auto program = PtxProgram::parse(text, constraints);
  if (!program) {
    ADD_FAILURE() << program.error().message;
    return {};
  }
  std::vector<uint64_t> registers(static_cast<size_t>(program->registers()));
  program->start(registers.data());
  std::copy(operands.begin(), operands.end(), registers.begin() + program->results());
  program->run(registers.data());
  registers.resize(static_cast<size_t>(program->results()));
  return registers;
}

uint64_t f(float v) { return std::bit_cast<uint32_t>(v); }
std::string error(std::string_view text, std::string_view constraints) {
  const auto program = PtxProgram::parse(text, constraints);
  return program ? "" : program.error().message;
}
using Bits = std::vector<uint64_t>;

TEST(PtxProgram, StraightLineCode) {
  EXPECT_EQ(run("{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.s32 $0, $1, 7, p; }", "=r,r,r", {3, 4}),
            Bits{3});
  EXPECT_EQ(run("{ .reg .f32 t; mul.f32 t, $1, $2; add.f32 $0, t, 0f3F800000; }", "=f,f,f", {f(3), f(4)}),
            Bits{f(13)});
}

TEST(PtxProgram, Integers) {
  EXPECT_EQ(run("shr.s32 $0, $1, 4;", "=r,r", {0x80000000u}), Bits{0xf8000000u});
  EXPECT_EQ(run("shr.u32 $0, $1, 40;", "=r,r", {0x80000000u}), Bits{0});
  EXPECT_EQ(run("mul.hi.u32 $0, $1, $2;", "=r,r,r", {0xffffffffu, 0xffffffffu}), Bits{0xfffffffeu});
  EXPECT_EQ(run("mul.wide.s32 $0, $1, $2;", "=l,r,r", {0xffffffffu, 5}), Bits{static_cast<uint64_t>(-5)});
  EXPECT_EQ(run("bfe.s32 $0, $1, 4, 4;", "=r,r", {0x80}), Bits{0xfffffff8u});
  EXPECT_EQ(run("bfi.b32 $0, $1, $2, 8, 4;", "=r,r,r", {0xa, 0xffffffffu}), Bits{0xfffffaffu});
  EXPECT_EQ(run("lop3.b32 $0, $1, $2, $3, 0x96;", "=r,r,r,r", {1, 2, 4}), Bits{7});
  EXPECT_EQ(run("prmt.b32 $0, $1, $2, 0x5410;", "=r,r,r", {0x11112222, 0x33334444}), Bits{0x44442222});
  EXPECT_EQ(run("shf.l.wrap.b32 $0, $1, $2, 8;", "=r,r,r", {0x12345678, 0xabcdef01}), Bits{0xcdef0112});
  EXPECT_EQ(run("brev.b32 $0, $1;", "=r,r", {1}), Bits{0x80000000u});
  EXPECT_EQ(run("clz.b32 $0, $1;", "=r,r", {1}), Bits{31});
}

TEST(PtxProgram, Conversions) {
  EXPECT_EQ(run("cvt.rzi.s32.f32 $0, $1;", "=r,f", {f(-2.7f)}), Bits{static_cast<uint32_t>(-2)});
  EXPECT_EQ(run("cvt.rni.u8.f32 $0, $1;", "=r,f", {f(300)}), Bits{255});
  EXPECT_EQ(run("cvt.rn.f32.s32 $0, $1;", "=f,r", {static_cast<uint32_t>(-3)}), Bits{f(-3)});
  EXPECT_EQ(run("cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", {f(1), f(2)}), Bits{0x3c004000});
  EXPECT_EQ(run("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f", {f(1000), f(-1)}), Bits{0x7eb8});
  EXPECT_EQ(run("cvt.rmi.f32.f32 $0, $1;", "=f,f", {f(-0.5f)}), Bits{f(-1)});
}

TEST(PtxProgram, HalvesOfARegister) {
  EXPECT_EQ(run("add.f16x2 $0, $1, $2;", "=r,r,r", {0x3c004000, 0x40003c00}), Bits{0x42004200});
  EXPECT_EQ(run("{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }", "=r,r", {0x12345678}),
            Bits{0x56781234});
}

TEST(PtxProgram, WhatIsNotUnderstoodIsNamed) {
  EXPECT_EQ(error("ld.global.u32 $0, [$1];", "=r,l"), "the instruction ld.global.u32");
  EXPECT_EQ(error("add.rz.f32 $0, $1, $2;", "=f,f,f"), "the instruction add.rz.f32");
  EXPECT_EQ(error("add.f32 $0, $1;", "=f,f"), "so many operands in \"add.f32 $0, $1\"");
  EXPECT_EQ(error("add.f32 $0, $1, t;", "=f,f"), "the operands of \"add.f32 $0, $1, t\"");
  EXPECT_EQ(error("add.f32 $0, $1, $9;", "=f,f"), "the operands of \"add.f32 $0, $1, $9\"");
  EXPECT_EQ(error("@p add.f32 $0, $1, $1;", "=f,f"), "the predicate of \"@p add.f32 $0, $1, $1\"");
  EXPECT_EQ(error("add.f32 $0, $1, $1;", "=f,f,~{memory}"), "the constraint \"~{memory}\"");
  EXPECT_EQ(error("/* add", "=f,f"), "a comment without an end");
}

}  // namespace
}  // namespace nereid::ttir
