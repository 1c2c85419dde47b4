#include "nereid/verify/stages/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/replay/known_reference.h"
#include "tests/support/trace_analysis.h"

namespace nereid::verify {
namespace {

using replay::InputDistribution;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// A session that answers from what a test has put in.
struct Script {
  std::function<Result<replay::TrialReport>(const replay::Trial&)> trial = [](const replay::Trial& t) {
    return agreed(t);
  };
  std::function<Result<replay::MutationReport>(const std::vector<int>&)> leave_out =
      [](const std::vector<int>&) -> Result<replay::MutationReport> {
    replay::MutationReport report;
    report.changed = true, report.outputs_changed = {true};
    return report;
  };
  std::function<Result<replay::TrialReport>(int)> alternative = [](int) { return agreed({}); };
  std::vector<replay::Trial> trials;
  replay::TimeReport times;
  std::vector<std::optional<double>> known;  // the reference's time on its own inputs, as timing got it
  std::vector<replay::TimeRequest> requests;
  int sessions = 0, timed = 0;
  int64_t peak_bytes = 0;
  std::optional<Error> refuse;
  bool refuse_once = false;
  std::vector<int> alternatives;  // tried
  replay::SessionFacts facts;

  static replay::TrialReport agreed(const replay::Trial& t) {
    replay::TrialReport report;
    report.trial = t;
    report.comparison.emplace();
    report.comparison->outputs.push_back(output());
    return report;
  }
  static replay::OutputComparison output() {
    replay::OutputComparison o;
    o.path = "output", o.sizes = {100}, o.elements = 100, o.error = 1e-7, o.error_limit = 1e-6,
    o.norm_error = 1e-7, o.norm_limit = 1e-6;
    return o;
  }
  static replay::TrialReport wrong(const replay::Trial& t) {
    auto report = agreed(t);
    auto& o = report.comparison->outputs[0];
    report.comparison->agrees = o.agrees = false;
    o.wrong = 3, o.error = 0.5, o.worst = {17}, o.worst_got = 2, o.worst_want = 1.5;
    return report;
  }
};

class FakeSession : public replay::Session {
 public:
  explicit FakeSession(Script& script) : script_(script), facts_(script.facts) {
    facts_.peak_bytes = script.peak_bytes;
  }
  const replay::SessionFacts& facts() const override { return facts_; }
  Result<replay::TrialReport> trial(const replay::Trial& trial, const replay::Tolerance&, Deadline) override {
    script_.trials.push_back(trial);
    return script_.trial(trial);
  }
  Result<replay::MutationReport> leave_out(const std::vector<int>& launches, Deadline) override {
    return script_.leave_out(launches);
  }
  Result<replay::TrialReport> try_alternatives(const replay::ConfiguredRun& run, const replay::Tolerance&,
                                               Deadline) override {
    const int index = run.choices.empty() ? 0 : run.choices.begin()->second;
    script_.alternatives.push_back(index);
    return script_.alternative(index);
  }
  Result<replay::TimeReport> time(const replay::TimeRequest& request, const replay::Tolerance&,
                                  Deadline) override {
    ++script_.timed;
    script_.requests.push_back(request);
    script_.known.push_back(request.reference ? request.reference->ms(InputDistribution::kOwn)
                                              : std::nullopt);
    if (request.reference) request.reference->keep_ms(InputDistribution::kOwn, 2);
    return script_.times;
  }

 private:
  Script& script_;
  replay::SessionFacts facts_;
};

class PipelineTest : public testing::Test {
 protected:
  PipelineTest() {
    reference_.plain("aten::relu", Work::kPointwise);
    candidate_.plain("relu_kernel", Work::kTriton);
    reference_.facts(), candidate_.facts();
  }

  // The source says what the tracer answers: "reference" and "candidate" are those traces.
  Result<tracer::TraceAnswer> trace(const tracer::TraceRequest& request) {
    ++traced_[request.class_name];
    if (request.class_name == "Model" && reference_answer_) return *reference_answer_;
    if (request.class_name == "ModelNew" && candidate_answer_) return *candidate_answer_;
    if (trace_error_) return *trace_error_;
    auto& from = request.class_name == "Model" ? reference_ : candidate_;
    from.trace().class_name = request.class_name;
    return tracer::TraceAnswer(from.trace());
  }

  Verdict judge(Settings settings = {}, const std::string& source = "import torch\n") {
    Judge judge(backends(), settings);
    return judge.judge(pair(settings, source));
  }

