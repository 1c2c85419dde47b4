#include "nereid/store/store.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <random>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"

namespace nereid::store {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

struct StoreTest : testing::Test {
  TemporaryFolder folder = std::move(TemporaryFolder::create("store")).value();
  std::filesystem::path path = folder.path() / "deep" / "store.db";

  std::unique_ptr<Store> open() {
    auto store = Store::open(path);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(store).value();
  }
  static Key key(std::string subject) {
    return {Kind::kVerdict, sha256_hex("task"), std::move(subject), "strict", "cpu", "0.1"};
  }
};

TEST_F(StoreTest, WhatWasPutIsFound) {
  auto store = open();
  Record record{
      .key = key("a"), .state = "Verified", .milliseconds = 0.25, .document = R"({"x": 1})", .made = 77};
  ASSERT_TRUE(store->put(record).ok());
  const auto found = open()->find(record.key);  // by another connection
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->state, "Verified");
  EXPECT_EQ((*found)->milliseconds, 0.25);
  EXPECT_EQ((*found)->document, record.document);
  EXPECT_EQ((*found)->made, 77);
  EXPECT_EQ((*found)->key.hash(), record.key.hash());
  record.state = "Mismatch", record.milliseconds.reset();
  ASSERT_TRUE(store->put(record).ok());
  EXPECT_EQ((*store->find(record.key))->state, "Mismatch");
  EXPECT_FALSE((*store->find(record.key))->milliseconds);
  EXPECT_EQ(*store->count({}), 1);
}

TEST_F(StoreTest, EveryPartOfAKeyDistinguishesRecords) {
  const Key plain = key("a");
  std::set<std::string> hashes = {plain.hash()};
  for (auto part : {&Key::task, &Key::subject, &Key::question, &Key::hardware, &Key::versions}) {
    Key other = plain;
    other.*part += "x";
    EXPECT_TRUE(hashes.insert(other.hash()).second);
  }
  Key other = plain;
  other.kind = Kind::kTime;
  EXPECT_TRUE(hashes.insert(other.hash()).second);
  // What ends one part is not what begins the next.
  Key left = plain, right = plain;
  left.subject = "ab", left.question = "c";
  right.subject = "a", right.question = "bc";
  EXPECT_NE(left.hash(), right.hash());
}

TEST_F(StoreTest, FiltersAndPruning) {
  auto store = open();
  const std::string kept = *store->keep_text("kept"), lost = *store->keep_text("lost");
  ASSERT_TRUE(store->put({.key = key(kept), .state = "Verified", .made = 2000}).ok());
  ASSERT_TRUE(store->put({.key = key(lost), .state = "Mismatch", .made = 1000}).ok());
  Key proposal = key("compiler");
  proposal.kind = Kind::kProposal, proposal.versions = "0.2";
  ASSERT_TRUE(store->put({.key = proposal, .state = kept, .made = 3000}).ok());
  EXPECT_THAT(*store->list({.kind = Kind::kVerdict}), SizeIs(2));
  EXPECT_THAT(*store->list({.state = "Mismatch"}), SizeIs(1));
  EXPECT_THAT(*store->list({.task = sha256_hex("task").substr(0, 8)}), SizeIs(3));
  EXPECT_THAT(*store->list({.key = key(lost).hash().substr(0, 12)}), SizeIs(1));
  EXPECT_THAT(*store->list({.other_versions_than = "0.1"}), SizeIs(1));
  EXPECT_EQ(store->list({.most = 1})->front().made, 3000);
  EXPECT_EQ(*store->count({.made_before = 2000}), 1);
  EXPECT_EQ(*store->prune({.made_before = 2000}), 1);
  EXPECT_EQ(*store->count({}), 2);
  EXPECT_EQ(*store->text(kept), "kept");
  // A text that was just put may be waiting for its record.
  EXPECT_EQ(*store->text(lost), "lost");
}

TEST_F(StoreTest, PruningTakesOldUnreferencedTexts) {
  auto store = open();
  const std::string kept = *store->keep_text("kept"), lost = *store->keep_text("lost");
  ASSERT_TRUE(store->put({.key = key(kept), .state = "Verified"}).ok());
  ASSERT_TRUE(Connection::open(path)->run("UPDATE texts SET made = 1").ok());
  EXPECT_EQ(*store->prune({.state = "nothing has this word"}), 0);
  EXPECT_EQ(*store->text(kept), "kept");
  EXPECT_FALSE(store->text(lost)->has_value());
}

