#include "nereid/store/store.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <pqxx/pqxx>
#include <random>
#include <thread>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "tests/support/postgres_server.h"

namespace nereid::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

void sqlite_script(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(::sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << ::sqlite3_errmsg(handle);
  ::sqlite3_close(handle);
}

void postgres_script(const std::string& sql) {
  pqxx::connection connection(PostgresServer::shared().uri());
  pqxx::nontransaction(connection).exec(sql);
}

Key key_of(std::string subject) {
  return {Kind::kVerdict, sha256_hex("task"), std::move(subject), "strict", "cpu", "0.1"};
}

std::unique_ptr<Store> open_store(const std::string& address) {
  auto store = Store::open(address);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return std::move(store).value();
}

// Every test with a file and with a database.
struct StoreTest : testing::TestWithParam<const char*> {
  TemporaryFolder folder = std::move(TemporaryFolder::create("store")).value();
  const bool file = std::string_view(GetParam()) == "sqlite";
  std::string address =
      file ? (folder.path() / "deep" / "store.db").string() : PostgresServer::shared().uri();

  void SetUp() override {
    if (!file) postgres_script("DROP SCHEMA IF EXISTS nereid CASCADE");
  }
  std::unique_ptr<Store> open() const { return open_store(address); }
  void script(const std::string& sql) const {
    file ? sqlite_script(address, sql) : postgres_script("SET search_path = nereid; " + sql);
  }
  static Key key(std::string subject) { return key_of(std::move(subject)); }
};
INSTANTIATE_TEST_SUITE_P(Backends, StoreTest, testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(StoreTest, WhatWasPutIsFound) {
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

TEST_P(StoreTest, EveryPartOfAKeyDistinguishesRecords) {
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

TEST_P(StoreTest, FiltersAndPruning) {
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

TEST_P(StoreTest, PruningTakesOldUnreferencedTexts) {
  auto store = open();
  const std::string kept = *store->keep_text("kept"), lost = *store->keep_text("lost");
  ASSERT_TRUE(store->put({.key = key(kept), .state = "Verified"}).ok());
  script("UPDATE texts SET made = 1");
  EXPECT_EQ(*store->prune({.state = "nothing has this word"}), 0);
  EXPECT_EQ(*store->text(kept), "kept");
  EXPECT_FALSE(store->text(lost)->has_value());
}

TEST_P(StoreTest, TextsOfAnyBytes) {
  auto store = open();
  const std::string text("a\0b\xff\n'; DROP TABLE records; --", 30);
  const auto hash = store->keep_text(text);
  ASSERT_TRUE(hash.ok());
  EXPECT_EQ(*store->text(*hash), text);
  EXPECT_EQ(*store->keep_text(text), *hash);
  EXPECT_FALSE(store->text(sha256_hex("other"))->has_value());
}

TEST_P(StoreTest, AnyBytesInEveryField) {
  auto store = open();
  const std::string bytes("\0\xff\\x41'\n\xc3", 8);
  Record record{.key = {Kind::kTime, sha256_hex("t"), "s" + bytes, "q" + bytes, "h" + bytes, "v" + bytes},
                .state = "w" + bytes,
                .milliseconds = 1.0 / 3,
                .document = bytes + bytes,
                .made = int64_t{1} << 40};
  ASSERT_TRUE(store->put(record).ok());
  const auto found = store->find(record.key);
  ASSERT_TRUE(found.ok() && *found) << found.error().message;
  EXPECT_EQ((*found)->key.hash(), record.key.hash());
  EXPECT_EQ((*found)->state, record.state);
  EXPECT_EQ((*found)->milliseconds, record.milliseconds);
  EXPECT_EQ((*found)->document, record.document);
  EXPECT_EQ((*found)->made, record.made);
  EXPECT_THAT(*store->list({.state = record.state, .subject = record.key.subject}), SizeIs(1));
  EXPECT_EQ(*store->check(), "");
  // A filter is text, not a pattern.
  for (const char* pattern : {"*", "%", "[0-9a-f]", "' OR ''='"})
    EXPECT_THAT(*store->list({.key = pattern}), SizeIs(0)) << pattern;
}

TEST_P(StoreTest, WhatIsNoStoreIsRefused) {
  if (!file) {
    postgres_script("CREATE SCHEMA nereid; CREATE TABLE nereid.theirs (x INT)");
    EXPECT_THAT(Store::open(address).error().message, HasSubstr("no store of Nereid's"));
    EXPECT_EQ(Store::open(address).error().blame, Blame::kInput);
    return;
  }
  const auto text = folder.path() / "text.db";
  ASSERT_TRUE(
      write_file_atomically(text, "this is no database, and it is long enough to have a header").ok());
  EXPECT_THAT(Store::open(text).error().message, HasSubstr("not a database"));
  EXPECT_EQ(Store::open(text).error().blame, Blame::kInput);
  const auto other = folder.path() / "other.db";
  sqlite_script(other, "CREATE TABLE t (x)");
  EXPECT_THAT(Store::open(other).error().message, HasSubstr("no store of Nereid's"));
  EXPECT_FALSE(Store::open(text / "below").ok());
  EXPECT_EQ(Store::open(folder.path()).error().blame, Blame::kInput);
}

TEST_P(StoreTest, ANewerSchemaIsRefused) {
  open();
  script(file ? "PRAGMA user_version=99" : "UPDATE schema_versions SET version = 99");
  const auto store = Store::open(address);
  EXPECT_THAT(store.error().message, HasSubstr("has schema 99, this program knows 1"));
  EXPECT_EQ(store.error().blame, Blame::kInput);
}

TEST_P(StoreTest, CheckFindsDamage) {
  auto store = open();
  for (const char* subject : {"a", "b"})
    ASSERT_TRUE(store->put({.key = key(subject), .document = "{}"}).ok());
  ASSERT_TRUE(store->keep_text("a text").ok());
  EXPECT_EQ(*store->check(), "");
  EXPECT_GT(*store->bytes(), 0);
  if (file) return;  // SQLite's own check has SQLite's tests
  script(fmt::format("UPDATE records SET hardware = 'gpu' WHERE key = '{}'", key("a").hash()));
  EXPECT_THAT(*store->check(), AllOf(HasSubstr(key("a").hash()), Not(HasSubstr(key("b").hash()))));
  script("DELETE FROM records; UPDATE texts SET text = 'another text'");
  EXPECT_THAT(*store->check(), HasSubstr(sha256_hex("a text")));
}

TEST_P(StoreTest, ManyThreadsThroughOneStore) {
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
[[noreturn]] void write_for_ever(const std::string& address, int writer, int acknowledge) {
  auto store = Store::open(address);
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

// Of writers; the server is killed after every tenth.
int kills_of_tests(bool file) {
  const char* given = std::getenv("NEREID_TEST_STORE_KILLS");
  if (given != nullptr) return std::atoi(given);
  return file ? 30 : 12;
}

TEST_P(StoreTest, ManyProcessesAreKilledAndNothingIsHalfWritten) {
  std::mt19937 random(7);
  PostgresServer* server = file ? nullptr : &PostgresServer::shared();
  const int most = kills_of_tests(file);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::vector<pid_t> writers;
  int next = 0;
  const auto start = [&] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pipe[0]);
      write_for_ever(address, next, pipe[1]);  // the file or the tables are made in this race too
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
  for (int kills = 0; kills < most; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + random() % 60));
    const size_t victim = random() % writers.size();
    ::kill(writers[victim], SIGKILL);
    int status = 0;
    ::waitpid(writers[victim], &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a writer gave up with " << WEXITSTATUS(status);
    writers.erase(writers.begin() + static_cast<std::ptrdiff_t>(victim));
    start();
    if (file || kills % 10 != 9) continue;
    (*server)("kill");
    (*server)("start");
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

TEST(Address, NamesAreWithoutSecrets) {
  const auto name = [](const std::string& text) {
    const auto address = Address::parse(text);
    return address.ok() ? address->name() : "error: " + address.error().message;
  };
  EXPECT_EQ(name("/a/b.db"), "/a/b.db");
  EXPECT_EQ(name("postgres.db"), "postgres.db");
  EXPECT_EQ(name("postgresql://ada:s%23cret@db.example:5433/kernels"),
            "postgresql://ada@db.example:5433/kernels");
  EXPECT_EQ(name("postgres://db/kernels?user=ada&password=s3cret&sslpassword=t0o&connect_timeout=9"),
            "postgresql://ada@db/kernels");
  EXPECT_EQ(name("postgresql://a:s3cret@h1:1,h2:2/x"), "postgresql://a@h1:1,h2:2/x");
  EXPECT_EQ(name("postgresql://a:s3cret@/x?host=/var/run/pg"), "postgresql://a@/x?host=/var/run/pg");
  // What cannot be read is not quoted.
  for (const char* wrong :
       {"postgresql://a:s3%ZZcret@db/x", "postgresql://a:s3cret@[db/x", "postgresql://a:s3cret@db:5x/y?q",
        "postgresql://a:s3cret@db/x?password", "postgresql://db/x?s3cret=1", "mysql://a:s3cret@db/x"}) {
    const auto address = Address::parse(wrong);
    const std::string message = name(wrong);
    EXPECT_THAT(message, AllOf(Not(HasSubstr("s3")), Not(HasSubstr("cret")))) << wrong;
    EXPECT_TRUE(address.ok() || message.find("expected") != std::string::npos) << message;
  }
  EXPECT_EQ(Address::parse("postgresql://ada:s3cret@db/x")->without_secrets("s3cret, as3cret"), "***, a***");
  EXPECT_THAT(Address::parse("postgresql://ada:it's\\@db/x")->connection(),
              HasSubstr(R"(password='it\'s\\')"));
}

struct PostgresTest : testing::Test {
  PostgresServer& server = PostgresServer::shared();
  void SetUp() override { postgres_script("DROP SCHEMA IF EXISTS nereid CASCADE"); }
  static Record record(const char* subject) { return {.key = key_of(subject), .state = "Verified"}; }
};

TEST_F(PostgresTest, ALostConnectionIsMadeAgain) {
  auto store = open_store(server.uri());
  ASSERT_TRUE(store->put(record("a")).ok());
  server("terminate");
  EXPECT_TRUE((*store->find(key_of("a")))->state == "Verified");
  server("terminate");
  EXPECT_EQ(*store->prune({.state = "none"}), 0);  // a transaction
  server("stop");
  std::thread later([&] { server("start"); });
  const auto put = store->put(record("b"));
  EXPECT_TRUE(put.ok()) << put.error().message;
  later.join();
  server("kill");
  server("start");
  EXPECT_TRUE((*store->find(key_of("b"))).has_value());
}

TEST_F(PostgresTest, WhoIsNotLetInIsRefused) {
  postgres_script("DROP ROLE IF EXISTS secret; CREATE ROLE secret LOGIN PASSWORD 'open sesame'");
  const auto refused = [&](const std::string& uri) {
    const Stopwatch watch;
    const auto store = Store::open(uri);
    EXPECT_FALSE(store.ok());
    EXPECT_EQ(store.error().blame, Blame::kInput) << store.error().message;
    EXPECT_LT(watch.seconds(), 30);
    EXPECT_THAT(store.error().message, Not(HasSubstr("sesame")));
    return store.error().message;
  };
  EXPECT_THAT(refused(server.uri("secret:closed%20sesame")), HasSubstr("password authentication failed"));
  EXPECT_THAT(refused(server.uri("nereid", "nothere")), HasSubstr("\"nothere\" does not exist"));
  EXPECT_THAT(refused(server.uri("a-stranger")), HasSubstr("does not exist"));
  // It may connect, and not make a schema.
  EXPECT_THAT(refused(server.uri("secret:open%20sesame")), HasSubstr("permission denied"));
  // A reader.
  open_store(server.uri())->put(record("a")).value();
  postgres_script(
      "GRANT USAGE ON SCHEMA nereid TO secret; GRANT SELECT ON ALL TABLES IN SCHEMA nereid TO secret");
  auto reader = open_store(server.uri("secret:open%20sesame"));
  EXPECT_TRUE((*reader->find(key_of("a"))).has_value());
  EXPECT_THAT(reader->put(record("b")).error().message, HasSubstr("permission denied"));
  reader.reset();
  postgres_script("DROP OWNED BY secret; DROP ROLE secret");
}

// Seconds long: label slow.
struct PostgresFaults : PostgresTest {
  std::unique_ptr<Store> store;
  void SetUp() override {
    if (std::getenv("NEREID_TEST_STORE_KILLS") == nullptr) GTEST_SKIP() << "store_faults runs these";
    PostgresTest::SetUp();
    store = open_store(server.uri());
    store->put(record("before")).value();
  }
  // The first error within seconds, those after it at once, and all is well again some time later.
  void expect_bounded(const std::string& why, const std::function<void()>& mend) {
    const Stopwatch watch;
    EXPECT_THAT(store->put(record("a")).error().message, HasSubstr(why));
    EXPECT_LT(watch.seconds(), 6.5);
    const Stopwatch again;
    EXPECT_THAT(store->find(key_of("before")).error().message, HasSubstr(why));
    EXPECT_LT(again.seconds(), 0.5);
    std::this_thread::sleep_for(std::chrono::milliseconds(3200));
    const Stopwatch once;
    EXPECT_FALSE(store->find(key_of("before")).ok());
    EXPECT_LT(once.seconds(), 6.5);
    mend();
    std::this_thread::sleep_for(std::chrono::milliseconds(6200));
    const auto found = store->find(key_of("before"));
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_TRUE(found->has_value());
    EXPECT_TRUE(store->put(record("a")).ok());
  }
};

TEST_F(PostgresFaults, AServerThatIsGone) {
  server("stop");
  expect_bounded("tries in", [&] { server("start"); });
}

TEST_F(PostgresFaults, AServerThatHangs) {
  server("freeze");
  expect_bounded("no answer in 5 s", [&] { server("thaw"); });
}

TEST_F(PostgresFaults, ATableThatIsLocked) {
  pqxx::connection connection(server.uri());
  auto lock = std::make_unique<pqxx::work>(connection);
  lock->exec("LOCK TABLE nereid.records");
  expect_bounded("statement timeout", [&] { lock.reset(); });
}

}  // namespace
}  // namespace nereid::store