  VerifierBackends backends() {
    VerifierBackends backends;
    backends.trace = [this](const tracer::TraceRequest& request, Deadline) { return trace(request); };
    backends.replay = [this](const trace::Trace&, const trace::Trace&, const replay::SessionOptions&,
                             Deadline) -> Result<std::unique_ptr<replay::Session>> {
      ++script_.sessions;
      if (script_.refuse && !(script_.refuse_once && script_.sessions > 1)) return *script_.refuse;
      return std::unique_ptr<replay::Session>(std::make_unique<FakeSession>(script_));
    };
    backends.analyze = [this](const trace::Trace& trace) -> Result<TraceAnalysis> {
      TraceAnalysis facts = (trace.class_name == "Model" ? reference_ : candidate_).facts();
      facts.trace = &trace;
      return facts;
    };
    if (triton_reads_)
      backends.triton_reads = [this](const trace::Kernel&) -> Result<bool> { return *triton_reads_; };
    return backends;
  }

  static Pair pair(const Settings& settings, const std::string& source = "import torch\n") {
    return {.reference_name = "r.py",
            .reference_source = "N = 4096\n",
            .candidate_name = "c.py",
            .candidate_text = source,
            .form = Pair::Form::kSource,
            .deadline = settings.deadline};
  }

  AnalysisBuilder reference_, candidate_;
  std::optional<tracer::TraceAnswer> reference_answer_, candidate_answer_;
  std::optional<Error> trace_error_;
  std::optional<bool> triton_reads_;
  Script script_;
  std::map<std::string, int> traced_;
};

TEST_F(PipelineTest, WhatWasVerifiedBeforeIsTimedAlone) {
  const Verdict before = judge({.seed = 5});
  ASSERT_EQ(before.trace.size(), 64U);
  script_ = Script{};
  script_.times.method = "graph";
  script_.times.kinds = {
      {.kind = InputDistribution::kOwn, .reference_ms = 2, .candidate_ms = 1, .speedup = 2}};
  script_.times.counted = script_.times.kinds.front();
  const Settings settings{
      .seed = 5, .device = replay::Device::kCuda, .time = true, .timing_width = 0.04, .time_only = true};
  Judge clock(backends(), settings);
  Pair asked = pair(settings);
  asked.trace = before.trace;
  for (int time = 0; time < 2; ++time) {
    const Verdict v = clock.judge(asked);
    EXPECT_EQ(v.kind, VerdictKind::kVerified) << headline(v);
    EXPECT_EQ(v.times->speedup, 2);
    EXPECT_EQ(v.coverage.trials, 1);
  }
  EXPECT_TRUE(script_.trials.empty());
  EXPECT_EQ(script_.sessions, 2);
  ASSERT_EQ(script_.known.size(), 2U);
  EXPECT_EQ(script_.known[0], std::nullopt);
  EXPECT_EQ(script_.known[1], 2);
  EXPECT_TRUE(script_.requests[0].compare_once);
  EXPECT_EQ(script_.requests[0].relative_width, 0.04);
  // Another program than the one that was judged is not.
  candidate_.plain("another_kernel", Work::kTriton);
  candidate_.facts();
  const Verdict other = clock.judge(asked);
  EXPECT_EQ(other.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(other.evidence.front().rule, "another-trace");
  EXPECT_EQ(script_.timed, 2);
}

TEST_F(PipelineTest, AClockTakesTheTraceThatWasJudged) {
  for (auto* trace : {&reference_.trace(), &candidate_.trace()}) {  // so that it can be read again
    trace::Kernel kernel;
    kernel.name = "relu_kernel", kernel.ttir = "module {}";
    trace->kernels.push_back(kernel);
    for (auto& phase : trace->phases)
      for (auto& step : phase.steps) {
        if (auto* launch = std::get_if<trace::Launch>(&step)) launch->alternatives.front().kernel = 0;
        if (auto* call = std::get_if<trace::Call>(&step)) call->op = "aten::relu";
      }
  }
  const auto folder = TemporaryFolder::create("kept-traces").value();
  const auto kept = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()),
                         std::filesystem::directory_iterator());
  };
  const Verdict before = judge({.seed = 5, .traces = folder.path()});
  ASSERT_EQ(before.kind, VerdictKind::kVerified) << headline(before);
  EXPECT_EQ(kept(), 2);
  const auto file = folder.path() / (before.trace + ".trace");
  const std::string bytes = read_file(file).value();
  EXPECT_EQ(sha256_hex(bytes), before.trace);

