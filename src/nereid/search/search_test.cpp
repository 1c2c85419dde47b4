#include "nereid/search/search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/proposers/compiler.h"
#include "nereid/search/guarded.h"
#include "nereid/search/report/report.h"
#include "nereid/search/report/result_file.h"
#include "tests/support/trace_analysis.h"

namespace nereid::search {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using verify::AnalysisBuilder;

// A session in which everything agrees, after so many seconds a trial.
class AgreeingSession : public replay::Session {
 public:
  AgreeingSession(double seconds, double ms, bool wrong = false)
      : seconds_(seconds), ms_(ms), wrong_(wrong) {}
  const replay::SessionFacts& facts() const override { return facts_; }
  Result<replay::TrialReport> trial(const replay::Trial& trial, const replay::Tolerance&,
                                    Deadline deadline) override {
    std::this_thread::sleep_until(Deadline::earlier(deadline, Deadline::after(seconds_)).when());
    if (deadline.passed()) return our_error("late");
    replay::TrialReport report;
    report.trial = trial;
    replay::OutputComparison o;
    o.path = "output", o.sizes = {100}, o.elements = 100, o.error_limit = 1e-6;
    if (wrong_) o.agrees = false, o.reason = "wrong", o.wrong = 100, o.error = 1, o.first_wrong = {0};
    report.comparison.emplace().outputs.push_back(o);
    report.comparison->agrees = !wrong_;
    return report;
  }
  Result<replay::MutationReport> leave_out(const std::vector<int>&, Deadline) override {
    replay::MutationReport report;
    report.changed = true, report.outputs_changed = {true};
    return report;
  }
  Result<replay::TrialReport> try_alternatives(const replay::ConfiguredRun&, const replay::Tolerance& t,
                                               Deadline d) override {
    return trial({}, t, d);
  }
  Result<replay::TimeReport> time(const replay::TimeRequest&, const replay::Tolerance&, Deadline) override {
    if (ms_ <= 0) return our_error("no clock here");
    replay::TimeReport report;
    report.counted = {.reference_ms = 10, .candidate_ms = ms_, .speedup = 10 / ms_, .converged = true};
    report.method = "graph";
    return report;
  }

 private:
  double seconds_, ms_;
  bool wrong_;
  replay::SessionFacts facts_;
};

// A proposer that says what a test has given it, round by round.
class Scripted : public proposers::Proposer {
 public:
  Scripted(std::string name, std::vector<proposers::Answer> answers, bool repairs = false)
      : name_(std::move(name)), answers_(std::move(answers)), repairs_(repairs) {}
  std::string_view name() const override { return name_; }
  bool repairs() const override { return repairs_; }
  std::unique_ptr<proposers::Tuner> tuner(const proposers::Request&, double ms) override {
    observed.push_back(ms);
    return std::make_unique<Turns>(*this);
  }
  std::unique_ptr<proposers::Fallback> fallback(const proposers::Request&) override {
    return ways.empty() ? nullptr : std::make_unique<Ways>(*this);
  }
  // What is proposed after failures, one by one, and what failed how: "wrong", "too large: kernel".
  std::vector<std::string> ways, failures;
  // What a tuner proposes, one by one, and the times it got first and after each; -1: not verified.
  std::vector<std::string> turns;
  std::vector<double> observed;
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline) override {
    requests.push_back(request);
    const size_t round = std::min(requests.size(), answers_.size()) - 1;
    return answers_[round];
  }
  std::vector<proposers::Request> requests;

 private:
  struct Turns : proposers::Tuner {
    explicit Turns(Scripted& of) : of_(of) {}
    std::optional<proposers::Proposal> next() override {
      if (at_ == of_.turns.size()) return std::nullopt;
      return proposers::Proposal{.text = of_.turns[at_++], .variant = "turned"};
    }
    void observe(std::optional<double> ms) override { of_.observed.push_back(ms.value_or(-1)); }
    Scripted& of_;
    size_t at_ = 0;
  };
  struct Ways : proposers::Fallback {
    explicit Ways(Scripted& of) : of_(of) {}
    std::optional<proposers::Proposal> next(const proposers::Failure& failure) override {
      const bool wrong = failure.kind == proposers::Failure::Kind::kWrong;
      of_.failures.push_back(wrong ? "wrong" : "too large: " + failure.kernel);
      if (at_ == of_.ways.size()) return std::nullopt;
      return proposers::Proposal{.text = of_.ways[at_++], .variant = "another way"};
    }
    std::unique_ptr<proposers::Tuner> tuner(double ms) override {
      of_.observed.push_back(-ms);
      return std::make_unique<Turns>(of_);
    }
    Scripted& of_;
    size_t at_ = 0;
  };
  std::string name_;
  std::vector<proposers::Answer> answers_;
  bool repairs_;
};

proposers::Answer proposing(std::vector<std::string> texts) {
  proposers::Answer answer;
  for (auto& text : texts) answer.proposals.push_back({.text = std::move(text)});
  answer.cost.completion_tokens = 10;
  return answer;
}

