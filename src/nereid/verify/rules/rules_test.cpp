#include "nereid/verify/rules/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/verify/analysis/assembly.h"
#include "tests/support/trace_analysis.h"

namespace nereid::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> rules_of(const std::vector<Evidence>& list) {
  std::vector<std::string> out;
  for (const auto& e : list) out.push_back(e.rule);
  return out;
}

class Rules : public testing::Test {
 protected:
  Rules() { reference.plain("aten::relu", Work::kPointwise); }
  std::vector<std::string> broken(Policy policy = Policy::kMostly) {
    return rules_of(check_rules(reference.facts(), candidate.facts(), policy).broken);
  }
  AnalysisBuilder reference, candidate;
};

TEST_F(Rules, AnHonestKernelBreaksNone) {
  candidate.plain("relu_kernel", Work::kTriton);
  for (const auto policy : {Policy::kStrict, Policy::kMostly, Policy::kHybrid})
    EXPECT_THAT(broken(policy), IsEmpty());
  const auto report = check_rules(reference.facts(), candidate.facts(), Policy::kMostly);
  EXPECT_EQ(report.launches, 1);
  EXPECT_EQ(report.kernels, 1);
  EXPECT_EQ(report.triton_share, 1);
  EXPECT_THAT(report.live_launches, ElementsAre(0));
  EXPECT_FALSE(report.frozen_parameters);
}

TEST_F(Rules, NoLaunch) {
  candidate.plain("aten::relu", Work::kPointwise);
  EXPECT_THAT(broken(), ElementsAre("no-launch", "aten-share"));
  EXPECT_THAT(broken(Policy::kHybrid), ElementsAre("no-launch"));
}

TEST_F(Rules, ViewsOfInputsNeedNoLaunch) {
  enum class Returned { kInput, kCopy, kOldInput };
  const auto returning = [](Returned what) {
    AnalysisBuilder b;
    int first = -1;
    for (int call = 0; call < 3; ++call) {
      const int in = b.forward(call), made = b.storage();
      if (call == 0) first = in;
      if (what == Returned::kCopy)
        b.step({.name = "aten::clone", .work = Work::kFree, .reads = {in}, .writes = {made}});
      b.returns({what == Returned::kInput ? in : what == Returned::kCopy ? made : first});
    }
    return b;
  };
  const auto rules = [&](const TraceAnalysis& theirs, const TraceAnalysis& ours) {
    return rules_of(check_rules(theirs, ours, Policy::kStrict).broken);
  };
  auto view = returning(Returned::kInput), copy = returning(Returned::kCopy),
       old = returning(Returned::kOldInput);
  EXPECT_THAT(rules(view.facts(), view.facts()), IsEmpty());
  EXPECT_THAT(rules(view.facts(), copy.facts()), ElementsAre("no-launch"));
  EXPECT_THAT(rules(copy.facts(), view.facts()), ElementsAre("no-launch", "shared-output"));
  EXPECT_THAT(rules(view.facts(), old.facts()), testing::Contains("no-launch"));
  EXPECT_THAT(rules(reference.facts(), view.facts()), ElementsAre("no-launch", "shared-output"));
}

TEST_F(Rules, ALaunchNextToTheWorkDoesNotCount) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage(), unused = candidate.storage();
    candidate.step({.name = "decoy", .reads = {in}, .writes = {unused}});
    candidate.step({.name = "aten::relu", .work = Work::kPointwise, .reads = {in}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(Policy::kHybrid), ElementsAre("output-without-launch"));
  EXPECT_THAT(check_rules(reference.facts(), candidate.facts(), Policy::kHybrid).live_launches, IsEmpty());
}