  script_.times.method = "graph";
  script_.times.kinds = {
      {.kind = InputDistribution::kOwn, .reference_ms = 2, .candidate_ms = 1, .speedup = 2}};
  script_.times.counted = script_.times.kinds.front();
  const Settings settings{
      .seed = 5, .device = replay::Device::kCuda, .time = true, .time_only = true, .traces = folder.path()};
  Judge clock(backends(), settings);
  Pair asked = pair(settings);
  asked.trace = before.trace;
  const auto timed = [&] {
    traced_.clear();
    const Verdict v = clock.judge(asked);
    EXPECT_EQ(v.kind, VerdictKind::kVerified) << headline(v);
    EXPECT_EQ(v.trace, before.trace);
    return traced_;
  };
  EXPECT_EQ(timed(), (std::map<std::string, int>{}));
  EXPECT_EQ(kept(), 0);
  // Where it is gone, or not what was judged, it is traced again, and held to what was judged.
  EXPECT_EQ(timed(), (std::map<std::string, int>{{"ModelNew", 1}}));
  ASSERT_TRUE(write_file_atomically(file, bytes + " ").ok());
  EXPECT_EQ(timed(), (std::map<std::string, int>{{"ModelNew", 1}}));
  EXPECT_EQ(kept(), 0);
  candidate_.plain("another_kernel", Work::kTriton);
  candidate_.facts();
  EXPECT_EQ(clock.judge(asked).evidence.front().rule, "another-trace");
  // What is not Verified leaves nothing but its reference's.
  script_.trial = [](const replay::Trial& t) { return Script::wrong(t); };
  EXPECT_EQ(judge({.seed = 6, .traces = folder.path()}).kind, VerdictKind::kMismatch);
  EXPECT_EQ(kept(), 1);
}

TEST_F(PipelineTest, WhatIsVerifiedOnACpuIsCompiledAhead) {
  auto backends = this->backends();
  std::vector<std::string> compiled;
  bool lost = false;
  backends.compile = [&](const trace::Trace& trace, Deadline) -> Result<CompiledKernels> {
    compiled.push_back(trace.class_name);
    if (lost) return our_error("the compiler is lost");
    return CompiledKernels{};
  };
  const auto judged = [&](const Settings& settings) {
    compiled.clear();
    return Judge(backends, settings).judge(pair(settings));
  };
  EXPECT_EQ(judged({.compile_for = 90}).kind, VerdictKind::kVerified);
  EXPECT_THAT(compiled, ElementsAre("Model", "ModelNew"));
  EXPECT_EQ(judged({}).kind, VerdictKind::kVerified);
  EXPECT_THAT(compiled, ElementsAre());
  lost = true;  // timing reports it
  EXPECT_EQ(judged({.compile_for = 90}).kind, VerdictKind::kVerified);
  script_.trial = [](const replay::Trial& t) { return Script::wrong(t); };
  EXPECT_EQ(judged({.compile_for = 90}).kind, VerdictKind::kMismatch);
  EXPECT_THAT(compiled, ElementsAre());
}

TEST_F(PipelineTest, AnHonestCandidateIsVerified) {
  const auto v = judge({.trials = 3, .seed = 5});
  EXPECT_EQ(v.kind, VerdictKind::kVerified) << headline(v);
  EXPECT_EQ(v.coverage.trials, 21);
  EXPECT_EQ(v.coverage.inputs.size(), 19U);
  EXPECT_EQ(v.coverage.launches, 1);
  EXPECT_EQ(v.coverage.left_out, 1);
  EXPECT_EQ(v.coverage.draws, 1);
  EXPECT_TRUE(v.coverage.sanitized);
  ASSERT_TRUE(v.errors.has_value());
  EXPECT_DOUBLE_EQ(v.errors->max_error, 1e-7);
  EXPECT_EQ(v.seed, 5U);
  std::set<uint64_t> seeds;
  for (const auto& t : script_.trials) seeds.insert(t.seed);
  EXPECT_EQ(seeds.size(), script_.trials.size());
}

TEST_F(PipelineTest, FastInputsAreFewerWhereATaskIsLarge) {
  const auto kinds = [&](int64_t megabytes, bool few) {
    script_.trials.clear();
    script_.peak_bytes = megabytes << 20;
    EXPECT_EQ(judge({.trials = 2, .seed = 5, .fast_inputs = few}).kind, VerdictKind::kVerified);
    std::vector<InputDistribution> found;
    for (const auto& trial : script_.trials) found.push_back(trial.distribution);
    return found;
  };
  EXPECT_EQ(kinds(2000, false).size(), 20U) << "neither integers nor state to change";
  script_.facts.integer_inputs = script_.facts.state = true;
  EXPECT_EQ(kinds(2000, false).size(), 24U);
  EXPECT_EQ(kinds(256, true).back(), InputDistribution::kRedrawn);
  EXPECT_EQ(kinds(257, true).size(), 3U);
  script_.facts = {};
  EXPECT_THAT(kinds(256, true),
              ElementsAre(InputDistribution::kOwn, InputDistribution::kOwn, InputDistribution::kHuge,
                          InputDistribution::kOutliers, InputDistribution::kNegative));
  EXPECT_THAT(kinds(257, true), ElementsAre(InputDistribution::kOwn, InputDistribution::kHuge));
}