// A world where a source is worth what it says: "raise" does not trace, "WRONG" has other numbers, "BYTES
// 123" moves so many bytes, "SLOW" takes about 3 s to judge.
struct SearchTest : testing::Test {
  SearchTest() {
    backends.trace = [this](const tracer::TraceRequest& request, Deadline) -> Result<tracer::TraceAnswer> {
      ++traced;
      if (request.source.find("raise") != std::string::npos)
        return tracer::TraceAnswer(tracer::Untraceable{"forward", "ValueError", "no", "", 0, "", {}});
      const bool candidate = request.class_name == "ModelNew";
      AnalysisBuilder builder;
      builder.plain(candidate ? "kernel" : "aten::relu",
                    candidate ? verify::Work::kTriton : verify::Work::kPointwise);
      builder.facts();
      trace::Trace trace = builder.trace();
      trace.class_name = request.class_name;
      for (auto& phase : trace.phases) {
        if (candidate || phase.kind != trace::PhaseKind::kForward) continue;
        auto& call = std::get<trace::Call>(phase.steps.front());
        call.op = "aten::relu", call.result = std::get<trace::List>(phase.output.node).items.front();
        call.args = std::get<trace::List>(phase.inputs.node).items;
      }
      trace.notes = {request.source};  // for `facts`
      trace.kernels.emplace_back();
      for (auto& phase : trace.phases)
        for (auto& step : phase.steps)
          if (auto* launch = std::get_if<trace::Launch>(&step)) launch->alternatives.front().kernel = 0;
      return tracer::TraceAnswer(std::move(trace));
    };
    backends.analyze = [](const trace::Trace& trace) -> Result<verify::TraceAnalysis> {
      const bool candidate = trace.class_name == "ModelNew";
      AnalysisBuilder builder;
      builder.plain(candidate ? "kernel" : "aten::relu",
                    candidate ? verify::Work::kTriton : verify::Work::kPointwise);
      verify::TraceAnalysis facts = builder.facts();
      facts.trace = &trace;
      facts.kernels.resize(trace.kernels.size());
      const std::string& source = trace.notes.front();
      if (const size_t at = source.find("BYTES "); at != std::string::npos)
        for (auto& phase : facts.phases)
          for (auto& step : phase.steps) step.flops = std::stod(source.substr(at + 6));
      return facts;
    };
    backends.replay = [](const trace::Trace&, const trace::Trace& candidate, const replay::SessionOptions&,
                         Deadline) -> Result<std::unique_ptr<replay::Session>> {
      const std::string& source = candidate.notes.front();
      const bool slow = source.find("SLOW") != std::string::npos;
      const size_t ms = source.find("MS ");
      return std::unique_ptr<replay::Session>(std::make_unique<AgreeingSession>(
          slow ? 0.2 : 0, ms == source.npos ? 0 : std::stod(source.substr(ms + 3)),
          source.find("WRONG") != std::string::npos));
    };
  }

  std::unique_ptr<Evaluator> evaluator(store::Store* store = nullptr, bool fresh = false) {
    return std::make_unique<Evaluator>(
        backends,
        EvaluatorOptions{.settings = {}, .store = store, .fresh = fresh, .hardware = "cpu", .versions = "1"});
  }
  Outcome run(Evaluator& evaluator, std::vector<proposers::Proposer*> proposers,
              SearchOptions options = {.subgraphs = false}) {
    auto task = evaluator.trace("task.py", "class Model: pass\n", Deadline::after(100));
    EXPECT_TRUE(task.ok());
    return search(evaluator, **task, proposers, options, [this](const Event& e) {
      if (e.kind == Event::Kind::kBest) bests.push_back(e.judged->source);
    });
  }

  verify::VerifierBackends backends;
  std::atomic<int> traced = 0;
  std::vector<std::string> bests;
};

TEST_F(SearchTest, TheFastestVerifiedWins) {
  Scripted one("one", {proposing({"BYTES 4e12", "BYTES 1e12", "BYTES 2e12", "raise"})});
  const auto b = evaluator();
  const Outcome outcome = run(*b, {&one});
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->source, "BYTES 1e12");
  EXPECT_THAT(outcome.tried, SizeIs(4));
  EXPECT_EQ(outcome.tried[3].kind, verify::VerdictKind::kUntraceable);
  // It only improves.
  EXPECT_THAT(bests, ElementsAre("BYTES 4e12", "BYTES 1e12"));
  EXPECT_EQ(outcome.cost.completion_tokens, 10);
}

TEST_F(SearchTest, WhereTheCostModelIsUndecidedTheFirstNamedWins) {
  Scripted one("one", {proposing({"BYTES 1.01e12"})}), two("two", {proposing({"BYTES 1.0e12"})});
  const auto b = evaluator();
  EXPECT_EQ(run(*b, {&one, &two}).best->proposer, "one");
  EXPECT_EQ(run(*b, {&two, &one}).best->proposer, "two");
}

TEST_F(SearchTest, WithNothingVerifiedTheFurthestIsReported) {
  Scripted one("one", {proposing({"raise"})}), two("two", {{.declined = "cannot"}});
  const auto b = evaluator();
  const Outcome outcome = run(*b, {&one, &two});
  EXPECT_FALSE(outcome.best);
  ASSERT_THAT(outcome.declined, SizeIs(1));
  EXPECT_EQ(outcome.declined[0].why, "cannot");
  ASSERT_NE(furthest(outcome), nullptr);
  EXPECT_EQ(furthest(outcome)->kind, verify::VerdictKind::kUntraceable);
  EXPECT_THAT(furthest(outcome)->evidence, HasSubstr("ValueError"));
  EXPECT_EQ(furthest(Outcome{}), nullptr);
}

// Samples that come on demand, the first after `ready`.
class Drawing : public proposers::Proposer {
 public:
  explicit Drawing(std::vector<std::string> texts) : texts_(std::move(texts)) { ready.test_and_set(); }
  std::string_view name() const override { return "drawing"; }
  bool samples() const override { return true; }
  Result<proposers::Answer> propose(const proposers::Request&, Deadline) override {
    return our_error("one by one");
  }
  std::unique_ptr<proposers::Answers> propose_several(proposers::Request, std::vector<int> samples) override {
    if (on_asked) on_asked(samples);
    return std::make_unique<Samples>(*this, std::move(samples));
  }
  std::function<void(const std::vector<int>& samples)> on_asked;
  std::atomic_flag ready;
  int observed = 0, cancelled = 0;

