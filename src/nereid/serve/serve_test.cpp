#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>

#include "nereid/base/file.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/serve/fair_queue.h"
#include "nereid/serve/judge_process.h"
#include "nereid/serve/question.h"
#include "nereid/serve/reward.h"
#include "nereid/serve/task_store.h"
#include "nereid/serve/tokens.h"
#include "tests/support/postgres_server.h"

namespace nereid::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FairQueue, GivesEachPrincipalAndEachOfItsClientsTurns) {
  FairQueue queue;
  for (int i = 0; i < 3; ++i) queue.push({"ada", "x"}, fmt::format("ax{}", i));
  queue.push({"ada", "y"}, "ay0");
  queue.push({"bob", ""}, "b0");
  queue.push({"bob", ""}, "b1");
  std::vector<std::string> order;
  while (const auto id = queue.pop()) order.push_back(*id);
  EXPECT_THAT(order, ElementsAre("ax0", "b0", "ay0", "b1", "ax1", "ax2"));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(FairQueue, LosesNothingWhateverTheOrder) {
  std::mt19937 random(1);
  FairQueue queue;
  std::set<std::string> inside;
  std::map<std::string, std::map<std::string, int>> last;  // of each client, the number that came out last
  int next = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    if (random() % 2 == 0) {
      const Client client{fmt::format("p{}", random() % 5), fmt::format("c{}", random() % 3)};
      const std::string id = fmt::format("{} {} {}", client.principal, client.name, next++);
      inside.insert(id);
      queue.push(client, id);
    } else if (const auto id = queue.pop()) {
      ASSERT_EQ(inside.erase(*id), 1U);
      const size_t first = id->find(' '), second = id->find(' ', first + 1);
      int& before = last[id->substr(0, first)][id->substr(first, second - first)];
      const int number = std::stoi(id->substr(second));
      ASSERT_GE(number, before);
      before = number;
    }
    ASSERT_EQ(queue.size(), inside.size());
  }
  size_t sum = 0;
  for (const auto& [principal, size] : queue.sizes()) sum += size;
  EXPECT_EQ(sum, inside.size());
}

Json verdict(const std::string& kind, double speedup = 0) {
  Json json = {{"verdict", kind},
               {"reason", "why"},
               {"spans", {{"code", {7, 9}}, {"plan", {0, 7}}}},
               {"times", nullptr}};
  if (speedup > 0) json["times"] = {{"speedup", speedup}};
  return json;
}

Json components(const Json& verdict, Objective objective, double limit = 2) {
  return reward_answer(verdict, {objective, limit}, nullptr)["reward_components"];
}

TEST(Reward, IsTheObjectives) {
  const Json fast = verdict("Verified", 1.5), faster = verdict("Verified", 9),
             slow = verdict("Verified", 0.5), untimed = verdict("Verified"), wrong = verdict("Mismatch"),
             cheat = verdict("Disallowed");
  EXPECT_EQ(components(fast, Objective::kBinary), Json({{"plan", 1.0}, {"code", 1.0}}));
  EXPECT_EQ(components(fast, Objective::kHierarchical), Json({{"plan", 1.5}, {"code", 1.0}}));
  EXPECT_EQ(components(faster, Objective::kHierarchical), Json({{"plan", 2.0}, {"code", 1.0}}));
  EXPECT_EQ(components(faster, Objective::kHierarchical, 5), Json({{"plan", 5.0}, {"code", 1.0}}));
  EXPECT_EQ(components(fast, Objective::kUniform), Json({{"plan", 1.5}, {"code", 1.5}}));
  EXPECT_EQ(components(untimed, Objective::kHierarchical), Json({{"plan", 1.0}, {"code", 1.0}}));
  EXPECT_EQ(components(slow, Objective::kDecoupled), Json({{"plan", std::log(0.5)}, {"code", 1.0}}));
  EXPECT_EQ(components(faster, Objective::kDecoupled), Json({{"plan", std::log(2.0)}, {"code", 1.0}}));
  EXPECT_EQ(reward_answer(slow, {Objective::kDecoupled, 2}, nullptr)["reward"], 1 + std::log(0.5));
  for (const Json& bad : {wrong, cheat})
    for (const auto objective :
         {Objective::kBinary, Objective::kHierarchical, Objective::kUniform, Objective::kDecoupled})
      EXPECT_EQ(components(bad, objective), Json({{"plan", 0.0}, {"code", 0.0}}));
  EXPECT_EQ(reward_answer(wrong, {}, nullptr)["scores"],
            Json({{"valid", 1.0}, {"correct", 0.0}, {"speedup", 1.0}}));
  EXPECT_EQ(reward_answer(cheat, {}, nullptr)["scores"],
            Json({{"valid", 0.0}, {"correct", 0.0}, {"speedup", 1.0}}));
  EXPECT_EQ(reward_answer(fast, {}, nullptr)["spans"],
            Json::array({{{"start", 0}, {"end", 7}, {"name", "plan"}, {"reward", 1.5}},
                         {{"start", 7}, {"end", 9}, {"name", "code"}, {"reward", 1.0}}}));
  Json ignored = cheat;
  ignored["verdict_without_rules"] = {{"verdict", "Verified"}, {"times", nullptr}};
  const Json answer = reward_answer(ignored, {}, nullptr);
  EXPECT_EQ(answer["reward"], 1.0);
  EXPECT_EQ(answer["status"], "refused");
}