TEST_F(PipelineTest, TextThatTritonReadsAndWeDoNotIsOurFault) {
  candidate_.kernel("k", {.unreadable = "TTIR line 7: expected '}'", .malformed = true});
  EXPECT_EQ(judge().kind, VerdictKind::kCompileFailed);
  triton_reads_ = false;
  EXPECT_EQ(judge().kind, VerdictKind::kCompileFailed);
  triton_reads_ = true;
  EXPECT_EQ(judge().kind, VerdictKind::kError);
}

TEST_F(PipelineTest, WhatADeadlineCutShortIsNoVerdict) {
  const auto v = judge({.deadline = Deadline::after(0)});
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(v.evidence.at(0).rule, "budget");
  EXPECT_EQ(script_.sessions, 1);  // nor is it tried again
  // What was found in time is one.
  candidate_answer_ = tracer::Malformed{"no class ModelNew in c.py"};
  EXPECT_EQ(judge({.deadline = Deadline::after(0)}).kind, VerdictKind::kMalformed);
}

TEST_F(PipelineTest, TheSameSeedAsksTheSameTrials) {
  judge({.seed = 5});
  const auto first = script_.trials;
  script_.trials.clear();
  judge({.seed = 5});
  ASSERT_EQ(first.size(), script_.trials.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].seed, script_.trials[i].seed);
}

TEST_F(PipelineTest, TheFirstStages) {
  candidate_answer_ = tracer::Malformed{"no class ModelNew in c.py"};
  EXPECT_EQ(judge().kind, VerdictKind::kMalformed);
  EXPECT_EQ(judge().evidence[0].rule, "no-model-class");
  EXPECT_EQ(judge({}, "\xff").evidence[0].rule, "not-text");

  tracer::Untraceable u;
  u.phase = "forward", u.type = "ValueError", u.message = "boom", u.file = "c.py", u.line = 12,
  u.code = "raise";
  candidate_answer_ = u;
  auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kUntraceable);
  EXPECT_EQ(v.evidence[0].rule, "python-error");
  EXPECT_EQ(v.evidence[0].line, 12);
  EXPECT_THAT(v.evidence[0].sentence, HasSubstr("forward raised ValueError: boom"));

  tracer::CompileFailed failed;
  failed.kernel = "k", failed.line = 3;
  candidate_answer_ = failed;
  EXPECT_EQ(judge().kind, VerdictKind::kCompileFailed);
  candidate_answer_ = tracer::TimedOut{30};
  EXPECT_EQ(judge().kind, VerdictKind::kTimedOut);
  candidate_answer_ = tracer::Killed{"memory"};
  EXPECT_EQ(judge().evidence[0].rule, "sandbox-limit");
  EXPECT_EQ(script_.sessions, 0);
}

TEST_F(PipelineTest, AReferenceAtFaultIsNoVerdict) {
  reference_answer_ = tracer::Malformed{"no function get_inputs in r.py"};
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_TRUE(v.input_to_blame);
  EXPECT_EQ(exit_code(v), 2);
}

TEST_F(PipelineTest, RulesComeBeforeReplays) {
  candidate_ = AnalysisBuilder();
  candidate_.plain("aten::relu", Work::kPointwise);
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.evidence[0].rule, "no-launch");
  EXPECT_EQ(script_.sessions, 0);
}

TEST_F(PipelineTest, WithoutRulesAVerdictStaysAndSaysWhatElseItWouldBe) {
  const Verdict honest = judge({.ignore_rules = true});
  EXPECT_EQ(honest.kind, VerdictKind::kVerified);
  EXPECT_FALSE(honest.without_rules);
  // A kernel without effect.
  script_.leave_out = [](const std::vector<int>&) -> Result<replay::MutationReport> {
    replay::MutationReport report;
    report.outputs_changed = {false};
    return report;
  };
  EXPECT_FALSE(judge().without_rules);
  const Verdict idle = judge({.ignore_rules = true});
  EXPECT_EQ(idle.kind, VerdictKind::kDisallowed);
  ASSERT_TRUE(idle.without_rules);
  EXPECT_EQ(idle.without_rules->kind, VerdictKind::kVerified);
  EXPECT_EQ(to_json(idle).at("verdict_without_rules").at("verdict"), "Verified");
  EXPECT_EQ(exit_code(idle), 1);
  // None at all; and then it is wrong, too.
  candidate_ = AnalysisBuilder();
  candidate_.plain("aten::relu", Work::kPointwise);
  EXPECT_EQ(judge({.ignore_rules = true}).without_rules->kind, VerdictKind::kVerified);
  script_.trial = [](const replay::Trial& t) { return Script::wrong(t); };
  const Verdict wrong = judge({.ignore_rules = true});
  EXPECT_EQ(wrong.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(wrong.evidence[0].rule, "no-launch");
  EXPECT_EQ(wrong.evidence.size(), judge().evidence.size());
  EXPECT_EQ(wrong.without_rules->kind, VerdictKind::kMismatch);
}

TEST_F(PipelineTest, WithoutRulesWrittenInputsAreIgnored) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.inputs_written = {"input 0"};
    return report;
  };
  const Verdict v = judge({.ignore_rules = true});
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.without_rules->kind, VerdictKind::kVerified);
}