 private:
  struct Samples : proposers::Answers {
    Samples(Drawing& of, std::vector<int> samples) : of_(of), samples_(std::move(samples)) {}
    ~Samples() override { of_.cancelled += static_cast<int>(samples_.size()); }
    Result<std::optional<One>> next(Deadline) override {
      of_.ready.wait(false);
      if (samples_.empty()) return std::optional<One>();
      const int sample = samples_.back();  // in no order of theirs
      samples_.pop_back(), ++of_.observed;
      const std::string& text = of_.texts_[static_cast<size_t>(sample)];
      if (text == "lost") return our_error("the process was lost");
      return std::optional<One>({sample, proposing({text})});
    }
    Drawing& of_;
    std::vector<int> samples_;
  };
  std::vector<std::string> texts_;
};

// Fails once its request is cancelled, else answers after 200 seconds.
class Slow : public proposers::Proposer {
 public:
  std::string_view name() const override { return "slow"; }
  bool samples() const override { return true; }
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline) override {
    ++asked;
    if (request.cancelled == nullptr) return our_error("it cannot be cancelled");
    for (const auto end = Deadline::after(200); !end.passed();) {
      if (*request.cancelled) return our_error("cancelled");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return proposing({"BYTES 1e10"});
  }
  std::atomic<int> asked = 0;
};

TEST_F(SearchTest, WhereOneIsEnoughASlowProposerIsNotWaitedFor) {
  Scripted one("one", {proposing({"BYTES 2e12"})});
  Slow slow;
  const Stopwatch watch;
  const Outcome outcome =
      run(*evaluator(), {&one, &slow}, {.samples = 2, .first_is_enough = true, .subgraphs = false});
  EXPECT_LT(watch.seconds(), 150);
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->proposer, "one");
  EXPECT_LE(slow.asked, 1);
  EXPECT_THAT(outcome.declined, IsEmpty());  // a cancelled request is no failure
}

TEST_F(SearchTest, SamplesEndWhereOneBeatsWhatOthersFound) {
  for (const bool every : {false, true}) {
    Scripted one("one", {proposing({"BYTES 2e12"})});
    Drawing drawing({"BYTES 9e12", "BYTES 4e12", "BYTES 1e12", "raise"});
    drawing.ready.clear();
    const auto b = evaluator();
    const auto task = b->trace("task.py", "class Model: pass\n", Deadline::after(100));
    const Outcome outcome =
        search(*b, **task, {&one, &drawing}, {.samples = 4, .every_sample = every, .subgraphs = false},
               [&](const Event& e) {
                 if (e.kind != Event::Kind::kJudged || e.judged->proposer != "one") return;
                 drawing.ready.test_and_set();
                 drawing.ready.notify_all();
               });
    EXPECT_EQ(outcome.best->source, "BYTES 1e12");
    EXPECT_EQ(drawing.observed, every ? 4 : 3);
    EXPECT_EQ(drawing.cancelled, every ? 0 : 1);
    EXPECT_THAT(outcome.tried, SizeIs(every ? 5 : 4));
  }
}

TEST_F(SearchTest, SamplesEndWhereOneBeatsTheMeanOfThoseBefore) {
  Drawing drawing({"BYTES 4e12", "BYTES 0.1e12", "BYTES 2e12", "BYTES 4.1e12", "raise"});
  const Outcome outcome = run(*evaluator(), {&drawing}, {.samples = 5, .subgraphs = false});
  EXPECT_EQ(outcome.best->source, "BYTES 2e12");
  EXPECT_EQ(drawing.observed,
            4);  // 4.1 is above 4, and less than 3 % would be within the model's error
}

// Where judge and model share few cores, others would delay the first.
TEST_F(SearchTest, TheFirstSampleIsJudgedBeforeOthersAreAsked) {
  Drawing drawing({"BYTES 3e12", "raise", "BYTES 2e12"});
  std::vector<std::string> order;
  drawing.on_asked = [&](const std::vector<int>& samples) {
    order.push_back(fmt::format("{}", samples.size()));
  };
  const auto b = evaluator();
  const auto task = b->trace("task.py", "class Model: pass\n", Deadline::after(100));
  search(*b, **task, {&drawing}, {.samples = 3, .every_sample = true, .subgraphs = false},
         [&](const Event& e) {
           if (e.kind == Event::Kind::kJudged) order.emplace_back("judged");
         });
  EXPECT_THAT(order, ElementsAre("1", "judged", "2", "judged", "judged"));
}

TEST_F(SearchTest, WhereOneIsEnoughTheOthersWaitForTheFirst) {
  Drawing right({"BYTES 2e12", "BYTES 1e12", "BYTES 1e12"});
  const SearchOptions first{.samples = 3, .first_is_enough = true, .subgraphs = false};
  EXPECT_EQ(run(*evaluator(), {&right}, first).best->source, "BYTES 2e12");
  EXPECT_EQ(right.observed, 1);
  EXPECT_EQ(right.cancelled, 0);  // not requested
  Drawing wrong({"raise", "BYTES 1e12", "raise"});
  EXPECT_EQ(run(*evaluator(), {&wrong}, first).best->source, "BYTES 1e12");
  EXPECT_EQ(wrong.observed, 3);  // from the last
}

struct Speculating : Drawing {
  using Drawing::Drawing;
  bool speculates() const override { return true; }
};