TEST_F(Rules, EveryFloatingOutputNeedsALaunch) {
  AnalysisBuilder two;
  for (auto* b : {&two, &candidate})
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), a = b->storage(), c = b->storage();
      b->step(
          {.name = "k", .work = b == &two ? Work::kPointwise : Work::kTriton, .reads = {in}, .writes = {a}});
      b->step({.name = "aten::relu",
               .work = Work::kPointwise,
               .reads = {in},
               .writes = {c},
               .flops = 1,
               .bytes = 1});
      b->returns({a, c});
    }
  const auto report = check_rules(two.facts(), candidate.facts(), Policy::kMostly);
  EXPECT_THAT(rules_of(report.broken), ElementsAre("output-without-launch"));
  EXPECT_THAT(report.broken[0].sentence, HasSubstr("Output 1 comes from aten::relu"));
  EXPECT_EQ(report.broken[0].line, 2);
}

TEST_F(Rules, WhatTheReferenceHandsThroughNeedsNone) {
  AnalysisBuilder two;
  for (auto* b : {&two, &candidate})
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), a = b->storage();
      b->step(
          {.name = "k", .work = b == &two ? Work::kPointwise : Work::kTriton, .reads = {in}, .writes = {a}});
      b->returns({a, in});
    }
  EXPECT_THAT(check_rules(two.facts(), candidate.facts(), Policy::kStrict).broken, IsEmpty());
}

TEST_F(Rules, PoliciesOfWhoDoesTheWork) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), mid = candidate.storage(), out = candidate.storage();
    candidate.step({.name = "aten::mul",
                    .work = Work::kPointwise,
                    .reads = {in},
                    .writes = {mid},
                    .flops = 5,
                    .bytes = 5});
    candidate.step({.name = "k", .reads = {mid}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(Policy::kStrict), ElementsAre("aten-compute"));
  EXPECT_THAT(broken(Policy::kMostly), IsEmpty());
  EXPECT_THAT(broken(Policy::kHybrid), IsEmpty());
  EXPECT_NEAR(check_rules(reference.facts(), candidate.facts(), Policy::kMostly).triton_share, 100.0 / 105,
              1e-12);
}

TEST_F(Rules, TheShareCountsFlopsAndBytes) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), mid = candidate.storage(), out = candidate.storage();
    candidate.step({.name = "aten::mul",
                    .work = Work::kPointwise,
                    .reads = {in},
                    .writes = {mid},
                    .flops = 1,
                    .bytes = 50});
    candidate.step({.name = "k", .reads = {mid}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("aten-share"));
}

TEST_F(Rules, HeavyAtenWorkIsForbiddenHoweverSmall) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), mid = candidate.storage(), out = candidate.storage(),
              dead = candidate.storage();
    candidate.step({.name = "aten::mm",
                    .work = Work::kHeavy,
                    .reads = {in},
                    .writes = {mid},
                    .flops = 1,
                    .bytes = 1,
                    .kind = "a contraction"});
    candidate.step({.name = "aten::softmax", .work = Work::kHeavy, .reads = {in}, .writes = {dead}});
    candidate.step({.name = "k", .reads = {mid}, .writes = {out}, .flops = 1e9, .bytes = 1e9});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("aten-compute"));
  EXPECT_THAT(check_rules(reference.facts(), candidate.facts(), Policy::kMostly).broken[0].sentence,
              HasSubstr("aten::mm, a contraction,"));
  EXPECT_THAT(broken(Policy::kHybrid), IsEmpty());
}

TEST_F(Rules, InputsAreNotWritten) {
  for (auto* b : {&reference, &candidate}) {
    *b = AnalysisBuilder();
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), out = b->storage();
      b->step({.name = "aten::relu_", .work = Work::kFree, .reads = {in}, .writes = {in}});
      b->step({.name = "k",
               .work = b == &reference ? Work::kPointwise : Work::kTriton,
               .reads = {in},
               .writes = {out}});
      b->returns({out});
    }
  }
  EXPECT_THAT(broken(), IsEmpty());
  reference = AnalysisBuilder();
  reference.plain("aten::relu", Work::kPointwise);
  EXPECT_THAT(broken(), ElementsAre("input-written"));
}