TEST_F(PipelineTest, WithoutRulesNothingHarmfulIsReplayed) {
  candidate_.kernel("relu_kernel", {.int_to_ptr = true});
  const Verdict v = judge({.ignore_rules = true});
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.evidence[0].rule, "int-to-ptr");
  EXPECT_EQ(v.without_rules->kind, VerdictKind::kDisallowed);
  EXPECT_EQ(script_.sessions, 0);
}

TEST_F(PipelineTest, ALaunchThatChangesNothingComesBeforeAMismatch) {
  script_.trial = [](const replay::Trial& t) { return Script::wrong(t); };
  script_.leave_out = [](const std::vector<int>&) -> Result<replay::MutationReport> {
    replay::MutationReport report;
    report.outputs_changed = {false};
    return report;
  };
  EXPECT_EQ(judge().evidence[0].rule, "launch-without-effect");
}

TEST_F(PipelineTest, UnsafeNamesWhatWasFound) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.comparison.reset();
    ttir::Finding f;
    f.kind = ttir::FindingKind::kRace, f.kernel = "k", f.file = "c.py", f.line = 9,
    f.sentence = "Two programs write y.";
    report.findings = {f}, report.finding_count = 40;
    return report;
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kUnsafe);
  EXPECT_EQ(v.evidence[0].rule, "race");
  EXPECT_EQ(v.evidence[0].line, 9);
  EXPECT_EQ(v.evidence[0].numbers.at("findings"), 40);
  EXPECT_EQ(script_.trials.size(), 1U);
}

TEST_F(PipelineTest, AMismatchOnOneKindOfInput) {
  script_.trial = [](const replay::Trial& t) {
    return t.distribution == InputDistribution::kHuge ? Script::wrong(t) : Script::agreed(t);
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kMismatch);
  EXPECT_EQ(v.evidence[0].rule, "values");
  EXPECT_THAT(v.evidence[0].sentence,
              HasSubstr("wrong at 3 of 100 elements, most at [17]: expected 1.5, got 2"));
  EXPECT_THAT(v.evidence[0].sentence, HasSubstr("huge"));
  EXPECT_EQ(v.evidence[0].kernel, "relu_kernel");
  EXPECT_EQ(v.errors->inputs, "huge");
  EXPECT_EQ(v.errors->position, std::vector<int64_t>{17});
}

TEST_F(PipelineTest, WhereANanDoesNotReachTheRestIsJudged) {
  script_.trial = [](const replay::Trial& t) {
    return t.distribution == InputDistribution::kNans ? Script::wrong(t) : Script::agreed(t);
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kMismatch);
  EXPECT_EQ(v.errors->inputs, "nans");
}

TEST_F(PipelineTest, KindsThatDoNotApplyAreNotCounted) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    if (t.distribution == InputDistribution::kNans) report.applicable = false, report.comparison.reset();
    if (t.distribution == InputDistribution::kZeros) report.comparison->defined = false;
    if (t.distribution == InputDistribution::kHuge)
      report.reference_failed = replay::Failure{}, report.comparison.reset();
    return report;
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kVerified);
  EXPECT_EQ(v.coverage.inputs.size(), 16U);
}

TEST_F(PipelineTest, FailuresOfTheCandidate) {
  const auto fail = [&](replay::Failure::Kind kind, const std::string& message) {
    script_.trial = [=](const replay::Trial& t) {
      auto report = Script::agreed(t);
      report.comparison.reset();
      report.failed.emplace();
      report.failed->kind = kind, report.failed->message = message;
      return report;
    };
    return judge();
  };
  EXPECT_EQ(fail(replay::Failure::Kind::kTimedOut, "").kind, VerdictKind::kTimedOut);
  EXPECT_EQ(fail(replay::Failure::Kind::kRaised, "index out of range").evidence[0].rule, "aten-error");
  EXPECT_EQ(fail(replay::Failure::Kind::kCrashed, "signal 11").evidence[0].rule, "crash");
  EXPECT_EQ(fail(replay::Failure::Kind::kRefused, "aten::from_file").kind, VerdictKind::kDisallowed);
  EXPECT_EQ(fail(replay::Failure::Kind::kUnsupported, "tt.foo").kind, VerdictKind::kError);
}