TEST_F(SearchTest, SpeculationWritesOthersWhileTheFirstIsJudged) {
  const SearchOptions usual{.samples = 3, .first_is_enough = true, .speculate = true, .subgraphs = false};
  Speculating able({"BYTES 2e12", "raise", "BYTES 1e12"});
  Drawing unable({"BYTES 2e12", "raise", "BYTES 1e12"});
  for (Drawing* drawing : {static_cast<Drawing*>(&able), &unable}) {
    std::vector<size_t> asked;
    drawing->on_asked = [&](const std::vector<int>& samples) { asked.push_back(samples.size()); };
    const Outcome outcome = run(*evaluator(), {drawing}, usual);
    ASSERT_TRUE(outcome.best);
    const bool speculates = drawing == &able;
    EXPECT_THAT(asked, ElementsAre(speculates ? 3u : 1u));
    EXPECT_EQ(drawing->observed, 1);
    EXPECT_EQ(drawing->cancelled, speculates ? 2 : 0);
    // Who wrote, who judged, and what was cancelled.
    EXPECT_THAT(outcome.spans, SizeIs(speculates ? 3 : 2));
    EXPECT_LE(outcome.first_seconds, outcome.best_seconds);
    for (const Span& span : outcome.spans) {
      EXPECT_GE(span.from, 0);
      EXPECT_LE(span.to, outcome.seconds);
    }
  }
}

TEST_F(SearchTest, SpeculativeAnswersAreRememberedApart) {
  const auto folder = TemporaryFolder::create();
  auto store = store::Store::open(folder->path() / "store.db");
  Speculating drawing({"BYTES 1e12", "raise"});
  const auto b = evaluator(store->get());
  for (const bool speculate : {false, true, true, false})
    run(*b, {&drawing}, {.samples = 2, .every_sample = true, .speculate = speculate, .subgraphs = false});
  EXPECT_EQ(drawing.observed, 4);
}

TEST_F(SearchTest, ATargetEndsTheSearch) {
  const auto b = evaluator();
  const auto task = b->trace("task.py", "class Model: pass # BYTES 8e12\n", Deadline::after(100));
  const auto found = [&](double target) {
    Drawing drawing({"BYTES 7e12", "BYTES 1e12", "BYTES 2e12", "BYTES 4e12", "raise"});
    return search(*b, **task, {&drawing},
                  {.samples = 5, .every_sample = true, .target_speedup = target, .subgraphs = false});
  };
  const Outcome all = found(0);
  ASSERT_EQ(all.tried.size(), 5u);
  EXPECT_TRUE(all.all_tried);
  double best = 0;
  for (size_t i = 0; i < all.tried.size(); ++i) {
    if (!all.tried[i].verified()) continue;
    const double reached = speedup_of(**task, all.tried[i]);
    EXPECT_GT(reached, best);  // the first, then from the last, each faster than those before
    best = reached;
    const Outcome some = found(reached);
    EXPECT_EQ(some.tried.size(), i + 1);
    EXPECT_FALSE(some.all_tried);
  }
  EXPECT_EQ(found(1.01 * best).tried.size(), 5u);
}

// Answers by the text of the task: a model that reads texts by their style.
class Reader : public proposers::Proposer {
 public:
  using Read = std::function<std::string(bool again, int sample, int round)>;
  explicit Reader(Read read, int max_operators = 8) : read_(std::move(read)), max_operators_(max_operators) {}
  std::string_view name() const override { return "reader"; }
  bool samples() const override { return true; }
  int max_operators() const override { return max_operators_; }
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline) override {
    const bool again = request.source.find("torch.ops.aten.relu") != std::string::npos;
    asked.push_back(fmt::format("{}{}.{}", again ? "again " : "", request.round, request.sample));
    return proposing({read_(again, request.sample, request.round)});
  }
  std::vector<std::string> asked;

 private:
  Read read_;
  int max_operators_;
};

TEST_F(SearchTest, AProgramThatIsMisreadIsRewrittenFromItsTrace) {
  Reader reader([](bool again, int, int) { return again ? "class ModelNew: pass  # BYTES 1e12" : "raise"; });
  const Outcome first = run(*evaluator(), {&reader}, {.samples = 4, .first_is_enough = true});
  ASSERT_TRUE(first.best);
  EXPECT_EQ(first.best->proposer, "subgraphs");
  EXPECT_THAT(first.best->source, HasSubstr("self.subgraph_1_run(inputs[0])"));
  EXPECT_FALSE(first.all_tried);
  EXPECT_THAT(reader.asked, ElementsAre("0.0", "again 0.0"));  // the other samples wait
  reader.asked.clear();
  EXPECT_TRUE(run(*evaluator(), {&reader}, {.samples = 2}).best);
  EXPECT_THAT(reader.asked, ElementsAre("0.0", "0.1", "again 0.0"));
  reader.asked.clear();
  EXPECT_FALSE(run(*evaluator(), {&reader}, {.samples = 2, .subgraphs = false}).best);
  EXPECT_THAT(reader.asked, ElementsAre("0.0", "0.1"));
  // A model that reads the text as it is gains nothing from the canonical one.
  Scripted one("one", {proposing({"raise"})});
  EXPECT_TRUE(run(*evaluator(), {&one}, {}).all_tried);
  EXPECT_THAT(one.requests, SizeIs(1));
}

// Solves questions about a logarithm or a product, not about both or log10, and remembers what it solved.
class OneStepAtATime : public proposers::Proposer {
 public:
  std::string_view name() const override { return "reader"; }
  bool samples() const override { return true; }
  int max_operators() const override { return 8; }
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline) override {
    const auto has = [&](const char* word) { return request.source.find(word) != std::string::npos; };
    const bool other = has("log10") || (has("log") && has("mul")) || request.name == "task.py";
    if (!other) solved.insert(request.source);
    return proposing({other ? "raise" : "class ModelNew: pass  # BYTES 1e12"});
  }
  std::set<std::string> solved;
};