TEST(Reward, IsNoneOfAnError) {
  for (const auto& [blame, status] : {std::pair{"ours", 503}, {"input", 422}}) {
    Json error = verdict("Error");
    error["blame"] = blame;
    const Json answer = reward_answer(error, {}, nullptr);
    EXPECT_TRUE(answer["reward"].is_null());
    EXPECT_EQ(answer["status"], "error");
    EXPECT_EQ(answer["blame"], blame);
    EXPECT_EQ(status_of(answer), status);
    EXPECT_FALSE(judged_in(error).has_value());
  }
  EXPECT_TRUE(reward_answer(Json::object(), {}, nullptr)["reward"].is_null());
}

TEST(Reward, ComparesAnswersOfAGroup) {
  const auto settings =
      read_objective({{"objective", "hrd"}, {"baseline", "mean"}, {"speedup_limit", 4}}, "a");
  ASSERT_TRUE(settings.ok());
  const auto of = [](const char* kind, double speedup) { return judged_in(verdict(kind, speedup)); };
  const Json found = group_advantages({of("Verified", 3), of("Mismatch", 0), std::nullopt, of("Verified", 1)},
                                      {"a", "a", "a", "b"}, *settings);
  EXPECT_EQ(found, Json::array({{{"plan", 1.5}, {"code", 0.5}},
                                {{"plan", -1.5}, {"code", -0.5}},
                                nullptr,
                                {{"plan", 0.0}, {"code", 0.0}}}));
  for (const Json& bad :
       {Json("hrd"), Json{{"objective", "drpo"}}, Json{{"speedup_limit", 0.5}}, Json{{"other", 1}}})
    EXPECT_FALSE(read_objective(bad, "a").ok());
}

TEST(Question, FindsTheTaskThatAPromptShows) {
  const std::string task = "class Model: pass\ndef get_inputs(): pass\n";
  EXPECT_EQ(reference_in("a\n```python\n" + task + "```\nb"), task);
  EXPECT_EQ(reference_in("```python\nclass Model\n```\n```\n" + task + "```"), task);
  EXPECT_EQ(reference_in("```py\n" + task + "```\n```py\n" + task + "# 2\n```\n```\nx\n```"), task + "# 2\n");
  for (const char* none : {"", "```", "``````", "class Model get_inputs", "```class Model get_inputs```"})
    EXPECT_FALSE(reference_in(none).has_value()) << none;
}

TEST(Question, HasTheIdOfAllThatTheVerdictDependsOn) {
  const QuestionDefaults defaults{.identity = "judge 1"};
  const Json base = {{"completion", "x"}, {"reference", "a\nb"}};
  const auto id = [&](Json changed, const QuestionDefaults& with) {
    Json item = base;
    item.update(changed);
    const auto question = read_question(item, "body", with);
    EXPECT_TRUE(question.ok()) << question.error().message;
    return question->id;
  };
  const std::string first = id(Json::object(), defaults);
  EXPECT_EQ(id({{"reward", "binary"}, {"group", "g"}}, defaults), first);
  EXPECT_EQ(id({{"completion", Json::array({{{"role", "assistant"}, {"content", "x"}}})}}, defaults), first);
  std::set<std::string> ids = {first, id(Json::object(), {.identity = "judge 2"})};
  for (const Json& change : std::vector<Json>{{{"completion", "y"}},
                                              {{"reference", "a\nc"}},
                                              {{"form", "answer"}},
                                              {{"options", {{"seed", 1}}}},
                                              {{"options", {{"seed", 2}}}}})
    ids.insert(id(change, defaults));
  EXPECT_EQ(ids.size(), 7U);
}