TEST_F(PipelineTest, WrittenInputsAreDisallowed) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.inputs_written = {"input 0"};
    return report;
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.evidence[0].rule, "input-written");
}

TEST_F(PipelineTest, WrittenStateIsDisallowed) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.state_written = {"fc.weight"};
    return report;
  };
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.evidence[0].rule, "state-written");
  EXPECT_THAT(v.evidence[0].sentence, HasSubstr("fc.weight"));
}

TEST_F(PipelineTest, StateIsPerturbedAsFarAsTheReferenceBearsIt) {
  script_.facts.state = true;
  const auto gently = [&](auto&& spoil) {
    script_.trials.clear();
    script_.trial = [=](const replay::Trial& t) {
      auto report = Script::agreed(t);
      if (!t.gentle) spoil(report);
      return report;
    };
    EXPECT_EQ(judge().kind, VerdictKind::kVerified);
    return script_.trials.back().gentle;
  };
  EXPECT_FALSE(gently([](replay::TrialReport&) {}));
  EXPECT_TRUE(gently([](replay::TrialReport& r) { r.comparison.reset(), r.reference_failed.emplace(); }));
  EXPECT_TRUE(gently([](replay::TrialReport& r) { r.comparison->finite = 0.5; }));
  EXPECT_TRUE(gently([](replay::TrialReport& r) { r.comparison->outputs[0].own_error = 0.5; }));
}

TEST_F(PipelineTest, OverflowIsWhatNarrowerInputsDoNotShow) {
  const auto judge_until = [&](int narrowed) {
    script_.trials.clear();
    script_.trial = [=](const replay::Trial& t) {
      auto report = Script::agreed(t);
      if (t.distribution == InputDistribution::kWide && t.narrowed < narrowed)
        report.comparison->overflown = 3;
      return report;
    };
    return judge();
  };
  const auto max_narrowed = [&] { return std::ranges::max(script_.trials, {}, &replay::Trial::narrowed); };
  EXPECT_EQ(judge_until(0).kind, VerdictKind::kVerified);
  EXPECT_EQ(max_narrowed().narrowed, 0);
  EXPECT_EQ(judge_until(2).kind, VerdictKind::kVerified);
  EXPECT_EQ(max_narrowed().narrowed, 2);
  EXPECT_EQ(max_narrowed().distribution, InputDistribution::kWide);
  const auto v = judge_until(100);
  EXPECT_EQ(v.kind, VerdictKind::kMismatch);
  EXPECT_THAT(v.evidence.back().sentence, HasSubstr("3 elements are other infinities"));
  EXPECT_EQ(max_narrowed().narrowed, 4);
}

TEST_F(PipelineTest, AFaultIsTriedAgainAndThenReported) {
  script_.refuse = our_error("the worker was lost");
  script_.refuse_once = true;
  EXPECT_EQ(judge().kind, VerdictKind::kVerified);
  EXPECT_EQ(script_.sessions, 2);
  script_.refuse_once = false, script_.sessions = 0;
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(exit_code(v), 3);
  EXPECT_EQ(script_.sessions, 2);
}

TEST_F(PipelineTest, ATimeThatCannotBeIsMeasuredAgainAndThenAnError) {
  const Settings timed{.device = replay::Device::kCuda, .time = true};
  script_.times.impossible = "1 us is less than the 2 us that H200 needs";
  const auto v = judge(timed);
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(v.evidence.back().rule, "below-roofline");
  EXPECT_THAT(v.evidence.back().sentence, HasSubstr("1 us is less than"));
  EXPECT_EQ(exit_code(v), 3);
  EXPECT_FALSE(v.times);
  EXPECT_EQ(script_.timed, 2);
  script_.times.impossible.clear();
  script_.times.counted.speedup = 2;
  const auto good = judge(timed);
  EXPECT_EQ(good.kind, VerdictKind::kVerified);
  EXPECT_EQ(good.times->speedup, 2);
  EXPECT_EQ(script_.timed, 3);
  EXPECT_FALSE(script_.requests.back().compare_once || script_.requests.back().reference);
}

TEST_F(PipelineTest, ATaskThatIsTooBigSaysSoOnce) {
  script_.refuse = input_error("the task needs 81 GB, 24 GB are free");
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(v.evidence[0].rule, "too-big");
  EXPECT_THAT(v.evidence[0].sentence, HasSubstr("--shrink"));
  EXPECT_EQ(script_.sessions, 1);
}