TEST_F(SearchTest, AStepThatFailsIsTakenApart) {
  const auto trace = backends.trace;
  backends.trace = [trace](const tracer::TraceRequest& request, Deadline deadline) {
    auto answer = trace(request, deadline);
    if (auto* found = std::get_if<trace::Trace>(&*answer); found != nullptr && request.class_name == "Model")
      for (auto& phase : found->phases)
        if (phase.kind == trace::PhaseKind::kForward)
          std::get<trace::Call>(phase.steps.front()).op = "aten::log10";
    return answer;
  };
  const auto analyze = backends.analyze;
  backends.analyze = [analyze](const trace::Trace& trace) {
    auto facts = analyze(trace);
    for (size_t p = 0; p < facts->phases.size(); ++p) {
      auto& steps = facts->phases[p].steps;
      if (steps.empty()) continue;
      steps.resize(trace.phases[p].steps.size(), steps.front());
      for (size_t i = 0; i < steps.size(); ++i)
        if (const auto* call = std::get_if<trace::Call>(&trace.phases[p].steps[i]);
            call != nullptr && call->op == "aten::full")
          steps[i].work = verify::Work::kFree;
    }
    return facts;
  };
  OneStepAtATime reader;
  const Outcome outcome = run(*evaluator(), {&reader}, {.samples = 2, .first_is_enough = true});
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->proposer, "subgraphs");
  EXPECT_THAT(outcome.best->source, HasSubstr("[1], 0.4342944819032518, dtype=torch.float32"));
  EXPECT_THAT(outcome.best->source, HasSubstr("t1 = self.subgraph_1_run(inputs[0])"));
  EXPECT_THAT(reader.solved, Contains(HasSubstr("torch.ops.aten.log.default(x0)")));
}

TEST(Subgraphs, AreLeftOutWhereTheyGainNothing) {
  proposers::CompilerProposer compiler;
  Scripted other("other", {});
  Judged best;
  best.work = Work{};
  best.work->steps.resize(2);
  EXPECT_TRUE(subgraphs_may_gain({}, {&compiler}));
  EXPECT_FALSE(subgraphs_may_gain(best, {&compiler}));
  EXPECT_TRUE(subgraphs_may_gain(best, {&compiler, &other}));
  Judged measured = best;
  measured.times.emplace();
  EXPECT_TRUE(subgraphs_may_gain(measured, {&compiler}));
  best.work->steps.resize(1);
  EXPECT_FALSE(subgraphs_may_gain(best, {&compiler, &other}));
}

TEST_F(SearchTest, WhileNothingIsVerifiedItIsDrawnMoreBoldly) {
  Reader wrong([](bool, int sample, int round) { return fmt::format("raise {} {}", sample, round); });
  const Outcome none = run(*evaluator(), {&wrong}, {.samples = 2, .first_is_enough = true});
  EXPECT_FALSE(none.best);
  EXPECT_TRUE(none.all_tried);
  EXPECT_THAT(wrong.asked, ElementsAre("0.0", "again 0.0", "again 0.1", "0.1", "1.1", "again 1.1", "2.1",
                                       "again 2.1", "3.1", "again 3.1"));
  EXPECT_EQ(std::ranges::count_if(none.tried, [](const Judged& j) { return j.sample; }),
            2);  // what pass@k counts
  Reader late([](bool again, int, int round) { return again || round < 2 ? "raise" : "BYTES 1e12"; });
  const Outcome found = run(*evaluator(), {&late}, {.samples = 2});
  ASSERT_TRUE(found.best);
  EXPECT_THAT(late.asked, Contains("2.1"));
  EXPECT_THAT(late.asked, testing::Not(Contains("3.1")));
  Reader slow([](bool, int sample, int round) { return fmt::format("SLOW raise {} {}", sample, round); });
  EXPECT_FALSE(run(*evaluator(), {&slow}, {.deadline = Deadline::after(0), .samples = 2}).all_tried);
}

TEST_F(SearchTest, AProgramTooLargeForAProposerIsAskedAboutWholeWhereItsSubgraphsFail) {
  Reader reader([](bool again, int sample, int) { return again || sample < 1 ? "raise" : "BYTES 1e12"; }, 0);
  const Outcome outcome = run(*evaluator(), {&reader}, {.samples = 2, .first_is_enough = true});
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->proposer, "reader");
  EXPECT_THAT(reader.asked, ElementsAre("again 0.0", "again 0.1", "0.0", "0.1"));
}

TEST_F(SearchTest, TheSameCodeIsJudgedOnce) {
  Drawing different({"raise", "BYTES 1e12"}), alike({"raise", "raise", "raise", "BYTES 1e12", "raise"});
  EXPECT_THAT(run(*evaluator(), {&different}, {.samples = 2, .every_sample = true, .subgraphs = false}).tried,
              SizeIs(2));
  const int once = traced;
  EXPECT_THAT(run(*evaluator(), {&alike}, {.samples = 5, .every_sample = true, .subgraphs = false}).tried,
              SizeIs(5));
  EXPECT_EQ(traced, 2 * once);
}

TEST_F(SearchTest, SamplesThatAreKnownAreNotDrawnAgain) {
  const auto folder = TemporaryFolder::create();
  auto store = store::Store::open(folder->path() / "store.db");
  Drawing drawing({"BYTES 1e12", "raise", "BYTES 1e12", "raise"});
  const auto b = evaluator(store->get());
  EXPECT_THAT(run(*b, {&drawing}, {.samples = 2, .every_sample = true, .subgraphs = false}).tried, SizeIs(2));
  EXPECT_THAT(run(*b, {&drawing}, {.samples = 4, .every_sample = true, .subgraphs = false}).tried, SizeIs(4));
  EXPECT_EQ(drawing.observed, 4);
}

