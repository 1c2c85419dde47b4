#include "nereid/ttir/analysis/data_paths.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/ttir/exec/executor.h"

namespace nereid::ttir {
namespace {

// For each parameter that something is stored through: "to<from,from"; "!" after it where data decides the
// place.
std::string paths(const std::string& parameters, const std::string& body) {
  const auto kernel = Kernel::load("module {\n  tt.func public @k(" + parameters + ") {\n" + body +
                                   "    tt.return\n  }\n}\n");
  if (!kernel.ok()) return kernel.error().message;
  const auto found = kernel->data_paths();
  std::string text;
  for (size_t to = 0; to < found.sources.size(); ++to) {
    if (!kernel->parameters()[to].written) continue;
    text += fmt::format("{}{}<", text.empty() ? "" : " ", to);
    for (size_t from = 0; from < found.sources.size(); ++from)
      if (found.sources[to][from]) text += std::to_string(from);
    if (found.placed_by_data[to]) text += "!";
  }
  return text;
}

TEST(DataPaths, AddressesMasksAndSelectionsAreNoData) {
  const std::string parameters =
      "%a: !tt.ptr<i32>, %b: !tt.ptr<f32>, %c: !tt.ptr<i1>, %o: !tt.ptr<f32>, %n: i32";
  EXPECT_EQ(paths(parameters,
                  "    %i = tt.load %a : !tt.ptr<i32>\n"
                  "    %p = tt.addptr %b, %i : !tt.ptr<f32>, i32\n"
                  "    %x = tt.load %p : !tt.ptr<f32>\n"
                  "    %q = tt.addptr %o, %n : !tt.ptr<f32>, i32\n"
                  "    tt.store %q, %x : !tt.ptr<f32>\n"),
            "3<1");
  EXPECT_EQ(paths(parameters,
                  "    %i = tt.load %a : !tt.ptr<i32>\n"
                  "    %x = arith.sitofp %i : i32 to f32\n"
                  "    %m = tt.load %c : !tt.ptr<i1>\n"
                  "    %y = tt.load %b : !tt.ptr<f32>\n"
                  "    %z = arith.select %m, %x, %y : f32\n"
                  "    tt.store %o, %z : !tt.ptr<f32>\n"),
            "3<01");
}

TEST(DataPaths, PlacesByData) {
  const std::string parameters = "%a: !tt.ptr<i32>, %b: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32";
  EXPECT_EQ(paths(parameters,
                  "    %i = tt.load %a : !tt.ptr<i32>\n"
                  "    %x = arith.sitofp %n : i32 to f32\n"
                  "    %q = tt.addptr %o, %i : !tt.ptr<f32>, i32\n"
                  "    tt.store %q, %x : !tt.ptr<f32>\n"),
            "2<3!");
  EXPECT_EQ(paths(parameters,
                  "    %i = tt.load %a : !tt.ptr<i32>\n"
                  "    %zero = arith.constant 0 : i32\n"
                  "    %x = tt.load %b : !tt.ptr<f32>\n"
                  "    %m = arith.cmpi sgt, %i, %zero : i32\n"
                  "    scf.if %m {\n      tt.store %o, %x : !tt.ptr<f32>\n    }\n"),
            "2<1!");
}

TEST(DataPaths, WhatDecidesHowOftenALoopTurns) {
  const auto kernel = Kernel::load(
      "module {\n  tt.func public @k(%o: !tt.ptr<f32>, %n: i32, %m: i32) {\n"
      "    %zero = arith.constant 0 : i32\n    %two = arith.constant 2 : i32\n    %x = arith.constant 2.5 : "
      "f32\n"
      "    %half = arith.divsi %n, %two : i32\n"
      "    %sum = scf.for %i = %zero to %half step %two iter_args(%a = %x) -> (f32)  : i32 {\n"
      "      %b = arith.addf %a, %x : f32\n      scf.yield %b : f32\n    }\n"
      "    %q = tt.addptr %o, %m : !tt.ptr<f32>, i32\n    tt.store %q, %sum : !tt.ptr<f32>\n"
      "    tt.return\n  }\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  const auto paths = kernel->data_paths();
  EXPECT_EQ(paths.repeats, (std::vector<bool>{false, true, false}));
  EXPECT_THAT(paths.repeating_constants, testing::ElementsAre(0, 2));
  EXPECT_FALSE(paths.counts_programs);
}

TEST(DataPaths, ConstantsThatAreStored) {
  const auto kernel = Kernel::load(
      "module {\n  tt.func public @k(%o: !tt.ptr<f32>) {\n"
      "    %four = arith.constant 4 : i32\n    %x = arith.constant 2.5 : f32\n"
      "    %q = tt.addptr %o, %four : !tt.ptr<f32>, i32\n    tt.store %q, %x : !tt.ptr<f32>\n"
      "    tt.return\n  }\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  EXPECT_THAT(kernel->data_paths().constants, testing::ElementsAre(2.5));
}

}  // namespace
}  // namespace nereid::ttir
