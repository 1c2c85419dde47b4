#include "nereid/store/store.h"

#include <array>
#include <cstdlib>
#include <ctime>

#include "nereid/base/hash.h"
#include "nereid/base/program/home.h"

namespace nereid::store {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kApplication = 0x4e657265;  // "Nere", in the file's header

// What takes a file from version N to N + 1 stands at N. None is ever changed once it was released.
constexpr std::array<const char*, Store::kSchema> kMigrations = {R"(
CREATE TABLE records (
  key TEXT PRIMARY KEY, kind TEXT NOT NULL, task TEXT NOT NULL, subject TEXT NOT NULL, question TEXT NOT NULL,
  hardware TEXT NOT NULL, versions TEXT NOT NULL, word TEXT NOT NULL, milliseconds REAL,
  document TEXT NOT NULL, made INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX records_by_time ON records (made);
CREATE INDEX records_by_task ON records (task, kind);
CREATE TABLE texts (hash TEXT PRIMARY KEY, text TEXT NOT NULL, made INTEGER NOT NULL) WITHOUT ROWID;
)"};

constexpr const char* kColumns =
    "kind, task, subject, question, hardware, versions, word, milliseconds, document, made";
constexpr int64_t kTextGrace = 3600;  // seconds that a text may be there before its record

Record record_of(const Statement& row) {
  Record record;
  record.key = {kind_from_string(row.text(0)).value_or(Kind::kRun),
                row.text(1),
                row.text(2),
                row.text(3),
                row.text(4),
                row.text(5)};
  record.state = row.text(6);
  if (!row.is_null(7)) record.milliseconds = row.number(7);
  record.document = row.text(8);
  record.made = row.integer(9);
  return record;
}

// The condition of a filter with its parameters.
struct Where {
  std::string sql = " WHERE 1";
  std::vector<std::string> texts;
  std::optional<int64_t> before;

  explicit Where(const Filter& filter) : before(filter.made_before) {
    if (before) sql += " AND made < ?1";
    const auto add = [&](const char* condition, std::string text) {
      if (text.empty()) return;
      texts.push_back(std::move(text));
      sql += fmt::format(" AND {} ?{}", condition, texts.size() + 1);
    };
    if (filter.kind) add("kind =", std::string(to_string(*filter.kind)));
    const auto prefix = [](const std::string& text) { return text.empty() ? text : text + "*"; };
    add("key GLOB", prefix(filter.key));
    add("task GLOB", prefix(filter.task));
    add("word =", filter.state);
    add("subject =", filter.subject);
    add("versions !=", filter.other_versions_than);
  }
  void bind(Statement& statement) const {
    if (before) statement.bind(1, *before);
    for (size_t i = 0; i < texts.size(); ++i) statement.bind(static_cast<int>(i) + 2, texts[i]);
  }
};

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"verdict", "time", "proposal", "run"};
  return kNames.at(static_cast<size_t>(kind));
}

std::optional<Kind> kind_from_string(std::string_view name) {
  for (const Kind kind : {Kind::kVerdict, Kind::kTime, Kind::kProposal, Kind::kRun})
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

std::string Key::hash() const {
  std::string all;
  for (const std::string_view part :
       {to_string(kind), std::string_view(task), std::string_view(subject), std::string_view(question),
        std::string_view(hardware), std::string_view(versions)})
    all += fmt::format("{}:{},", part.size(), part);
  return sha256_hex(all);
}

fs::path Store::default_path() {
  const auto environment = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto file = environment("NEREID_STORE"); !file.empty()) return file;
  if (const auto data = environment("XDG_DATA_HOME"); data.is_absolute()) return data / "nereid" / "store.db";
  if (const auto home = home_folder(); !home.empty())
    return home / ".local" / "share" / "nereid" / "store.db";
  return fs::temp_directory_path() / "nereid-store.db";
}

Result<std::unique_ptr<Store>> Store::open(const fs::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  if (failure) return input_error("the store {}: {}", path.string(), failure.message());
  NEREID_TRY(auto connection, Connection::open(path));
  std::unique_ptr<Store> store(new Store(std::move(connection), path));
  NEREID_TRY_STATUS(store->prepare_schema());
  return store;
}