TEST_F(SearchTest, AProposerThatIsLostIsNoWordAboutTheTask) {
  Scripted one("one", {proposing({"raise"})});
  Drawing drawing({"lost"});
  const Outcome outcome = run(*evaluator(), {&one, &drawing});
  EXPECT_FALSE(outcome.best);
  ASSERT_NE(fault_of(outcome), nullptr);
  EXPECT_EQ(fault_of(outcome)->fault, Blame::kOurs);
  EXPECT_EQ(fault_of(outcome)->why, "the process was lost");
  EXPECT_EQ(fault_of(run(*evaluator(), {&one})), nullptr);
}

TEST_F(SearchTest, ARepairGetsTheEvidence) {
  Scripted one("one", {proposing({"raise 1"}), proposing({"raise 2"}), proposing({"BYTES 1"})}, true);
  const auto b = evaluator();
  const Outcome outcome = run(*b, {&one}, {.repairs = 2, .subgraphs = false});
  ASSERT_TRUE(outcome.best);
  ASSERT_THAT(one.requests, SizeIs(3));
  EXPECT_THAT(one.requests[0].attempts, IsEmpty());
  ASSERT_THAT(one.requests[2].attempts, SizeIs(2));
  EXPECT_EQ(one.requests[2].attempts[1].text, "raise 2");
  EXPECT_THAT(one.requests[2].attempts[1].evidence, HasSubstr("ValueError"));
  Scripted two("two", {proposing({"raise 1"}), proposing({"raise 2"}), proposing({"BYTES 1"})}, true);
  EXPECT_FALSE(run(*b, {&two}, {.repairs = 1, .subgraphs = false}).best);
}

TEST_F(SearchTest, NothingIsBegunAfterTheDeadline) {
  Scripted one("one", {proposing({"BYTES 1"})});
  const auto b = evaluator();
  EXPECT_FALSE(run(*b, {&one}, {.deadline = Deadline::after(0), .subgraphs = false}).best);
  EXPECT_THAT(one.requests, IsEmpty());
}

TEST_F(SearchTest, TheSearchEndsWithTimeForWhatFollows) {
  for (const double seconds : {0.0, 1000.0}) {
    Scripted one("one", {proposing({"BYTES 2e12", "BYTES 1e12", "BYTES 5e11"})});
    const auto b = evaluator();
    std::vector<std::string> asked_about;
    const Outcome outcome =
        run(*b, {&one},
            {.deadline = Deadline::after(100), .subgraphs = false, .to_finish = [&](const Judged& best) {
               asked_about.push_back(best.source);
               EXPECT_GT(best.seconds, 0);
               return seconds;
             }});
    ASSERT_TRUE(outcome.best);
    EXPECT_THAT(outcome.tried, SizeIs(seconds > 0 ? 1U : 3U));
    EXPECT_EQ(asked_about.size(), outcome.tried.size());
    EXPECT_EQ(outcome.all_tried, seconds == 0);
  }
}

TEST_F(SearchTest, TheDeadlineBreaksOffAVerdictThoughNothingIsVerified) {
  Scripted one("one", {proposing({"SLOW BYTES 2e12", "BYTES 1e12"})});
  const auto b = evaluator();
  const Outcome outcome = run(*b, {&one}, {.deadline = Deadline::after(1.5), .subgraphs = false});
  EXPECT_FALSE(outcome.best);
  EXPECT_THAT(outcome.tried, IsEmpty());
  ASSERT_THAT(outcome.declined, SizeIs(1));
  EXPECT_THAT(outcome.declined[0].why, HasSubstr("time budget ended"));
}

TEST_F(SearchTest, ProposersThatWaitForTheirTurnEndWithTheBudget) {
  // On a CPU one candidate is judged after the other.
  Scripted one("one", {proposing({"SLOW BYTES 2e12"})}), two("two", {proposing({"SLOW BYTES 1e12"})});
  const auto b = evaluator();
  const Outcome outcome = run(*b, {&one, &two}, {.deadline = Deadline::after(1.5), .subgraphs = false});
  EXPECT_FALSE(outcome.best);
  EXPECT_THAT(outcome.declined, SizeIs(2));
}

TEST_F(SearchTest, OnceSomethingIsVerifiedTheDeadlineBreaksOff) {
  Scripted one("one", {proposing({"BYTES 2e12", "SLOW BYTES 1e12"})});
  const auto folder = TemporaryFolder::create();
  auto store = store::Store::open(folder->path() / "store.db");
  const auto b = evaluator(store->get());
  const Outcome outcome = run(*b, {&one}, {.deadline = Deadline::after(1.5), .subgraphs = false});
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->source, "BYTES 2e12");
  EXPECT_THAT(outcome.tried, SizeIs(1));
  // It is no verdict, and is not remembered as one.
  const Outcome again = run(*b, {&one}, {.subgraphs = false});
  EXPECT_EQ(again.best->source, "SLOW BYTES 1e12");
  EXPECT_FALSE(again.best->remembered);
}

TEST_F(SearchTest, AFileIsWrittenWithoutTracesWhereThereIsNoTimeForThem) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok());
  const auto guard = compiler::Guard::read(installation->package);
  ASSERT_TRUE(guard.ok()) << guard.error().message;
  const auto b = evaluator();
  const auto task = b->trace("task.py", "class Model: pass\n", Deadline::after(100));
  ASSERT_TRUE(task.ok());
  const int before = traced;
  const auto late = guarded(*b, **task, "class ModelNew: pass\n", *guard, {.deadline = Deadline::after(0)});
  ASSERT_TRUE(late.ok()) << late.error().message;
  EXPECT_EQ(traced, before);
  EXPECT_FALSE(late->traced);
  EXPECT_THAT(late->source, HasSubstr("\"modes\": True"));
  EXPECT_THAT(late->source, HasSubstr("\"state\": None"));
  // In time: of the file, of the task in the other mode, of the file with its guard, in which "raise" stands.
  EXPECT_FALSE(guarded(*b, **task, "class ModelNew: pass\n", *guard, {}).ok());
  EXPECT_EQ(traced, before + 3);
}

