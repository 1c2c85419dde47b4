#include "nereid/store/store.h"

#include <array>
#include <cstdlib>
#include <ctime>

#include "nereid/base/hash.h"

namespace nereid::store {
namespace {

constexpr std::array<const char*, Store::kSchema> kSqlite = {R"(
CREATE TABLE records (
  key TEXT PRIMARY KEY, kind TEXT NOT NULL, task TEXT NOT NULL, subject TEXT NOT NULL, question TEXT NOT NULL,
  hardware TEXT NOT NULL, versions TEXT NOT NULL, word TEXT NOT NULL, milliseconds REAL,
  document TEXT NOT NULL, made INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX records_by_time ON records (made);
CREATE INDEX records_by_task ON records (task, kind);
CREATE TABLE texts (hash TEXT PRIMARY KEY, text TEXT NOT NULL, made INTEGER NOT NULL) WITHOUT ROWID;
)"};
// BYTEA: any bytes, whatever the encoding of the database.
constexpr std::array<const char*, Store::kSchema> kPostgres = {R"(
CREATE TABLE records (
  key BYTEA PRIMARY KEY, kind BYTEA NOT NULL, task BYTEA NOT NULL, subject BYTEA NOT NULL,
  question BYTEA NOT NULL,
  hardware BYTEA NOT NULL, versions BYTEA NOT NULL, word BYTEA NOT NULL, milliseconds DOUBLE PRECISION,
  document BYTEA NOT NULL, made BIGINT NOT NULL);
CREATE INDEX records_by_time ON records (made);
CREATE INDEX records_by_task ON records (task, kind);
CREATE TABLE texts (hash BYTEA PRIMARY KEY, text BYTEA NOT NULL, made BIGINT NOT NULL);
)"};
// Reads everything: the parts that a key is made of (`Key::hash`), documents, and texts under their hashes.
constexpr const char* kPostgresCheck = R"(
(SELECT 'the record ' || encode(key, 'escape') || ' is not what its key says' FROM records
 WHERE sha256(document) IS NULL OR key <> convert_to(encode(sha256((
   SELECT string_agg(
     convert_to(octet_length(part) || ':', 'UTF8') || part || ','::bytea, ''::bytea ORDER BY place)
   FROM unnest(ARRAY[kind, task, subject, question, hardware, versions]) WITH ORDINALITY
     AS parts (part, place)
 )), 'hex'), 'UTF8') LIMIT 10)
UNION ALL
(SELECT 'the text ' || encode(hash, 'escape') || ' is not what its hash says' FROM texts
 WHERE hash <> convert_to(encode(sha256(text), 'hex'), 'UTF8') LIMIT 10)
)";
constexpr Layout kRecordsLayout = {.part = "records",
                                   .application = 0x4e657265,  // "Nere"
                                   .stranger = "no store of Nereid's",
                                   .sqlite = kSqlite,
                                   .postgres = kPostgres,
                                   .postgres_check = kPostgresCheck};

constexpr const char* kColumns =
    "kind, task, subject, question, hardware, versions, word, milliseconds, document, made";
constexpr int64_t kTextGrace = 3600;  // seconds that a text may be there before its record

Record record_of(Row& row) {
  const auto take = [&](size_t column) { return std::move(std::get<std::string>(row.values.at(column))); };
  Record record;
  record.key = {
      kind_from_string(row.text(0)).value_or(Kind::kRun), take(1), take(2), take(3), take(4), take(5)};
  record.state = take(6);
  if (!row.is_null(7)) record.milliseconds = row.number(7);
  record.document = take(8);
  record.made = row.integer(9);
  return record;
}

// The condition of a filter with its parameters.
struct Where {
  std::string sql = " WHERE 1 = 1";
  std::vector<Value> parameters;

  explicit Where(const Filter& filter) {
    if (filter.kind) add("kind =", std::string(to_string(*filter.kind)));
    begins("key", filter.key);
    begins("task", filter.task);
    if (!filter.state.empty()) add("word =", filter.state);
    if (!filter.subject.empty()) add("subject =", filter.subject);
    if (!filter.other_versions_than.empty()) add("versions !=", filter.other_versions_than);
    if (filter.made_before) add("made <", *filter.made_before);
  }
  void add(const char* condition, Value value) {
    parameters.push_back(std::move(value));
    sql += fmt::format(" AND {} ${}", condition, parameters.size());
  }