TEST(Question, BringsTheFilesThatItsTaskImports) {
  const auto folder = TemporaryFolder::create();
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder->path() / path).parent_path());
    std::ofstream(folder->path() / path) << text;
  };
  write("out/key.py", "KEY = 1\n");
  write("out/__init__.py", "");
  write("out/tasks/__init__.py", "");
  write("out/tasks/gate.py", "import layers\n");
  write("out/tasks/layers.py", "X = 1\n");
  write("out/tasks/up.py", "from .. import key\nimport out.key\n");
  write("out/tasks/nets/__init__.py", "");
  write("out/tasks/nets/model.py", "from .sizes import N\n");
  write("out/tasks/nets/sizes.py", "N = 2\n");
  const QuestionDefaults defaults{.tasks = folder->path() / "out/tasks"};
  const auto reference = [&](Json item) {
    item["completion"] = "x";
    const auto question = read_question(item, "body", defaults);
    return question.ok() ? question->reference : "error: " + question.error().message;
  };
  EXPECT_EQ(reference({{"reference", "gate"}}), "import layers\n# nereid-include layers.py\n#| X = 1\n");
  EXPECT_EQ(reference({{"reference", "nets/model"}}),
            "from nets.sizes import N\n# nereid-include nets/__init__.py\n# nereid-include nets/sizes.py\n"
            "#| N = 2\n");
  EXPECT_EQ(reference({{"reference", "up"}}), "from .. import key\nimport out.key\n");
  const Json files = {{"p/__init__.py", ""}, {"p/a.py", "from .b import B\n"}, {"p/b.py", "B = 3\n"}};
  const std::string b = "# nereid-include p/__init__.py\n# nereid-include p/b.py\n#| B = 3\n";
  EXPECT_EQ(reference({{"reference", "p/a.py"}, {"files", files}}), "from p.b import B\n" + b);
  EXPECT_EQ(reference({{"reference", "from p import b\n"}, {"files", files}}), "from p import b\n" + b);
  for (const Json& bad : std::vector<Json>{{{"../x.py", ""}}, {{"/etc/x.py", ""}}, {{"x.py", 1}}, "x.py"})
    EXPECT_THAT(reference({{"reference", "import x\n"}, {"files", bad}}), HasSubstr("error: ")) << bad;
}

TEST(Tokens, AreKnownWhole) {
  const auto folder = TemporaryFolder::create();
  const auto path = folder->path() / "tokens";
  std::ofstream(path) << "\n# comment\n ada  0123456789abcdef \nbob fedcba9876543210\n";
  const auto tokens = Tokens::read(path);
  ASSERT_TRUE(tokens.ok()) << tokens.error().message;
  EXPECT_EQ(tokens->name("Bearer 0123456789abcdef"), "ada");
  EXPECT_EQ(tokens->name("Basic eDpmZWRjYmE5ODc2NTQzMjEw"), "bob");
  for (const char* none : {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
                           "0123456789abcdef", "Basic eA==", "Basic ?"})
    EXPECT_FALSE(tokens->name(none).has_value()) << none;
}

// With a file, and with a database.
struct TaskStoreTest : testing::TestWithParam<const char*> {
  TemporaryFolder folder = std::move(TemporaryFolder::create()).value();
  const bool file = std::string_view(GetParam()) == "sqlite";
  std::string address = file ? (folder.path() / "serve.db").string() : PostgresServer::shared().uri();
};
INSTANTIATE_TEST_SUITE_P(Backends, TaskStoreTest, testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TaskStoreTest, KeepsWhatWasAcceptedAndAnswered) {
  const std::string bytes = "\xed\xa0\x80 is no UTF-8";
  using State = StoredTask::State;
  {
    auto store = TaskStore::open(address);
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_THAT(TaskStore::open(address).error().message, HasSubstr("used by another server"));
    const StoredTask one{.id = "1", .client = {"ada", ""}, .line = bytes, .receipt = "{}", .accepted = 5};
    StoredTask two = one;
    two.id = "2", two.accepted = 4;
    ASSERT_TRUE((*store)->accept({one, two, one}).ok());
    ASSERT_TRUE((*store)->settle("1", State::kFault, "died", 6).ok());
    ASSERT_TRUE((*store)->accept({one}).ok());  // a fault waits again
    ASSERT_TRUE((*store)->settle("1", State::kAnswered, "{}", 7).ok());
    ASSERT_TRUE((*store)->accept({one}).ok());  // an answer stays
  }
  auto store = TaskStore::open(address);
  ASSERT_TRUE(store.ok()) << store.error().message;
  const auto waiting = (*store)->waiting();
  ASSERT_EQ(waiting->size(), 1U);
  EXPECT_EQ(waiting->front().id, "2");
  EXPECT_EQ(*(*store)->line("2"), bytes);
  EXPECT_EQ((**(*store)->find("1")).state, State::kAnswered);
  EXPECT_FALSE((*store)->find("3")->has_value());
  EXPECT_EQ(*(*store)->prune(8), 1);
  EXPECT_FALSE((*store)->find("1")->has_value());
  EXPECT_EQ((*store)->waiting()->size(), 1U);
}