TEST_F(SearchTest, WhereThereIsAClockTheWinnerIsTurned) {
  Scripted one("one", {proposing({"MS 5"})}), two("two", {proposing({"MS 7"})});
  one.turns = {"MS 6", "raise", "MS 3", "MS 4"}, two.turns = {"MS 1"};
  Evaluator timed(backends, EvaluatorOptions{.settings = {.device = replay::Device::kCuda, .time = true}});
  const Outcome outcome = run(timed, {&one, &two});
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->source, "MS 3");
  EXPECT_EQ(outcome.best->ms(), 3);
  EXPECT_THAT(one.observed, ElementsAre(5, 6, -1, 3, 4));
  EXPECT_THAT(two.observed, IsEmpty());  // it did not win
  EXPECT_EQ(
      std::count_if(outcome.tried.begin(), outcome.tried.end(), [](const Judged& j) { return j.sample; }), 2);
  // Without a clock there is nothing to compare by.
  Scripted three("three", {proposing({"BYTES 1e12"})});
  three.turns = {"BYTES 1e9"};
  EXPECT_EQ(run(*evaluator(), {&three}).best->source, "BYTES 1e12");
}

TEST_F(SearchTest, AChoiceThatFailsIsFollowedByTheNext) {
  // "LARGE" is refused by the GPU's compiler.
  backends.compile = [](const trace::Trace& trace, Deadline) -> Result<verify::CompiledKernels> {
    verify::CompiledKernels made;
    if (trace.class_name != "ModelNew") return made;
    if (trace.notes.front().find("LARGE") != std::string::npos)
      made.refused[trace.kernels[0].hash] = "262400 bytes of shared memory";
    else
      for (const auto& kernel : trace.kernels) made.kernels[kernel.hash] = "code";
    return made;
  };
  const EvaluatorOptions options{.settings = {.device = replay::Device::kCuda, .time = true}};
  Evaluator timed(backends, options);
  Scripted one("one", {proposing({"WRONG 1"})});
  one.ways = {"WRONG 2", "LARGE 3", "LARGE 4", "MS 5", "MS 1"};
  one.turns = {"MS 4"};
  const Outcome outcome = run(timed, {&one});
  ASSERT_TRUE(outcome.best) << outcome.tried.back().verdict;
  EXPECT_THAT(one.failures, ElementsAre("wrong", "wrong", "too large: ", "too large: "));
  EXPECT_THAT(one.observed,
              ElementsAre(-5, 4));  // what was verified is turned, and not what was proposed first
  EXPECT_EQ(outcome.best->source, "MS 4");
  EXPECT_THAT(bests, ElementsAre("MS 5", "MS 4"));
  // Not after what no other way of writing mends, not where the first is verified, and not where it is not
  // asked for.
  for (const auto& [text, fallbacks] :
       {std::pair("raise", true), std::pair("MS 3", true), std::pair("WRONG", false)}) {
    Scripted two("two", {proposing({text})});
    two.ways = {"MS 2"};
    run(timed, {&two}, {.fallbacks = fallbacks, .subgraphs = false});
    EXPECT_THAT(two.failures, IsEmpty()) << text;
  }
  // Until there is no other way, or no time.
  Scripted three("three", {proposing({"WRONG 1"})});
  three.ways = {"WRONG 2", "WRONG 3"};
  EXPECT_FALSE(run(timed, {&three}).best);
  EXPECT_THAT(three.failures, ElementsAre("wrong", "wrong", "wrong"));
  Scripted late("late", {proposing({"SLOW WRONG 1"})});
  for (int i = 0; i < 100; ++i) late.ways.push_back("SLOW WRONG " + std::to_string(i + 2));
  EXPECT_FALSE(run(timed, {&late}, {.deadline = Deadline::after(0.5), .subgraphs = false}).best);
  EXPECT_LT(late.failures.size(), 20U);
}

TEST_F(SearchTest, WhatWasJudgedOnceIsRemembered) {
  const auto folder = TemporaryFolder::create();
  auto store = store::Store::open(folder->path() / "store.db");
  ASSERT_TRUE(store.ok());
  Scripted one("one", {proposing({"BYTES 1e12", "raise"})});
  const auto first = evaluator(store->get());
  const Outcome before = run(*first, {&one});
  EXPECT_FALSE(before.best->remembered);
  const int traces = traced;
  const auto second = evaluator(store->get());
  const Outcome after = run(*second, {&one});
  EXPECT_EQ(traced, traces + 1);  // the reference alone
  EXPECT_THAT(one.requests, SizeIs(1));
  EXPECT_TRUE(after.best->remembered);
  EXPECT_EQ(after.best->source, before.best->source);
  EXPECT_EQ(after.best->ms(), before.best->ms());
  EXPECT_EQ(after.best->work->steps.size(), before.best->work->steps.size());
  EXPECT_EQ(after.cost.completion_tokens, 0);
  EXPECT_EQ(after.tried[1].evidence, before.tried[1].evidence);
  const auto third = evaluator(store->get(), true);
  EXPECT_FALSE(run(*third, {&one}).best->remembered);
  EXPECT_THAT(one.requests, SizeIs(2));
}

TEST_F(SearchTest, AReferenceThatDoesNotTraceIsBadInput) {
  const auto task = evaluator()->trace("task.py", "raise", Deadline::after(100));
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.error().blame, Blame::kInput);
  EXPECT_THAT(task.error().message, HasSubstr("task.py: forward raised ValueError: no"));
}