 private:
  // A range, which an index serves.
  void begins(const char* column, const std::string& prefix) {
    if (prefix.empty()) return;
    add(fmt::format("{} >=", column).c_str(), prefix);
    add(fmt::format("{} <", column).c_str(), prefix + "\x7f");
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

std::string Store::default_address() {
  const char* named = std::getenv("NEREID_STORE");
  return named != nullptr && *named != 0 ? named : data_file("store.db").string();
}

Result<std::unique_ptr<Store>> Store::open(const std::string& text) {
  NEREID_TRY(const auto address, Address::parse(text));
  NEREID_TRY(auto database, Database::open(address, kRecordsLayout));
  return std::unique_ptr<Store>(new Store(std::move(database)));
}

Status Store::put(const Record& record) {
  const std::lock_guard lock(mutex_);
  const Key& key = record.key;
  const int64_t made = record.made != 0 ? record.made : static_cast<int64_t>(std::time(nullptr));
  std::vector<Value> values = {key.hash(),   std::string(to_string(key.kind)),
                               key.task,     key.subject,
                               key.question, key.hardware,
                               key.versions, record.state,
                               Value(),      record.document,
                               made};
  if (record.milliseconds) values[8] = *record.milliseconds;
  NEREID_TRY(
      [[maybe_unused]] const auto none,
      database_->run(fmt::format("INSERT INTO records (key, {}) "
                                 "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) "
                                 "ON CONFLICT (key) DO UPDATE SET word = excluded.word, milliseconds = "
                                 "excluded.milliseconds, document = excluded.document, made = excluded.made",
                                 kColumns),
                     values));
  return ok_status();
}

Result<std::optional<Record>> Store::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(auto rows,
             database_->run(fmt::format("SELECT {} FROM records WHERE key = $1", kColumns), {key.hash()}));
  return rows.empty() ? std::nullopt : std::optional(record_of(rows.front()));
}

Result<std::vector<Record>> Store::list(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  Where where(filter);
  where.parameters.emplace_back(filter.most);
  NEREID_TRY(auto rows,
             database_->run(fmt::format("SELECT {} FROM records{} ORDER BY made DESC, key LIMIT ${}",
                                        kColumns, where.sql, where.parameters.size()),
                            where.parameters, Pace::kLong));
  std::vector<Record> found;
  found.reserve(rows.size());
  for (Row& row : rows) found.push_back(record_of(row));
  return found;
}

Result<int64_t> Store::count(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  const Where where(filter);
  NEREID_TRY(const auto rows,
             database_->run("SELECT count(*) FROM records" + where.sql, where.parameters, Pace::kLong));
  return rows.front().integer(0);
}

Result<int64_t> Store::prune(const Filter& filter) {
  const std::lock_guard lock(mutex_);
  const Where where(filter);
  int64_t removed = 0;
  NEREID_TRY_STATUS(database_->transaction([&]() -> Status {
    NEREID_TRY(const auto records,
               database_->run("DELETE FROM records" + where.sql, where.parameters, Pace::kLong));
    NEREID_TRY(
        [[maybe_unused]] const auto texts,
        database_->run("DELETE FROM texts WHERE hash IN (SELECT hash FROM texts WHERE made < $1 EXCEPT "
                       "SELECT task FROM records EXCEPT SELECT subject FROM records EXCEPT SELECT word FROM "
                       "records)",
                       {static_cast<int64_t>(std::time(nullptr)) - kTextGrace}, Pace::kLong));
    removed = records.changed;
    return ok_status();
  }));
  if (removed > 0) NEREID_TRY_STATUS(database_->compact());
  return removed;
}

Result<std::string> Store::keep_text(std::string_view text) {
  const std::string hash = sha256_hex(text);
  const std::lock_guard lock(mutex_);
  NEREID_TRY([[maybe_unused]] const auto none,
             database_->run("INSERT INTO texts (hash, text, made) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                            {hash, std::string(text), static_cast<int64_t>(std::time(nullptr))}));
  return hash;
}

Result<std::optional<std::string>> Store::text(const std::string& hash) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(const auto rows, database_->run("SELECT text FROM texts WHERE hash = $1", {hash}));
  return rows.empty() ? std::nullopt : std::optional(rows.front().text(0));
}

Result<std::string> Store::check() {
  const std::lock_guard lock(mutex_);
  return database_->check();
}

Result<int64_t> Store::bytes() {
  const std::lock_guard lock(mutex_);
  return database_->bytes();
}

}  // namespace nereid::store
