#include "nereid/serve/task_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

namespace nereid::serve {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kApplication = 0x4e524a53;  // "NRJS", in SQLite's header
constexpr int64_t kSchema = 1;
constexpr const char* kTables = R"(
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, client TEXT NOT NULL, state INTEGER NOT NULL, line TEXT NOT NULL,
  receipt TEXT NOT NULL, result TEXT NOT NULL, accepted REAL NOT NULL, answered REAL NOT NULL);
CREATE INDEX tasks_by_state ON tasks (state, accepted);
CREATE INDEX tasks_by_answer ON tasks (answered);
)";
constexpr std::string_view kColumns = "id, principal, client, state, receipt, result, accepted, answered";

StoredTask row_of(const store::Statement& row) {
  return {.id = row.text(0),
          .client = {row.text(1), row.text(2)},
          .state = static_cast<StoredTask::State>(row.integer(3)),
          .line = {},
          .receipt = row.text(4),
          .result = row.text(5),
          .accepted = row.number(6),
          .answered = row.number(7)};
}

}  // namespace

Result<std::unique_ptr<TaskStore>> TaskStore::open(const fs::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  if (failure) return input_error("the store {}: {}", path.string(), failure.message());
  const fs::path lock_path = path.string() + ".lock";
  Fd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return input_error("the store {}: {}", lock_path.string(), std::strerror(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return input_error("the store {} is used by another server: expected one that is not (--store FILE)",
                       path.string());
  NEREID_TRY(auto connection, store::Connection::open(path));
  std::unique_ptr<TaskStore> tasks(new TaskStore(std::move(connection), std::move(lock), path));
  NEREID_TRY_STATUS(tasks->prepare_schema());
  return tasks;
}

Status TaskStore::prepare_schema() {
  NEREID_TRY(const int64_t tables, connection_.integer("SELECT count(*) FROM sqlite_master"));
  NEREID_TRY(const int64_t application, connection_.integer("PRAGMA application_id"));
  if (tables > 0 && application != kApplication)
    return input_error("{} is a database, but not one of `nereid serve`", path_.string());
  NEREID_TRY_STATUS(connection_.write_ahead());
  // A kill loses nothing that was committed; a power cut may lose the last transactions, whole.
  NEREID_TRY_STATUS(connection_.run("PRAGMA synchronous=NORMAL"));
  NEREID_TRY(const int64_t version, connection_.integer("PRAGMA user_version"));
  if (version > kSchema)
    return input_error("the store {} has schema {}, this program knows {}: it was written by a newer one",
                       path_.string(), version, kSchema);
  if (version == kSchema) return ok_status();
  NEREID_TRY(auto transaction, store::Transaction::begin(connection_));
  NEREID_TRY_STATUS(connection_.run(kTables));
  NEREID_TRY_STATUS(connection_.run(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplication, kSchema).c_str()));
  return transaction.commit();
}

Status TaskStore::accept(const std::vector<StoredTask>& tasks) {
  NEREID_TRY(auto transaction, store::Transaction::begin(connection_));
  for (const StoredTask& task : tasks) {
    NEREID_TRY(
        auto insert,
        connection_.prepare("INSERT INTO tasks VALUES (?1, ?2, ?3, 0, ?4, ?5, '', ?6, 0) ON CONFLICT (id) DO "
                            "UPDATE SET state = 0, line = excluded.line, result = '', principal = "
                            "excluded.principal, client = excluded.client, accepted = excluded.accepted "
                            "WHERE state = 2"));
    insert.bind(1, task.id).bind(2, task.client.principal).bind(3, task.client.name);
    insert.bind(4, task.line).bind(5, task.receipt).bind(6, task.accepted);
    NEREID_TRY([[maybe_unused]] const bool row, insert.step());
  }
  return transaction.commit();
}

Result<std::optional<StoredTask>> TaskStore::find(const std::string& id) {
  NEREID_TRY(auto statement,
             connection_.prepare(fmt::format("SELECT {} FROM tasks WHERE id = ?1", kColumns)));
  statement.bind(1, id);
  NEREID_TRY(const bool row, statement.step());
  return row ? std::optional(row_of(statement)) : std::nullopt;
}

Result<std::string> TaskStore::line(const std::string& id) {
  NEREID_TRY(auto statement, connection_.prepare("SELECT line FROM tasks WHERE id = ?1"));
  statement.bind(1, id);
  NEREID_TRY(const bool row, statement.step());
  if (!row) return our_error("the store {} has lost the task {}", path_.string(), id);
  return statement.text(0);
}

Status TaskStore::settle(const std::string& id, StoredTask::State state, const std::string& result,
                         double answered) {
  NEREID_TRY(auto update,
             connection_.prepare(
                 "UPDATE tasks SET state = ?2, result = ?3, answered = ?4, line = '' WHERE id = ?1"));
  update.bind(1, id).bind(2, static_cast<int64_t>(state)).bind(3, result).bind(4, answered);
  NEREID_TRY([[maybe_unused]] const bool row, update.step());
  return ok_status();
}

Result<std::vector<StoredTask>> TaskStore::select(const std::string& sql, int64_t most) {
  NEREID_TRY(auto statement, connection_.prepare(sql));
  statement.bind(1, most);
  std::vector<StoredTask> tasks;
  for (;;) {
    NEREID_TRY(const bool row, statement.step());
    if (!row) return tasks;
    tasks.push_back(row_of(statement));
  }
}

Result<std::vector<StoredTask>> TaskStore::waiting() {
  return select(
      fmt::format("SELECT {} FROM tasks WHERE state = 0 ORDER BY accepted, rowid LIMIT ?1", kColumns),
      INT64_MAX);
}

Result<std::vector<StoredTask>> TaskStore::latest(int64_t most) {
  return select(
      fmt::format("SELECT {} FROM tasks WHERE state != 0 ORDER BY answered DESC, rowid DESC LIMIT ?1",
                  kColumns),
      most);
}

Result<int64_t> TaskStore::prune(double before) {
  NEREID_TRY(auto remove, connection_.prepare("DELETE FROM tasks WHERE state != 0 AND answered < ?1"));
  remove.bind(1, before);
  NEREID_TRY([[maybe_unused]] const bool row, remove.step());
  return connection_.changes();
}

}  // namespace nereid::serve
