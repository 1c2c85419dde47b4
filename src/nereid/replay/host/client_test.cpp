// Sessions with real workers: nereid-replay is started, and small traces are sent to it.
#include "nereid/replay/host/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/replay/host/worker_process.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;
using testing::HasSubstr;

constexpr int64_t kN = 300;
using Tensors = TaskTensors;

Trace task(bool reference, const TaskForward& forward) { return sample_task(reference, kN, forward); }
Trace reference_add() { return sample_reference(kN); }
Trace candidate_launch(const std::string& op, int64_t count = kN, bool launched = true) {
  return sample_candidate(op, kN, count, launched);
}
Trace candidate_call(const TaskForward& forward) { return task(false, forward); }

// With plenty of memory, and where it is dear.
class ClientTest : public testing::TestWithParam<bool> {
 protected:
  static Server& server() {
    static auto started = Server::start({.program = NEREID_REPLAY_PROGRAM});
    EXPECT_TRUE(started.ok()) << started.error().message;
    return **started;
  }
  std::unique_ptr<Session> begin(const Trace& reference, const Trace& candidate,
                                 SessionOptions options = {}) {
    if (GetParam()) options.low_memory_above = -1;
    auto session = server().begin(reference, candidate, options, Deadline::after(60));
    EXPECT_TRUE(session.ok()) << session.error().message;
    const auto& facts = (*session)->facts();
    EXPECT_EQ(facts.frugal, GetParam() && facts.peak_bytes > 0);  // 0: a trace that cannot be prepared
    return std::move(session).value();
  }
  TrialReport trial(Session& session, Trial trial = {.seed = 1}, Tolerance tolerance = {}) {
    auto report = session.trial(trial, tolerance, Deadline::after(60));
    EXPECT_TRUE(report.ok()) << report.error().message;
    return *report;
  }
};

std::string text_of(const TrialReport& report) {
  std::string text;
  if (report.failed) text += std::string(to_string(report.failed->kind)) + ": " + report.failed->message;
  if (report.reference_failed) text += "reference: " + report.reference_failed->message;
  for (const auto& finding : report.findings) text += finding.sentence + "; ";
  if (report.comparison)
    for (const auto& output : report.comparison->outputs) text += output.path + ": " + output.reason + "; ";
  return text;
}

TEST_P(ClientTest, ACorrectKernelAgreesOnEveryKindOfInput) {
  auto session = begin(reference_add(), candidate_launch("addf"));
  EXPECT_TRUE(session->facts().unpaired.empty());
  for (int kind = 0; kind <= static_cast<int>(InputDistribution::kNans); ++kind) {
    const auto report =
        trial(*session, {.seed = 7u + kind, .distribution = static_cast<InputDistribution>(kind)});
    EXPECT_TRUE(report.ok()) << to_string(report.trial.distribution) << ": " << text_of(report);
    EXPECT_EQ(report.comparison->oracle, Oracle::kFloat64);
    EXPECT_EQ(report.comparison->outputs[0].elements, kN);
  }
}

TEST_P(ClientTest, AWrongKernelIsReportedByPositionAndError) {
  auto session = begin(reference_add(), candidate_launch("subf"));
  const auto report = trial(*session);
  ASSERT_TRUE(report.comparison);
  EXPECT_FALSE(report.comparison->agrees);
  const auto& output = report.comparison->outputs[0];
  EXPECT_GT(output.wrong, kN / 2);
  EXPECT_EQ(output.first_wrong, std::vector<int64_t>{0});
  EXPECT_EQ(output.worst.size(), 1u);
  EXPECT_GT(std::abs(output.worst_got - output.worst_want), 1);
}

TEST_P(ClientTest, AnOverrunIsAFinding) {
  auto session = begin(reference_add(), candidate_launch("addf", kN + 10));
  const auto report = trial(*session);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, ttir::FindingKind::kOutOfBounds);
  EXPECT_FALSE(report.comparison);
}