TEST_F(Rules, WhetherAChosenInputIsWrittenReplaysShow) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    candidate.step({.name = "k", .reads = {in}, .writes = {in, out}, .perhaps_writes = {in, out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, LaunchesMayNotWriteInputsEither) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    candidate.step({.name = "k", .reads = {in}, .writes = {in, out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("input-written"));
}

TEST_F(Rules, MemoryIsBoundedByTheReferences) {
  candidate.plain("relu_kernel", Work::kTriton);
  candidate.trace().storages.back().bytes = int64_t{1} << 32;
  EXPECT_THAT(broken(), ElementsAre("too-much-memory"));
  reference.trace().storages.back().bytes = int64_t{1} << 29;
  EXPECT_THAT(broken(), IsEmpty());
}

// A workspace that each call writes before it reads, against a cache that a call reads as an earlier one left
// it.
TEST_F(Rules, WorkspaceIsFreeAndACacheIsNot) {
  AnalysisBuilder cache;
  for (auto* b : {&candidate, &cache}) {
    const int kept = b->storage();
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), out = b->storage();
      if (b == &candidate || call == 0) b->step({.name = "fill", .reads = {in}, .writes = {kept}});
      b->step({.name = "k", .reads = {in, kept}, .writes = {out}});
      b->returns({out});
    }
  }
  EXPECT_THAT(broken(), IsEmpty());
  EXPECT_THAT(rules_of(check_rules(reference.facts(), cache.facts(), Policy::kMostly).broken),
              ElementsAre("reuse-of-inputs", "does-less"));
}

// Replays show whether it reads what an earlier call left; of what PyTorch reads they do not.
TEST_F(Rules, MemoryThatAKernelReadsAndWritesIsLeftToReplays) {
  AnalysisBuilder copied;
  for (auto* b : {&candidate, &copied}) {
    const int kept = b->storage();
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), out = b->storage(), copy = b->storage();
      if (b == &copied) b->step({.name = "clone", .work = Work::kFree, .reads = {kept}, .writes = {copy}});
      b->step({.name = "k", .reads = {in, kept, copy}, .writes = {out, kept}});
      b->returns({out});
    }
  }
  const auto report = check_rules(reference.facts(), candidate.facts(), Policy::kMostly);
  EXPECT_THAT(rules_of(report.broken), IsEmpty());
  ASSERT_EQ(report.left_as_found.size(), 1);
  EXPECT_TRUE(report.left_as_found[0].may_be_dirty);
  EXPECT_THAT(rules_of(check_rules(reference.facts(), copied.facts(), Policy::kMostly).broken),
              ElementsAre("reuse-of-inputs"));
}

// Replays show whether it is left as it was when the first call's kernel began.
TEST_F(Rules, ACounterThatIsMadeOfNoInputsIsLeftToReplays) {
  const int kept = candidate.storage();
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    if (call == 0) candidate.step({.name = "zeros", .reads = {}, .writes = {kept}});
    candidate.step({.name = "k", .reads = {in, kept}, .writes = {out, kept}});
    candidate.returns({out});
  }
  const auto report = check_rules(reference.facts(), candidate.facts(), Policy::kMostly);
  EXPECT_THAT(rules_of(report.broken), IsEmpty());
  ASSERT_EQ(report.left_as_found.size(), 1);
  EXPECT_EQ(report.left_as_found[0].storage, kept);
  EXPECT_EQ(report.left_as_found[0].step, 1);
  candidate.trace().storages[static_cast<size_t>(kept)].bytes = int64_t{1} << 30;
  EXPECT_THAT(broken(), ElementsAre("reuse-of-inputs")) << "more than replays copy";
}