TEST_F(PipelineTest, SmallTasksAreCheckedOnTheCpuBeforeAGpuJudges) {
  auto v = judge({.device = replay::Device::kCuda});
  EXPECT_EQ(v.kind, VerdictKind::kVerified);
  EXPECT_EQ(script_.sessions, 2);
  EXPECT_EQ(v.coverage.device, "cuda");
  EXPECT_TRUE(v.coverage.sanitized);
  EXPECT_TRUE(v.coverage.fenced);
  script_.sessions = 0;
  candidate_.trace().storages.back().bytes = int64_t{1} << 30;
  v = judge({.device = replay::Device::kCuda});
  EXPECT_EQ(script_.sessions, 1);
  EXPECT_FALSE(v.coverage.sanitized);
}

TEST_F(PipelineTest, WhatACpuCannotComputeInTimeIsTooBig) {
  reference_ = AnalysisBuilder();
  for (int call = 0; call < 3; ++call) {
    const int in = reference_.forward(call), out = reference_.storage();
    reference_.step(
        {.name = "aten::mm", .work = Work::kHeavy, .reads = {in}, .writes = {out}, .flops = 1e13});
    reference_.returns({out});
  }
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(v.evidence[0].rule, "too-big");
  EXPECT_EQ(judge({.device = replay::Device::kCuda}).kind, VerdictKind::kVerified);
}

TEST_F(PipelineTest, IntegersThatTheHostReadsAreDrawnAgain) {
  candidate_.trace().storages[0].pinned = true;
  const auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kVerified);
  EXPECT_EQ(v.coverage.draws, 3);
  EXPECT_EQ(traced_["ModelNew"], 3);
  EXPECT_EQ(script_.sessions, 3);
}

TEST_F(PipelineTest, EveryConfigurationIsCompared) {
  auto& phase = candidate_.trace().phases.back();
  auto& launch = std::get<trace::Launch>(phase.steps[0]);
  launch.alternatives.resize(6);
  for (int64_t i = 0; i < 4; ++i) launch.alternatives[static_cast<size_t>(i)].grid = {i + 1, 1, 1};
  launch.alternatives[4].grid = launch.alternatives[1].grid;  // does what another does
  launch.alternatives[5].grid = launch.alternatives[0].grid;
  launch.alternatives[2].config = "BLOCK=64";
  auto v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kVerified);
  EXPECT_EQ(v.coverage.alternatives, 6);
  EXPECT_EQ(v.coverage.alternatives_run, 6);
  EXPECT_EQ(script_.alternatives.size(), 9U) << "three that differ, on three input distributions";
  v = judge({.time_limit = 0});
  EXPECT_EQ(v.kind, VerdictKind::kTimedOut) << "what was not run is not verified";
  EXPECT_EQ(v.evidence[0].rule, "configurations");
  script_.alternative = [](int index) { return index == 2 ? Script::wrong({}) : Script::agreed({}); };
  v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kMismatch);
  EXPECT_THAT(v.evidence[0].sentence, HasSubstr("BLOCK=64"));
}

TEST_F(PipelineTest, AConstantReferenceIsAWeakTask) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.comparison->constant = true;
    return report;
  };
  EXPECT_THAT(judge().coverage.degenerate, HasSubstr("the same number everywhere"));
}

TEST_F(PipelineTest, ReferencesAreTracedOnce) {
  VerifierBackends backends;
  backends.trace = [this](const tracer::TraceRequest& request, Deadline) { return trace(request); };
  backends.replay = [this](const trace::Trace&, const trace::Trace&, const replay::SessionOptions&,
                           Deadline) -> Result<std::unique_ptr<replay::Session>> {
    return std::unique_ptr<replay::Session>(std::make_unique<FakeSession>(script_));
  };
  backends.analyze = [this](const trace::Trace& trace) -> Result<TraceAnalysis> {
    TraceAnalysis facts = (trace.class_name == "Model" ? reference_ : candidate_).facts();
    facts.trace = &trace;
    return facts;
  };
  Judge judge(backends, {});
  const Pair pair{.reference_name = "r",
                  .reference_source = "R",
                  .candidate_name = "c",
                  .candidate_text = "C",
                  .form = Pair::Form::kSource};
  judge.judge(pair), judge.judge(pair);
  EXPECT_EQ(traced_["Model"], 1);
  EXPECT_EQ(traced_["ModelNew"], 2);
}

TEST_F(PipelineTest, APairsOwnPolicyWins) {
  candidate_ = AnalysisBuilder();
  for (int call = 0; call < 3; ++call) {
    const int in = candidate_.forward(call), mid = candidate_.storage(), out = candidate_.storage();
    candidate_.step({.name = "aten::mm", .work = Work::kHeavy, .reads = {in}, .writes = {mid}});
    candidate_.step({.name = "k", .reads = {mid}, .writes = {out}});
    candidate_.returns({out});
  }
  EXPECT_EQ(judge({.policy = Policy::kMostly}).kind, VerdictKind::kDisallowed);
  EXPECT_EQ(judge({.policy = Policy::kHybrid}).kind, VerdictKind::kVerified);
}

