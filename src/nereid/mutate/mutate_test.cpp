#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/mutate/faults/kernel_faults.h"
#include "nereid/mutate/report.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::mutate {
namespace {

std::vector<std::string> golden_kernels() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(NEREID_SOURCE_DIR "/tests/ttir/golden"))
    if (entry.path().extension() == ".ttir") texts.push_back(read_file(entry.path()).value());
  return texts;
}

TEST(KernelText, AnOperationIsWrittenAsItWasRead) {
  int operations = 0;
  for (const auto& text : golden_kernels()) {
    const KernelText kernel(text);
    for (size_t i = 0; i < kernel.lines().size(); ++i)
      if (kernel.operations()[i]) {
        EXPECT_EQ(write(*kernel.operations()[i]), kernel.lines()[i]);
        ++operations;
      }
    EXPECT_EQ(edited(kernel, {}), text.ends_with("\n") ? text : text + "\n");
  }
  EXPECT_GT(operations, 200);
}

TEST(KernelText, TypesFollowFromALine) {
  const auto type = [](const char* line) { return result_type(*read_operation(line)); };
  EXPECT_EQ(type("  %a = arith.addf %b, %c : tensor<4x8xf32> loc(#loc1)"), "tensor<4x8xf32>");
  EXPECT_EQ(type("%a = arith.cmpi slt, %b, %c : tensor<4xi32>"), "tensor<4xi1>");
  EXPECT_EQ(type("%a = tt.load %p, %m, %o : tensor<4x!tt.ptr<bf16>>"), "tensor<4xbf16>");
  EXPECT_EQ(type("%a = tt.splat %b : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>"), "tensor<4x!tt.ptr<f32>>");
  EXPECT_EQ(type("%a = arith.truncf %b : tensor<4xf32> to tensor<4xf16>"), "tensor<4xf16>");
  EXPECT_EQ(type("%a = arith.select %m, %b, %c : tensor<4xi1>, tensor<4xf32>"), "tensor<4xf32>");
  EXPECT_EQ(
      read_operation("%a = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %m : (!tt.ptr<f32>, f32, i1) -> f32")
          ->operands,
      (std::vector<std::string>{"%p", "%v", "%m"}));
  EXPECT_EQ(read_operation("%a = arith.cmpf olt, %b, %c#1 : f32")->operands,
            (std::vector<std::string>{"%b", "%c#1"}));
}

TEST(KernelFaults, NearlyAllAreKernelsAndEveryClassIsThere) {
  std::set<Fault> classes;
  int made = 0, legal = 0;
  for (const auto& text : golden_kernels()) {
    const KernelText kernel(text);
    for (const auto& fault : kernel_faults(kernel)) {
      const std::string changed = edited(kernel, fault.edits);
      EXPECT_NE(changed, text) << fault.what;
      const auto loaded = ttir::Kernel::load(changed);
      ++made, legal += loaded.ok() ? 1 : 0;
      if (loaded.ok()) classes.insert(fault.fault);
      if (loaded.ok()) continue;
      // An operation of another type is no kernel; text that does not parse would be our mistake.
      EXPECT_EQ(loaded.error().message.find("expected"), std::string::npos)
          << fault.what << ": " << loaded.error().message;
    }
  }
  EXPECT_GT(made, 500);
  EXPECT_GT(legal, made * 9 / 10);
  for (const Fault fault : kFaults)
    EXPECT_TRUE(classes.contains(fault) || fault == Fault::kConfiguration) << to_string(fault);
}

TEST(KernelRewrites, AreKernels) {
  int made = 0;
  for (const auto& text : golden_kernels()) {
    const KernelText kernel(text);
    for (const auto& rewrite : kernel_rewrites(kernel)) {
      ++made;
      EXPECT_TRUE(ttir::Kernel::load(edited(kernel, rewrite.edits)).ok()) << rewrite.what;
    }
  }
  EXPECT_GT(made, 5);
}

TEST(Report, IntervalsAreWilsons) {
  const Share share = wilson(9, 10);  // 0.5958 to 0.9821 by Wilson's formula
  EXPECT_DOUBLE_EQ(share.value, 0.9);
  EXPECT_NEAR(share.low, 0.5958, 1e-4);
  EXPECT_NEAR(share.high, 0.9821, 1e-4);
  EXPECT_EQ(wilson(0, 0).high, 0);
  EXPECT_NEAR(wilson(20000, 20000).high, 1, 1e-12);
  EXPECT_GT(wilson(20000, 20000).low, 0.9998);
}

TEST(Report, CountsWhatWasKilledAndSetAside) {
  const auto mutant = [](const char* id, bool witness, const char* verdict, bool passes_kernelbench) {
    ResultLine line{.id = id, .subject = "s"};
    line.fault = Fault::kMask, line.verdict = verdict;
    line.kernelbench = passes_kernelbench ? KernelBench::kPasses : KernelBench::kKills;
    if (witness) line.witness = Witness{"own", 1, "error 1"};
    return line;
  };
  ResultLine honest{.kind = ResultLine::Kind::kHonest, .id = "s", .subject = "s", .verdict = "Mismatch"};
  const std::vector<ResultLine> results = {
      mutant("a", true, "Unsafe", true),    mutant("b", true, "Verified", false),
      mutant("c", false, "Verified", true), mutant("d", false, "Disallowed", true),
      mutant("e", true, "Error", true),     honest};
  const Report report = report_of(results);
  const Row& row = report.rows.at(Fault::kMask);
  EXPECT_EQ(row.witnessed, 2);
  EXPECT_EQ(row.killed, 1);
  EXPECT_EQ(row.kernelbench_kills, 1);
  EXPECT_EQ(row.set_aside, 2);
  EXPECT_EQ(row.refused_unseen, 1);
  EXPECT_EQ(row.errors, 1);
  ASSERT_EQ(report.survivors.size(), 1U);
  EXPECT_EQ(report.survivors[0]->id, "b");
  EXPECT_EQ(report.refused.size(), 1U);
  for (const auto& line : results)
    EXPECT_EQ(to_json(result_from_json(to_json(line), "a line").value()), to_json(line));
}

}  // namespace
}  // namespace nereid::mutate