TEST_F(Rules, AStatefulReferenceMayBeFollowed) {
  reference = AnalysisBuilder();
  for (auto* b : {&reference, &candidate}) {
    const int kept = b->storage(trace::Role::kBuffer, "mean");
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), out = b->storage();
      b->step({.name = "k",
               .work = b == &reference ? Work::kPointwise : Work::kTriton,
               .reads = {in, kept},
               .writes = {out, kept}});
      b->returns({out});
    }
  }
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, WeightsMayBePackedOnce) {
  const int packed = candidate.storage();
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    if (call == 0) candidate.step({.name = "pack", .reads = {candidate.w}, .writes = {packed}});
    candidate.step({.name = "k", .reads = {in, packed}, .writes = {out}});
    candidate.returns({out});
  }
  const auto report = check_rules(reference.facts(), candidate.facts(), Policy::kStrict);
  EXPECT_THAT(report.broken, IsEmpty());
  EXPECT_TRUE(report.frozen_parameters);
  EXPECT_THAT(rules_of(report.remarks), ElementsAre("frozen-parameters"));
}

TEST_F(Rules, LaterCallsMustNotDoLess) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    if (call == 0) candidate.step({.name = "refine", .reads = {in}, .writes = {out}});
    candidate.step({.name = "k", .reads = {in}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("does-less"));
  candidate.trace().storages[0].pinned = true;  // the amount of work follows integers that the host reads
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, AFirstCallMayWarmUp) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    for (int i = 0; i < (call == 0 ? 3 : 1); ++i)
      candidate.step({.name = "k", .reads = {in}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, OutputsAreMadeInTheCall) {
  const int kept = candidate.storage();
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call);
    candidate.step({.name = "k", .reads = {in}, .writes = {kept}});
    candidate.returns({kept});
  }
  EXPECT_THAT(broken(), ElementsAre("stale-output"));
}

TEST_F(Rules, ABufferThatEveryCallOverwritesIsARemarkUnlessItIsForbidden) {
  const int kept = candidate.storage();
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call);
    candidate.step({.name = "k", .reads = {in}, .writes = {kept}, .writes_all = true});
    candidate.returns({kept});
  }
  auto report = check_rules(reference.facts(), candidate.facts(), Policy::kStrict);
  EXPECT_THAT(report.broken, IsEmpty());
  EXPECT_TRUE(report.reused_output);
  EXPECT_THAT(rules_of(report.remarks), ElementsAre("reused-output"));
  forbid({"reused-output"}, report);
  EXPECT_THAT(rules_of(report.broken), ElementsAre("reused-output"));
  EXPECT_THAT(report.remarks, IsEmpty());
}

TEST_F(Rules, WhatComesBeforeALaunchIsAStep) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), middle = candidate.storage(), out = candidate.storage();
    StepAnalysis product{.name = "aten::mm", .key = "aten::mm", .kind = "contraction", .work = Work::kHeavy};
    product.reads = {in}, product.writes = {middle}, product.flops = product.bytes = 1;
    candidate.step({.name = "k", .reads = {middle}, .writes = {out}, .before = {product}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("aten-compute"));
  EXPECT_THAT(broken(Policy::kHybrid), IsEmpty());
}

TEST_F(Rules, IntegersOnTheOnlyWayToAnOutputAreTheWork) {
  for (const bool both : {false, true}) {
    AnalysisBuilder b;
    for (int call = 0; call < 3; ++call) {
      const int in = b.forward(call), counts = b.storage(), out = b.storage();
      b.step({.name = "aten::bincount",
              .work = Work::kFree,
              .reads = {in},
              .writes = {counts},
              .bytes = 10,
              .over_integers = Work::kHeavy});
      b.step({.name = "k",
              .reads = both ? std::vector<int>{in, counts} : std::vector<int>{counts},
              .writes = {out}});
      b.returns({out});
    }
    const auto report = check_rules(reference.facts(), b.facts(), Policy::kStrict);
    if (both) {
      EXPECT_THAT(report.broken, IsEmpty());
    } else {
      EXPECT_THAT(rules_of(report.broken), ElementsAre("aten-compute"));
    }
  }
}