TEST_P(ClientTest, AnUnwrittenOutputIsPoison) {
  auto session = begin(reference_add(), candidate_launch("addf", kN, false));
  const auto report = trial(*session);
  ASSERT_TRUE(report.comparison) << text_of(report);
  EXPECT_EQ(report.comparison->outputs[0].wrong, kN);
}

TEST_P(ClientTest, LeavingTheKernelOutChangesTheAnswer) {
  auto session = begin(reference_add(), candidate_launch("addf"));
  ASSERT_TRUE(trial(*session).ok());
  ASSERT_EQ(session->facts().launches.size(), 1u);
  const auto report = session->leave_out({session->facts().launches[0].step}, Deadline::after(60));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->changed);
  EXPECT_TRUE(trial(*session, {.seed = 2}).ok()) << "a trial after it is as before";
}

TEST_P(ClientTest, AnAlternativeIsComparedToo) {
  auto candidate = candidate_launch("addf");
  auto& launch = std::get<Launch>(candidate.phases.back().steps.back());
  candidate.kernels.push_back(candidate.kernels[0]);
  candidate.kernels[1].ttir = binary_ttir("mulf");
  launch.alternatives.push_back(launch.alternatives[0]);
  launch.alternatives[1].kernel = 1;
  auto session = begin(reference_add(), candidate);
  ASSERT_TRUE(trial(*session).ok());
  const auto same =
      session->try_alternatives({{{session->facts().launches[0].step, 0}}, true}, {}, Deadline::after(60));
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_TRUE(same->ok()) << text_of(*same);
  const int step = session->facts().launches[0].step;
  const auto again = session->try_alternatives({{}, true}, {}, Deadline::after(60));
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(same->left.contains(step));
  EXPECT_EQ(same->left, again->left);
  const auto other =
      session->try_alternatives({{{session->facts().launches[0].step, 1}}, true}, {}, Deadline::after(60));
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_FALSE(other->ok());
  EXPECT_NE(other->left.at(step), same->left.at(step));
}

TEST_P(ClientTest, AnOperatorThatIsRefusedOrRaisesIsAFailureThatSaysWhere) {
  const auto with = [&](const std::string& op, std::vector<Arg> args) {
    auto session = begin(reference_add(), candidate_call([&](Sketch& s, const Tensors&) {
                           const auto out = s.tensor({kN});
                           auto call = make_call(op, args, tensor_arg(out));
                           call.place = {"model.py", 12};
                           s.step(call);
                           return tensor_arg(out);
                         }));
    const auto report = trial(*session);
    EXPECT_TRUE(report.failed) << op;
    EXPECT_FALSE(report.comparison);
    return report.failed.value_or(Failure{});
  };
  EXPECT_EQ(with("aten::from_file", {Arg{Text{"/etc/passwd"}}}).kind, Failure::Kind::kRefused);
  EXPECT_EQ(with("evil::op", {}).kind, Failure::Kind::kRefused);
  const auto raised = with("aten::arange", {Arg{int64_t{-5}}});
  EXPECT_EQ(raised.kind, Failure::Kind::kRaised);
  EXPECT_EQ(raised.where.op, "aten::arange");
  EXPECT_EQ(raised.where.place.line, 12);
}

TEST_P(ClientTest, OtherShapesAreNotCompared) {
  auto session = begin(reference_add(), candidate_call([](Sketch& s, const Tensors& t) {
                         const auto half = s.view(t.x, {kN / 2}, {1});
                         return tensor_arg(half);
                       }));
  const auto report = trial(*session);
  ASSERT_TRUE(report.comparison);
  EXPECT_FALSE(report.comparison->agrees);
  EXPECT_EQ(report.comparison->structure, "output: expected f32[300], got f32[150]");
}