TEST_F(StoreTest, TextsOfAnyBytes) {
  auto store = open();
  const std::string text("a\0b\xff\n'; DROP TABLE records; --", 30);
  const auto hash = store->keep_text(text);
  ASSERT_TRUE(hash.ok());
  EXPECT_EQ(*store->text(*hash), text);
  EXPECT_EQ(*store->keep_text(text), *hash);
  EXPECT_FALSE(store->text(sha256_hex("other"))->has_value());
}

TEST_F(StoreTest, WhatIsNoStoreIsRefused) {
  const auto text = folder.path() / "text.db";
  ASSERT_TRUE(
      write_file_atomically(text, "this is no database, and it is long enough to have a header").ok());
  EXPECT_THAT(Store::open(text).error().message, HasSubstr("not a database"));
  EXPECT_EQ(Store::open(text).error().blame, Blame::kInput);
  const auto other = folder.path() / "other.db";
  ASSERT_TRUE(Connection::open(other)->run("CREATE TABLE t (x)").ok());
  EXPECT_THAT(Store::open(other).error().message, HasSubstr("no store of Nereid's"));
  EXPECT_FALSE(Store::open(text / "below").ok());
  EXPECT_EQ(Store::open(folder.path()).error().blame, Blame::kInput);
}

TEST_F(StoreTest, ANewerSchemaIsRefused) {
  open();
  ASSERT_TRUE(Connection::open(path)->run("PRAGMA user_version=99").ok());
  EXPECT_THAT(Store::open(path).error().message, HasSubstr("schema 99"));
}

TEST_F(StoreTest, ManyThreadsThroughOneStore) {
  auto store = open();
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(store->put({.key = key(fmt::format("{}.{}", t, i)), .state = "Verified"}).ok());
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*store->count({}), 200);
}

// A writer: records whose document holds its own hash, so that a half-written one would show. It acknowledges
// each through the pipe once it is committed.
[[noreturn]] void write_for_ever(const std::filesystem::path& path, int writer, int acknowledge) {
  auto store = Store::open(path);
  if (!store.ok()) ::_exit(2);
  for (int i = 0;; ++i) {
    const std::string body(static_cast<size_t>(1 + (i * 7919) % 20000), static_cast<char>('a' + i % 26));
    const std::string document = Json{{"body", body}, {"hash", sha256_hex(body)}}.dump();
    const std::string subject = fmt::format("{}.{}", writer, i);
    if (!(*store)
             ->put({.key = {Kind::kVerdict, "task", subject, "", "cpu", "0.1"},
                    .state = "Verified",
                    .document = document})
             .ok())
      ::_exit(3);
    const std::string line = subject + "\n";
    if (::write(acknowledge, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(4);
  }
}

TEST_F(StoreTest, ManyProcessesAreKilledAndNothingIsHalfWritten) {
  std::mt19937 random(7);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::vector<pid_t> writers;
  int next = 0;
  const auto start = [&] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pipe[0]);
      write_for_ever(path, next, pipe[1]);  // the file itself is made in this race too
    }
    writers.push_back(pid);
    ++next;
  };
  std::string acknowledged;
  std::thread reader([&] {
    char chunk[4096];
    for (ssize_t got; (got = ::read(pipe[0], chunk, sizeof chunk)) > 0;)
      acknowledged.append(chunk, static_cast<size_t>(got));
  });
  for (int i = 0; i < 6; ++i) start();
  for (int kills = 0; kills < 30; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + random() % 60));
    const size_t victim = random() % writers.size();
    ::kill(writers[victim], SIGKILL);
    int status = 0;
    ::waitpid(writers[victim], &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a writer gave up with " << WEXITSTATUS(status);
    writers.erase(writers.begin() + static_cast<std::ptrdiff_t>(victim));
    start();
  }
  for (const pid_t pid : writers) ::kill(pid, SIGKILL);
  for (const pid_t pid : writers) ::waitpid(pid, nullptr, 0);
  ::close(pipe[1]);
  reader.join();
  ::close(pipe[0]);

  auto store = open();
  EXPECT_EQ(*store->check(), "");
  const auto records = store->list({.most = 1 << 30});
  ASSERT_TRUE(records.ok());
  std::set<std::string> subjects;
  for (const auto& record : *records) {
    const Json document = Json::parse(record.document);
    ASSERT_EQ(document["hash"], sha256_hex(document["body"].get<std::string>()));
    subjects.insert(record.key.subject);
  }
  // What was acknowledged to a writer is there.
  size_t lines = 0;
  std::istringstream subjects_written(acknowledged);
  for (std::string subject; std::getline(subjects_written, subject); ++lines)
    EXPECT_TRUE(subjects.contains(subject)) << subject;
  EXPECT_GT(lines, 30U);
}

}  // namespace
}  // namespace nereid::store