Status Store::prepare_schema() {
  // Before anything is written: the file may be another program's database.
  NEREID_TRY(const int64_t tables, connection_.integer("SELECT count(*) FROM sqlite_master"));
  NEREID_TRY(int64_t application, connection_.integer("PRAGMA application_id"));
  if (tables > 0 && application != kApplication)
    return input_error("{} is a database, but no store of Nereid's", path_.string());
  NEREID_TRY_STATUS(connection_.write_ahead());
  // A kill loses nothing that was committed; only a power cut may lose the last transactions, whole.
  NEREID_TRY_STATUS(connection_.run("PRAGMA synchronous=NORMAL"));
  NEREID_TRY(int64_t version, connection_.integer("PRAGMA user_version"));
  if (version == kSchema) return ok_status();
  NEREID_TRY(auto transaction, Transaction::begin(connection_));
  NEREID_TRY(version, connection_.integer("PRAGMA user_version"));  // another process may have been quicker
  if (version > kSchema)
    return input_error("the store {} has schema {}, this program knows {}: it was written by a newer one",
                       path_.string(), version, kSchema);
  for (int64_t from = version; from < kSchema; ++from)
    NEREID_TRY_STATUS(connection_.run(kMigrations[static_cast<size_t>(from)]));
  NEREID_TRY_STATUS(connection_.run(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplication, kSchema).c_str()));
  return transaction.commit();
}

Status Store::put(const Record& record) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto statement,
             connection_.prepare(fmt::format("INSERT OR REPLACE INTO records (key, {}) "
                                             "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                                             kColumns)));
  statement.bind(1, record.key.hash()).bind(2, to_string(record.key.kind)).bind(3, record.key.task);
  statement.bind(4, record.key.subject).bind(5, record.key.question).bind(6, record.key.hardware);
  statement.bind(7, record.key.versions).bind(8, record.state).bind(10, record.document);
  if (record.milliseconds)
    statement.bind(9, *record.milliseconds);
  else
    statement.bind_null(9);
  statement.bind(11, record.made != 0 ? record.made : static_cast<int64_t>(std::time(nullptr)));
  NEREID_TRY([[maybe_unused]] const bool row, statement.step());
  return ok_status();
}

Result<std::optional<Record>> Store::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto statement,
             connection_.prepare(fmt::format("SELECT {} FROM records WHERE key = ?1", kColumns)));
  statement.bind(1, key.hash());
  NEREID_TRY(const bool row, statement.step());
  return row ? std::optional(record_of(statement)) : std::nullopt;
}

Result<std::vector<Record>> Store::list(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  const Where where(filter);
  NEREID_TRY(auto statement,
             connection_.prepare(fmt::format("SELECT {} FROM records{} ORDER BY made DESC, key LIMIT {}",
                                             kColumns, where.sql, filter.most)));
  where.bind(statement);
  std::vector<Record> found;
  while (true) {
    NEREID_TRY(const bool row, statement.step());
    if (!row) return found;
    found.push_back(record_of(statement));
  }
}

Result<int64_t> Store::count(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  const Where where(filter);
  NEREID_TRY(auto statement, connection_.prepare("SELECT count(*) FROM records" + where.sql));
  where.bind(statement);
  NEREID_TRY([[maybe_unused]] const bool row, statement.step());
  return statement.integer(0);
}

Result<int64_t> Store::prune(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  const Where where(filter);
  int64_t removed = 0;
  {
    NEREID_TRY(auto transaction, Transaction::begin(connection_));
    {
      NEREID_TRY(auto statement, connection_.prepare("DELETE FROM records" + where.sql));
      where.bind(statement);
      NEREID_TRY([[maybe_unused]] const bool row, statement.step());
      removed = connection_.changes();
      NEREID_TRY(auto texts,
                 connection_.prepare("DELETE FROM texts WHERE made < ?1 AND hash NOT IN (SELECT task FROM "
                                     "records) AND hash NOT IN (SELECT subject FROM records) AND hash "
                                     "NOT IN (SELECT word FROM records)"));
      texts.bind(1, static_cast<int64_t>(std::time(nullptr)) - kTextGrace);
      NEREID_TRY([[maybe_unused]] const bool none, texts.step());
    }
    NEREID_TRY_STATUS(transaction.commit());
  }
  if (removed > 0) NEREID_TRY_STATUS(connection_.run("VACUUM"));
  return removed;
}

Result<std::string> Store::keep_text(std::string_view text) {
  const std::string hash = sha256_hex(text);
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto statement,
             connection_.prepare("INSERT OR IGNORE INTO texts (hash, text, made) VALUES (?1, ?2, ?3)"));
  statement.bind(1, hash).bind(2, text).bind(3, static_cast<int64_t>(std::time(nullptr)));
  NEREID_TRY([[maybe_unused]] const bool row, statement.step());
  return hash;
}

Result<std::optional<std::string>> Store::text(const std::string& hash) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto statement, connection_.prepare("SELECT text FROM texts WHERE hash = ?1"));
  statement.bind(1, hash);
  NEREID_TRY(const bool row, statement.step());
  return row ? std::optional(statement.text(0)) : std::nullopt;
}

Result<std::string> Store::check() {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto statement, connection_.prepare("PRAGMA integrity_check(10)"));
  std::string trouble;
  while (true) {
    NEREID_TRY(const bool row, statement.step());
    if (!row) return trouble;
    if (statement.text(0) != "ok") trouble += (trouble.empty() ? "" : "; ") + statement.text(0);
  }
}

}  // namespace nereid::store