TEST_F(Rules, BookkeepingMovesFewBytes) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), order = candidate.storage(), out = candidate.storage();
    candidate.step({.name = "aten::sort",
                    .work = Work::kFree,
                    .reads = {in},
                    .writes = {order},
                    .bytes = 50,
                    .over_integers = Work::kHeavy});
    candidate.step({.name = "k", .reads = {in, order}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("aten-compute"));
  EXPECT_THAT(broken(Policy::kHybrid), IsEmpty());
}

TEST_F(Rules, ReturningTheFirstCallsOutput) {
  int kept = -1;
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call);
    if (call == 0) kept = candidate.storage();
    if (call == 0) candidate.step({.name = "k", .reads = {in}, .writes = {kept}});
    candidate.returns({kept});
  }
  const auto rules = broken();
  EXPECT_THAT(rules, testing::Contains("no-launch"));
  EXPECT_THAT(rules, testing::Contains("stale-output"));
}

TEST_F(Rules, RandomDraws) {
  AnalysisBuilder dropout;
  for (auto* b : {&candidate, &dropout})
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), noise = b->storage(), out = b->storage();
      b->step({.name = "aten::rand", .work = Work::kFree, .writes = {noise}, .random = true});
      b->step({.name = "k",
               .work = b == &dropout ? Work::kPointwise : Work::kTriton,
               .reads = {in, noise},
               .writes = {out}});
      b->returns({out});
    }
  EXPECT_THAT(broken(), ElementsAre("random-draw"));
  EXPECT_THAT(check_rules(dropout.facts(), candidate.facts(), Policy::kMostly).broken, IsEmpty());
}

TEST_F(Rules, DrawsOfTheReferenceAreFreeWhereTheirOperandsAreConstants) {
  enum class Operand { kConstant, kInput, kParameter };
  const auto made = [](Operand operand, bool in_kernel) {
    AnalysisBuilder b;
    for (int call = 0; call < 3; ++call) {
      const int in = b.forward(call), ones = b.storage(), drawn = b.storage(), out = b.storage();
      b.step({.name = "aten::ones", .work = Work::kFree, .writes = {ones}});
      const int of = operand == Operand::kConstant ? ones : operand == Operand::kInput ? in : b.w;
      b.step({.name = "aten::dropout",
              .work = Work::kPointwise,
              .reads = {of},
              .writes = {drawn},
              .random = true});
      b.step({.name = in_kernel ? "k" : "aten::mul",
              .work = in_kernel ? Work::kTriton : Work::kPointwise,
              .reads = {in, drawn},
              .writes = {out}});
      b.returns({out});
    }
    return b;
  };
  const auto broken_by = [](AnalysisBuilder reference, AnalysisBuilder candidate, Policy policy) {
    std::vector<std::string> rules;
    for (const auto& e : check_rules(reference.facts(), candidate.facts(), policy).broken)
      rules.push_back(e.rule);
    return rules;
  };
  const auto reference = made(Operand::kInput, false), drawn = made(Operand::kConstant, true);
  for (const Policy policy : {Policy::kStrict, Policy::kMostly, Policy::kHybrid})
    EXPECT_THAT(broken_by(reference, drawn, policy), IsEmpty());
  for (const Operand operand : {Operand::kInput, Operand::kParameter})
    EXPECT_THAT(broken_by(reference, made(operand, true), Policy::kStrict), ElementsAre("aten-compute"));
  AnalysisBuilder draws_nothing;
  for (int call = 0; call < 3; ++call) {
    const int in = draws_nothing.forward(call), out = draws_nothing.storage();
    draws_nothing.step({.name = "aten::relu", .work = Work::kPointwise, .reads = {in}, .writes = {out}});
    draws_nothing.returns({out});
  }
  EXPECT_THAT(broken_by(draws_nothing, drawn, Policy::kStrict),
              testing::UnorderedElementsAre("random-draw", "aten-compute"));
}