// Each replay keeps its limit, and all together take too long.
TEST_F(PipelineTest, OneLimitForTheWholeVerdict) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.seconds_candidate = 4;
    return report;
  };
  const Verdict v = judge({.time_limit = 5, .verdict_limit = 10});
  EXPECT_EQ(v.kind, VerdictKind::kTimedOut);
  ASSERT_EQ(v.evidence.size(), 1U);
  EXPECT_EQ(v.evidence.front().rule, "verdict-limit");
  EXPECT_EQ(v.evidence.front().numbers.at("limit"), 10);
  EXPECT_LE(script_.trials.size(), 3U);
  script_.trials.clear();
  EXPECT_EQ(judge({.time_limit = 5, .verdict_limit = 1000}).kind, VerdictKind::kVerified);
  // What it found wrong before is what it is.
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::wrong(t);
    report.seconds_candidate = 1000;
    return report;
  };
  EXPECT_EQ(judge({.time_limit = 5}).kind, VerdictKind::kMismatch);
}

// An experiment of ours that ends the candidate's process says that the launch matters, and nothing more.
TEST_F(PipelineTest, ALaunchWithoutWhichTheProcessEndsIsNoEvidence) {
  for (const auto kind : {replay::Failure::Kind::kCrashed, replay::Failure::Kind::kTimedOut}) {
    script_ = Script{};
    int lost_in = 0;
    script_.leave_out = [&](const std::vector<int>&) -> Result<replay::MutationReport> {
      replay::MutationReport report;
      report.failed = replay::Failure{kind, {}, "a kernel faulted"};
      lost_in = script_.sessions;
      return report;
    };
    script_.trial = [&](const replay::Trial& t) {
      auto report = Script::agreed(t);
      if (lost_in == script_.sessions) report.failed = replay::Failure{kind, {}, "the context was lost"};
      return report;
    };
    const Verdict v = judge();
    EXPECT_EQ(v.kind, VerdictKind::kVerified) << headline(v);
    EXPECT_EQ(script_.sessions, 2);
    EXPECT_EQ(v.coverage.left_out, 1);
  }
}

TEST_F(PipelineTest, APairsOwnSettingsTakeThePlaceOfTheRuns) {
  Judge judge(backends(), {.policy = Policy::kMostly, .trials = 3, .seed = 4});
  Pair asked = pair({});
  asked.settings.policy = "strict", asked.settings.trials = 1, asked.settings.seed = 9;
  const Verdict own = judge.judge(asked), runs = judge.judge(pair({}));
  EXPECT_EQ(own.policy, "strict");
  EXPECT_EQ(own.seed, 9U);
  EXPECT_EQ(runs.policy, "mostly");
  EXPECT_EQ(runs.seed, 4U);
  EXPECT_EQ(own.coverage.trials + 2, runs.coverage.trials);
  asked.settings.device = "cuda";
  const Verdict gpu = judge.judge(asked);
  EXPECT_EQ(gpu.kind, VerdictKind::kError);
  EXPECT_TRUE(gpu.input_to_blame);
  EXPECT_EQ(gpu.evidence.front().rule, "no-gpu");
}

TEST_F(PipelineTest, WhatIsThrownEndsOneVerdict) {
  script_.trial = [](const replay::Trial&) -> Result<replay::TrialReport> {
    throw std::runtime_error("garbled");
  };
  const Verdict v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_FALSE(v.input_to_blame);
  EXPECT_THAT(v.evidence.front().sentence, HasSubstr("garbled"));
}

TEST_F(PipelineTest, AForgedTraceIsTheForgers) {
  candidate_answer_ =
      tracer::Forged{"the trace was not written by the tracer: storage 3 is called an input and is none"};
  const Verdict v = judge();
  EXPECT_EQ(v.kind, VerdictKind::kDisallowed);
  EXPECT_EQ(v.evidence.front().rule, "forged-trace");
  EXPECT_EQ(v.evidence.front().sentence,
            "The trace was not written by the tracer: storage 3 is called an input and is none.");
}

// The caller's time that is over is no slow candidate.
TEST_F(PipelineTest, TheCallersBudgetIsNoVerdict) {
  script_.trial = [](const replay::Trial& t) {
    auto report = Script::agreed(t);
    report.failed = replay::Failure{replay::Failure::Kind::kTimedOut, {}, "the time limit passed"};
    return report;
  };
  EXPECT_EQ(judge().kind, VerdictKind::kTimedOut);
  const Verdict v = judge({.deadline = Deadline::after(0)});
  EXPECT_EQ(v.kind, VerdictKind::kError);
  EXPECT_EQ(v.evidence.front().rule, "budget");
  EXPECT_FALSE(v.input_to_blame);
}

}  // namespace
}  // namespace nereid::verify