TEST_P(ClientTest, AParameterOfOnesHidesNothing) {
  const auto scaled = [](bool with_w) {
    return [with_w](Sketch& s, const Tensors& t) {
      const auto sum = s.tensor({kN}), out = s.tensor({kN});
      s.step(make_call("aten::add.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(sum)));
      if (!with_w) return tensor_arg(sum);
      s.step(make_call("aten::mul.Tensor", {tensor_arg(sum), tensor_arg(t.w)}, tensor_arg(out)));
      return tensor_arg(out);
    };
  };
  auto without = begin(task(true, scaled(true)), task(false, scaled(false)));
  EXPECT_FALSE(trial(*without).ok());
  EXPECT_TRUE(trial(*without, {.seed = 1, .perturb = false}).ok()) << "which is why they are perturbed";
  auto with = begin(task(true, scaled(true)), task(false, scaled(true)));
  const auto report = trial(*with);
  EXPECT_TRUE(report.ok()) << text_of(report);
  EXPECT_TRUE(report.perturbed);
}

TEST_P(ClientTest, WritingAnInputIsSeen) {
  auto session =
      begin(reference_add(), candidate_call([](Sketch& s, const Tensors& t) {
              const auto out = s.tensor({kN});
              s.step(make_call("aten::add.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(out)));
              s.step(make_call("aten::mul_.Tensor", {tensor_arg(t.y), Arg{2.0}}, tensor_arg(t.y)));
              return tensor_arg(out);
            }));
  const auto report = trial(*session);
  ASSERT_TRUE(report.comparison) << text_of(report);
  EXPECT_TRUE(report.comparison->agrees);
  EXPECT_EQ(report.inputs_written, std::vector<std::string>{"input 1"});
  EXPECT_EQ(trial(*session, {.seed = 3}).inputs_written.size(), 1u) << "and the next trial begins anew";
}

TEST_P(ClientTest, WritingStateThatTheReferenceLeavesAloneIsSeen) {
  const auto scaled = [](int writes_in) {
    return [writes_in, call = 0](Sketch& s, const Tensors& t) mutable {
      const auto sum = s.tensor({kN}), out = s.tensor({kN});
      s.step(make_call("aten::add.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(sum)));
      s.step(make_call("aten::mul.Tensor", {tensor_arg(sum), tensor_arg(t.w)}, tensor_arg(out)));
      if (call++ == writes_in)
        s.step(make_call("aten::mul_.Tensor", {tensor_arg(t.w), Arg{0.0}}, tensor_arg(t.w)));
      return tensor_arg(out);
    };
  };
  for (const int call : {2, 0}) {  // the judged call; one before it
    auto session = begin(task(true, scaled(-1)), task(false, scaled(call)));
    const auto report = trial(*session);
    ASSERT_TRUE(report.comparison) << text_of(report);
    EXPECT_TRUE(report.comparison->agrees);
    EXPECT_EQ(report.state_written, std::vector<std::string>{"w"});
  }
  auto both = begin(task(true, scaled(2)), task(false, scaled(2)));
  EXPECT_TRUE(trial(*both).ok()) << "what the reference writes is compared";
  auto neither = begin(task(true, scaled(-1)), task(false, scaled(-1)));
  EXPECT_TRUE(trial(*neither).ok());
}

TEST_P(ClientTest, ATaskThatSaysNothingIsReported) {
  const auto zero = [](Sketch& s, const Tensors& t) {
    const auto out = s.tensor({kN});
    s.step(make_call("aten::mul.Tensor", {tensor_arg(t.x), Arg{0.0}}, tensor_arg(out)));
    return tensor_arg(out);
  };
  auto session = begin(task(true, zero), task(false, zero));
  EXPECT_TRUE(trial(*session).comparison->constant);
  EXPECT_TRUE(trial(*session, {.seed = 2}).comparison->insensitive);
  auto honest = begin(reference_add(), candidate_launch("addf"));
  EXPECT_FALSE(trial(*honest).comparison->constant);
  EXPECT_FALSE(trial(*honest, {.seed = 2}).comparison->insensitive);
}

TEST_P(ClientTest, LowerPrecisionThanTheTasksIsAMismatch) {
  auto session =
      begin(reference_add(), candidate_call([](Sketch& s, const Tensors& t) {
              const auto a = s.tensor({kN}, DType::kBF16), b = s.tensor({kN}, DType::kBF16),
                         sum = s.tensor({kN}, DType::kBF16), out = s.tensor({kN});
              const auto cast = [&](ValueId from, ValueId to, const char* type) {
                auto call = make_call("aten::_to_copy", {tensor_arg(from)}, tensor_arg(to));
                call.kwargs.emplace_back("dtype", Arg{Named{"dtype", type}});
                s.step(call);
              };
              cast(t.x, a, "bf16");
              cast(t.y, b, "bf16");
              s.step(make_call("aten::add.Tensor", {tensor_arg(a), tensor_arg(b)}, tensor_arg(sum)));
              cast(sum, out, "f32");
              return tensor_arg(out);
            }));
  const auto report = trial(*session);
  ASSERT_TRUE(report.comparison) << text_of(report);
  EXPECT_FALSE(report.comparison->agrees);
  EXPECT_TRUE(trial(*session, {.seed = 1}, {.rtol = 0.1, .atol = 0.1}).ok())
      << "--rtol and --atol replace the rule";
}

TEST_P(ClientTest, ATaskThatDoesNotFitIsAnErrorThatSaysHowMuchItNeeds) {
  const auto session =
      server().begin(reference_add(), candidate_launch("addf"), {.memory_limit = 1000}, Deadline::after(60));
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().blame, Blame::kInput);
  EXPECT_THAT(session.error().message, HasSubstr("GiB"));
}

TEST_P(ClientTest, AnEndlessReplayIsEnded) {
  auto session = begin(reference_add(), candidate_launch("addf"), {.phase_seconds = 0});
  const auto report = trial(*session);
  ASSERT_TRUE(report.failed);
  EXPECT_EQ(report.failed->kind, Failure::Kind::kTimedOut);
}

INSTANTIATE_TEST_SUITE_P(Plans, ClientTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Frugal" : "Roomy"; });

// Of the replay servers that this process started: those that live.
std::set<int> own_servers() {
  std::set<int> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(thread.path() / "children");
    for (int pid = 0; children >> pid;) {
      std::ifstream file(fmt::format("/proc/{}/comm", pid));
      std::string name;
      if (std::getline(file, name) && name == "nereid-replay") found.insert(pid);
    }
  }
  return found;
}

class WarmServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1), ::setenv("NEREID_KEEP_WARM", "20", 1);
  }
  void TearDown() override { ::unsetenv("NEREID_KEEP_WARM"), ::unsetenv("XDG_RUNTIME_DIR"); }

  static std::unique_ptr<Server> start() {
    return Server::start({.program = NEREID_REPLAY_PROGRAM, .one_author = true}).value();
  }
  static bool works(Server& server) {
    const auto session =
        server.begin(reference_add(), candidate_launch("addf"), {}, Deadline::after(60)).value();
    return session->trial({.seed = 1}, {}, Deadline::after(60)).value().ok();
  }

  TemporaryFolder runtime_ = TemporaryFolder::create("nereid-worker-pool").value();
};

TEST_F(WarmServerTest, TheNextCommandTakesWhatTheLastOneLeft) {
  const auto others = own_servers();
  auto server = start();
  EXPECT_TRUE(works(*server));
  const auto first = own_servers();
  EXPECT_EQ(first.size(), others.size() + 1);
  server.reset();
  EXPECT_EQ(own_servers(), first) << "it was not left alive";
  server = start();
  EXPECT_EQ(own_servers(), first) << "another was started";
  EXPECT_TRUE(works(*server));
  // No other command gets it meanwhile, and none that has another environment gets it at all.
  auto second = start();
  EXPECT_TRUE(works(*second));
  EXPECT_EQ(own_servers().size(), first.size() + 1);
  second.reset(), server.reset();
  ::setenv("OMP_NUM_THREADS", "1", 1);
  server = start();
  EXPECT_EQ(own_servers().size(), first.size() + 2);
  ::unsetenv("OMP_NUM_THREADS");
}

// A store, a cache and a home are the command's own affair; so are its secrets, which no server is given.
TEST_F(WarmServerTest, CommandsWithOtherFoldersShareOne) {
  ::setenv("NEREID_STORE", "/nowhere/store.db", 1), ::setenv("OPENAI_API_KEY", "secret-of-the-first", 1);
  auto server = start();
  EXPECT_TRUE(works(*server));
  const auto first = own_servers();
  for (const pid_t pid : first) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
    const std::string environment((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(environment.find("PATH="), environment.npos);
    EXPECT_EQ(environment.find("secret-of-the-first"), environment.npos);
    EXPECT_EQ(environment.find("/nowhere/store.db"), environment.npos);
  }
  server.reset();
  for (const char* name : {"NEREID_STORE", "NEREID_CACHE", "TMPDIR", "OPENAI_API_KEY", "TRITON_INTERPRET"})
    ::setenv(name, "/tmp", 1);
  server = start();
  EXPECT_EQ(own_servers(), first) << "another was started";
  EXPECT_TRUE(works(*server));
  for (const char* name : {"NEREID_STORE", "NEREID_CACHE", "TMPDIR", "OPENAI_API_KEY", "TRITON_INTERPRET"})
    ::unsetenv(name);
}

TEST_F(WarmServerTest, OneThatStillHasWorkersIsNotLeft) {
  const auto others = own_servers();
  const ForkServerSpec spec{.program = NEREID_REPLAY_PROGRAM, .keep_warm = true};
  auto server = ForkServer::start(spec).value();
  auto worker = server->fork("reference", 1).value();
  ForkServer::leave(server);
  server.reset();
  EXPECT_EQ(own_servers(), others);
  server = ForkServer::start(spec).value();
  worker = server->fork("reference", 1).value();
  worker.reset();
  const auto first = own_servers();
  ForkServer::leave(server);
  server.reset();
  EXPECT_EQ(own_servers(), first);
}

TEST_F(WarmServerTest, StartsWithTheFirstSessionWhereItMayNotBeNeeded) {
  ::unsetenv("NEREID_KEEP_WARM");
  const auto others = own_servers();
  const auto server = Server::start({.program = NEREID_REPLAY_PROGRAM, .at_once = false}).value();
  EXPECT_EQ(own_servers(), others);
  EXPECT_TRUE(works(*server));
  EXPECT_EQ(own_servers().size(), others.size() + 1);
}

// The workers here are a CPU's, which a session on a GPU notices only when it is timed.
TEST(GpuSessionsTest, TakeTurns) {
  const std::string program = testing::TempDir() + "/replay_for_a_gpu";
  std::ofstream(program) << "#!/bin/sh\nexec " NEREID_REPLAY_PROGRAM " --serve\n";
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  auto server =
      Server::start({.program = NEREID_REPLAY_PROGRAM, .cuda_program = program, .cuda_sessions = 2});
  ASSERT_TRUE(server.ok()) << server.error().message;
  const Trace reference = reference_add();
  const Trace candidate = candidate_call([](Sketch& s, const Tensors& t) {
    const auto out = s.tensor({kN});
    s.step(make_call("aten::add.Tensor", {tensor_arg(t.y), tensor_arg(t.x)}, tensor_arg(out)));
    return tensor_arg(out);
  });
  std::atomic<int> agreed = 0, open = 0, max_open = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t)
    threads.emplace_back([&] {
      auto session =
          (*server)->begin(reference, candidate, {.device = Device::kCuda, .memory_limit = int64_t{1} << 30},
                           Deadline::after(60));
      ASSERT_TRUE(session.ok()) << session.error().message;
      const int now = ++open;
      for (int most = max_open; most < now && !max_open.compare_exchange_weak(most, now);) {
      }
      const auto report = (*session)->trial({.seed = 1}, {}, Deadline::after(60));
      agreed += report.ok() && report->ok();
      --open;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(agreed, 5);
  EXPECT_LE(max_open, 2);
}

}  // namespace
}  // namespace nereid::replay