TEST_F(Rules, ConstantOutputs) {
  for (int call = 0; call < 3; ++call) {
    candidate.forward(call);
    const int out = candidate.storage();
    candidate.step({.name = "k", .reads = {candidate.w}, .writes = {out}});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("constant-output"));
  reference = AnalysisBuilder();  // unless the reference's is constant too
  for (int call = 0; call < 3; ++call) {
    reference.forward(call);
    const int out = reference.storage();
    reference.step({.name = "aten::relu", .work = Work::kPointwise, .reads = {reference.w}, .writes = {out}});
    reference.returns({out});
  }
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, KernelsKeepToTheirOwn) {
  candidate.plain("k", Work::kTriton);
  candidate.kernel(
      "k", {.int_to_ptr = true, .assembly = {"tanh.approx.f32 $0, $1;"}, .branches_on_float_data = true});
  EXPECT_THAT(broken(), ElementsAre("int-to-ptr"));
  candidate = AnalysisBuilder();
  candidate.plain("k", Work::kTriton);
  candidate.kernel(
      "k", {.int_to_ptr = false, .assembly = {"ld.global.u32 $0, [$1];"}, .branches_on_float_data = true});
  const auto report = check_rules(reference.facts(), candidate.facts(), Policy::kMostly);
  EXPECT_THAT(rules_of(report.broken), ElementsAre("inline-assembly"));
  EXPECT_EQ(report.broken[0].kernel, "k");
  EXPECT_EQ(report.broken[0].line, 7);
  EXPECT_THAT(rules_of(report.remarks), ElementsAre("float-branch"));
}

TEST_F(Rules, AKernelThatCannotBeReadIsBlamedForWhatItsTextShows) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    candidate.step({.name = "k", .reads = {in, out}, .writes = {in, out}});
    candidate.returns({out});
  }
  candidate.kernel("k", {.unreadable = "TTIR line 1"});
  EXPECT_THAT(broken(), IsEmpty());
  candidate.kernel("f", {.unreadable = "Unsupported: external function f", .foreign_function = "f"});
  EXPECT_THAT(broken(), ElementsAre("foreign-function"));
}

TEST_F(Rules, IntegerOutputsAloneNeedALaunchToo) {
  for (auto* b : {&reference, &candidate}) {
    *b = AnalysisBuilder();
    for (int call = 0; call < 3; ++call) {
      const int in = b->forward(call), out = b->storage(), unused = b->storage();
      b->step({.name = "decoy", .reads = {in}, .writes = {unused}});
      b->step({.name = "aten::argmax",
               .work = b == &reference ? Work::kHeavy : Work::kFree,
               .reads = {in},
               .writes = {out}});
      b->returns({out}, trace::DType::kI64);
    }
  }
  EXPECT_THAT(broken(), ElementsAre("output-without-launch"));
}

TEST_F(Rules, AnOverwrittenLaunchIsNotOnThePath) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    candidate.step({.name = "decoy", .reads = {in}, .writes = {out}});
    candidate.step(
        {.name = "aten::copy_", .work = Work::kFree, .reads = {in}, .writes = {out}, .overwrites = true});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), ElementsAre("output-without-launch"));
}

TEST_F(Rules, ALaunchWithoutEffectDoesNotCount) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), mid = candidate.storage(), out = candidate.storage();
    candidate.step({.name = "aten::relu", .work = Work::kPointwise, .reads = {in}, .writes = {mid}});
    candidate.step({.name = "big", .reads = {mid}, .writes = {mid}, .flops = 1e9, .bytes = 1e9});
    candidate.step({.name = "copy", .reads = {mid}, .writes = {out}, .flops = 0, .bytes = 100});
    candidate.returns({out});
  }
  EXPECT_THAT(broken(), IsEmpty());
  const auto report =
      check_effects(reference.facts(), candidate.facts(), Policy::kMostly, {{{1}, {false}}, {{2}, {true}}});
  EXPECT_THAT(rules_of(report.broken), ElementsAre("aten-share"));
  EXPECT_THAT(rules_of(report.remarks), ElementsAre("launch-without-effect"));
  const auto none =
      check_effects(reference.facts(), candidate.facts(), Policy::kHybrid, {{{1}, {false}}, {{2}, {false}}});
  EXPECT_THAT(rules_of(none.broken), ElementsAre("launch-without-effect"));
  EXPECT_THAT(
      check_effects(reference.facts(), candidate.facts(), Policy::kHybrid, {{{1}, {true}}, {{2}, {true}}})
          .broken,
      IsEmpty());
}