TEST_P(TaskStoreTest, KeepsAnOrderAndRefusesANewerSchema) {
  {
    auto store = TaskStore::open(address);
    ASSERT_TRUE(store.ok()) << store.error().message;
    std::vector<StoredTask> tasks;
    for (const char* id : {"5", "3", "4"})
      tasks.push_back({.id = id, .client = {}, .line = "l", .receipt = "{}", .accepted = 9});
    tasks.back().accepted = 8;
    ASSERT_TRUE((*store)->accept(tasks).ok());
    std::string order;
    const auto waiting = (*store)->waiting();
    ASSERT_TRUE(waiting.ok());
    for (const auto& task : *waiting) order += task.id;
    EXPECT_EQ(order.substr(order.size() - 3), "453");
    for (const auto& task : tasks)
      ASSERT_TRUE((*store)->settle(task.id, StoredTask::State::kAnswered, "{}", 10 + task.accepted).ok());
    EXPECT_EQ((*store)->latest(2)->size(), 2U);
    EXPECT_EQ((*store)->latest(1)->front().id, "3");
    if (file) return;
    // The lock comes back with a lost connection.
    PostgresServer::shared()("terminate");
    ASSERT_TRUE((*store)->settle("5", StoredTask::State::kAnswered, "{}", 30).ok());
    EXPECT_FALSE(TaskStore::open(address).ok());
  }
  auto database = store::Database::open(
      *store::Address::parse(address),
      {.part = "other", .application = 0, .stranger = "", .sqlite = {}, .postgres = {}});
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->run("UPDATE schema_versions SET version = 9 WHERE part = 'tasks'").ok());
  EXPECT_THAT(TaskStore::open(address).error().message, HasSubstr("has schema 9"));
  ASSERT_TRUE((*database)->run("UPDATE schema_versions SET version = 1 WHERE part = 'tasks'").ok());
}

// A judge that answers each line with it, and ends at lines that say so.
constexpr const char* kScript = R"(
import sys, time
for line in sys.stdin:
    if "die" in line:
        print("last words", file=sys.stderr, flush=True)
        sys.exit(7)
    if "hang" in line:
        time.sleep(1000)
    print("got " + line.strip(), flush=True)
)";

struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> all;
  void say(const std::string& text) {
    const std::lock_guard lock(mutex);
    all.push_back(text);
    changed.notify_all();
  }
  std::vector<std::string> wait(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(30), [&] { return all.size() >= count; });
    return all;
  }
};

TEST(JudgeProcess, IsStartedAgainWhenItDiesOrSaysNothing) {
  Heard heard;
  const JudgeProcess::Events events = {
      .on_line = [&](uint64_t generation,
                     const std::string& line) { heard.say(fmt::format("{} {}", generation, line)); },
      .on_death = [&](uint64_t generation,
                      const std::string& why) { heard.say(fmt::format("{} died: {}", generation, why)); },
      .on_start = [&](uint64_t generation) { heard.say(fmt::format("{} began", generation)); }};
  const auto judge = JudgeProcess::start({.words = {"/usr/bin/python3", "-c", kScript},
                                          .environment = sandbox::own_environment(),
                                          .patience = 2},
                                         events);
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  (*judge)->ask(1, "a");
  heard.wait(1);
  (*judge)->ask(1, "die");
  (*judge)->ask(1, "never");
  heard.wait(3);
  (*judge)->ask(1, "of a generation that is over");
  (*judge)->ask(2, "b");
  heard.wait(4);
  (*judge)->ask(2, "hang");
  heard.wait(6);
  (*judge)->ask(3, "c");
  EXPECT_THAT(heard.wait(7), ElementsAre("1 got a", "1 died: last words\n", "2 began", "2 got b",
                                         "2 died: it said nothing for 2 s", "3 began", "3 got c"));
}

TEST(JudgeProcess, EndsWithItsOwner) {
  Heard heard;
  const JudgeProcess::Events events = {.on_line = [&](uint64_t, const std::string& line) { heard.say(line); },
                                       .on_death = [&](uint64_t, const std::string&) { heard.say("died"); },
                                       .on_start = [&](uint64_t) { heard.say("began"); }};
  int pid = 0;
  {
    const auto judge = JudgeProcess::start(
        {.words = {"/usr/bin/python3", "-c", kScript}, .environment = sandbox::own_environment()}, events);
    ASSERT_TRUE(judge.ok());
    (*judge)->ask(1, "hang");
    pid = (*judge)->pid();
  }
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", pid)));
  EXPECT_TRUE(heard.all.empty());
}

}  // namespace
}  // namespace nereid::serve