TEST_F(SearchTest, TheResultFileSaysWhatIsKnown) {
  Scripted one("one", {proposing({"BYTES 1e12"})});
  const auto b = evaluator();
  const auto task = b->trace("task.py", "class Model: pass\n", Deadline::after(100));
  Judged best = *run(*b, {&one}).best;
  best.source = "\n\n\n" + best.source;
  best.plan = "fused\nall\x1b[31m of it " + std::string(200, 'x') + " " + std::string(50, 'y');
  const std::string text = result_file(
      **task, best, {.program = "nereid 9", .reference = "task.py", .hardware = "cpu", .versions = "v"});
  EXPECT_THAT(text, testing::StartsWith("# Written by `nereid optimize` (nereid 9) for task.py"));
  EXPECT_THAT(text, HasSubstr("cost model"));
  EXPECT_THAT(text, testing::EndsWith("\n\nBYTES 1e12\n"));
  std::istringstream lines(text.substr(0, text.find("\n\nBYTES")));
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(line, testing::StartsWith("#"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_F(SearchTest, TheReportShowsAllAndEscapesAll) {
  Scripted one("one", {proposing({"BYTES 1e12", "raise <script>"})}), two("two", {{.declined = "can<not"}});
  const auto b = evaluator();
  const auto task = b->trace("task.py", "class Model: pass  # <b>\n", Deadline::after(100));
  std::vector<proposers::Proposer*> proposers = {&one, &two};
  const Outcome outcome = search(*b, **task, proposers, {.subgraphs = false});
  const std::string html = report_page(
      **task, outcome, {.reference = "t<a>sk.py", .hardware = "cpu", .versions = "v", .policy = "mostly"});
  for (const char* word :
       {"t&lt;a&gt;sk.py", "BYTES 1e12", "can&lt;not", "# &lt;b&gt;", "Verified", "<svg", "eager PyTorch"})
    EXPECT_THAT(html, HasSubstr(word));
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_EQ(html.find("http:"), html.npos);
  EXPECT_THAT(report_page(**task, Outcome{}, {}), HasSubstr("No proposer proposed anything"));
}

TEST(CostModel, MemoryComputingAndLaunches) {
  AnalysisBuilder builder;
  builder.plain("aten::relu", verify::Work::kPointwise);
  auto facts = builder.facts();
  auto& step = facts.phases.back().steps.back();
  step.bytes = 4e9, step.flops = 1;
  const Gpu gpu{.memory_bytes_per_second = 4e12,
                .cache_bytes_per_second = 8e12,
                .pointwise_flops = 1e12,
                .launch_seconds = 1e-6};
  EXPECT_NEAR(work_of(facts, gpu).ms, 1.001, 1e-9);
  EXPECT_NEAR(work_of(facts, gpu).steps[0].roofline_ms, 1.0, 1e-9);
  // The task as a whole: an input, a parameter and a result of 400 bytes, however often a step asks for them.
  const gpu::DevicePeaks peaks{.name = "a GPU", .bytes = 1e6, .f32 = 1e9, .tf32 = 6e9, .half = 1e12};
  EXPECT_DOUBLE_EQ(min_work(facts).bytes_read, 800);
  EXPECT_DOUBLE_EQ(min_work(facts).bytes_written, 400);
  EXPECT_DOUBLE_EQ(roofline_ms(facts, peaks), 1.2);
  step.flops = 2e6;
  EXPECT_DOUBLE_EQ(roofline_ms(facts, peaks), 2);
  // A product of float32: three in TF32, or one if it is allowed.
  trace::Trace product = *facts.trace;
  std::get<trace::Call>(product.phases.back().steps.back()).op = "aten::mm";
  auto of_product = facts;
  of_product.trace = &product;
  of_product.phases.back().steps.back().flops = 12e6;
  EXPECT_DOUBLE_EQ(roofline_ms(of_product, peaks), 6);
  EXPECT_DOUBLE_EQ(roofline_ms(of_product, peaks, true), 2);
  product.flags["matmul.allow_tf32"] = 1;
  EXPECT_DOUBLE_EQ(roofline_ms(of_product, peaks), 2);
  step.flops = 5e9;
  EXPECT_NEAR(work_of(facts, gpu).ms, 5.001, 1e-9);
  // What a kernel asks for beyond its tensors comes from the cache.
  step.flops = 1, step.work = verify::Work::kTriton;
  EXPECT_NEAR(work_of(facts, gpu).ms, 0.501, 1e-9);
  EXPECT_LT(work_of(facts, gpu).bytes, 4e9);
  step.work = verify::Work::kFree, step.bytes = 0;
  EXPECT_THAT(work_of(facts, gpu).steps, IsEmpty());
}

TEST(JudgedDocument, OfAMeasuredVerdictAndOfNonsense) {
  verify::Verdict verdict;
  verdict.kind = verify::VerdictKind::kVerified;
  verdict.times = {.reference_ms = 2,
                   .candidate_ms = 1,
                   .speedup = 2,
                   .ci_low = 1.9,
                   .ci_high = 2.1,
                   .method = "graph",
                   .numbers = {{"candidate_launches_ms", 1.5}}};
  Judged judged;
  judged.kind = verify::VerdictKind::kVerified, judged.verdict = verify::to_json(verdict).dump();
  const auto again = judged_from(document_of(judged));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->ms(), 1);
  EXPECT_EQ(again->times->ci_high, 2.1);
  EXPECT_EQ(again->launches_ms(), 1.5);
  EXPECT_FALSE(again->work);
  EXPECT_FALSE(judged_from("{").ok());
  EXPECT_FALSE(judged_from("{\"verdict\": 3}").ok());
}

}  // namespace
}  // namespace nereid::search