TEST_F(Rules, AnOutputMayDependOnLaunchesThatWereNotLeftOutInTurn) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), first = candidate.storage(), second = candidate.storage();
    candidate.step({.name = "one", .reads = {in}, .writes = {first}});
    candidate.step({.name = "two", .reads = {in}, .writes = {second}});
    candidate.returns({first, second});
  }
  const auto effects = [&](std::vector<LeftOut> trials) {
    return check_effects(reference.facts(), candidate.facts(), Policy::kStrict, trials).broken;
  };
  EXPECT_THAT(effects({{{0}, {true, false}}, {{0, 1}, {true, true}, true}}), IsEmpty());
  const auto broken = effects({{{0}, {true, false}}, {{0, 1}, {true, false}, true}});
  ASSERT_THAT(rules_of(broken), ElementsAre("launch-without-effect"));
  EXPECT_EQ(broken[0].sentence, "Output 1 stays the same when all launches are left out.");
}

TEST_F(Rules, ManyLaunchesAreSampledByKernel) {
  for (int call = 0; call < 3; ++call) {
    const int in = candidate.forward(call), out = candidate.storage();
    for (int i = 0; i < 50; ++i)
      candidate.step({.name = i % 25 == 3 ? "rare" : "often", .reads = {in, out}, .writes = {out}});
    candidate.returns({out});
  }
  const auto live = check_rules(reference.facts(), candidate.facts(), Policy::kMostly).live_launches;
  ASSERT_EQ(live.size(), 50U);
  EXPECT_THAT(launches_to_leave_out(candidate.facts(), live, 4),
              ElementsAre(ElementsAre(0), ElementsAre(3), ElementsAre(28), ElementsAre(49)));
  EXPECT_EQ(launches_to_leave_out(candidate.facts(), live, 50).size(), 50U);
}

TEST(Assembly, KnownElementwiseInstructionsPass) {
  for (const char* text :
       {"tanh.approx.f32 $0, $1;", "ex2.approx.ftz.f32 $0, $1;", "cvt.rn.bf16x2.f32 $0, $2, $1;",
        "{\n.reg .b32 a<4>, b;\n// low half\nprmt.b32 b, 0, $1, 0x5040;\nfma.rn.f32 $0, b, 0f3F800000, "
        "$2;\n}",
        "mov.b32 $0, {$1, $2};", "/* nothing */ add.f32 $0, $1, $2", ""})
    EXPECT_FALSE(forbidden_instruction(text).has_value()) << text << ": " << *forbidden_instruction(text);
}

TEST(Assembly, TheRestDoesNot) {
  for (const char* text :
       {"ld.global.f32 $0, [$1];", "mov.u64 $0, %globaltimer;", "st.global.b32 [$0], $1;", "bra done;",
        "done: add.f32 $0, $1, $2;", "@p add.f32 $0, $1, $2;", "mov.u32 $0, %clock;",
        "tanh.approx.f32 $0, $1; red.global.add.f32 [$2], $0;", "trap;", "call foo;", "add.f32 $0, $1, foo;",
        "/* unclosed", "cp.async.ca.shared.global [$0], [$1], 4;", "mov.b64 $0, secret;"})
    EXPECT_TRUE(forbidden_instruction(text).has_value()) << text;
}

}  // namespace
}  // namespace nereid::verify
