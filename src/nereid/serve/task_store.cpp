#include "nereid/serve/task_store.h"

#include <array>

namespace nereid::serve {
namespace {

using store::Row;

constexpr std::array<const char*, 1> kSqliteTasks = {R"(
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, client TEXT NOT NULL, state INTEGER NOT NULL,
  line TEXT NOT NULL,
  receipt TEXT NOT NULL, result TEXT NOT NULL, accepted REAL NOT NULL, answered REAL NOT NULL);
CREATE INDEX tasks_by_state ON tasks (state, accepted);
CREATE INDEX tasks_by_answer ON tasks (answered);
)"};
constexpr std::array<const char*, 1> kPostgresTasks = {R"(
CREATE TABLE tasks (
  id BYTEA PRIMARY KEY, principal BYTEA NOT NULL, client BYTEA NOT NULL, state BIGINT NOT NULL,
  line BYTEA NOT NULL,
  receipt BYTEA NOT NULL, result BYTEA NOT NULL, accepted DOUBLE PRECISION NOT NULL,
  answered DOUBLE PRECISION NOT NULL, rowid BIGINT GENERATED ALWAYS AS IDENTITY);
CREATE INDEX tasks_by_state ON tasks (state, accepted);
CREATE INDEX tasks_by_answer ON tasks (answered);
)"};
constexpr store::Layout kTasksLayout = {.part = "tasks",
                                        .application = 0x4e524a53,  // "NRJS"
                                        .stranger = "not one of `nereid serve`",
                                        .sqlite = kSqliteTasks,
                                        .postgres = kPostgresTasks};
constexpr std::string_view kColumns = "id, principal, client, state, receipt, result, accepted, answered";

StoredTask task_of(const Row& row) {
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

Result<std::unique_ptr<TaskStore>> TaskStore::open(const std::string& text) {
  NEREID_TRY(const auto address, store::Address::parse(text));
  NEREID_TRY(auto database, store::Database::open(address, kTasksLayout, store::Use::kExclusive));
  return std::unique_ptr<TaskStore>(new TaskStore(std::move(database)));
}

Status TaskStore::accept(const std::vector<StoredTask>& tasks) {
  return database_->transaction([&]() -> Status {
    for (const StoredTask& task : tasks) {
      NEREID_TRY(
          [[maybe_unused]] const auto none,
          database_->run(
              "INSERT INTO tasks (id, principal, client, state, line, receipt, result, accepted, "
              "answered) VALUES ($1, $2, $3, 0, $4, $5, '', $6, 0) ON CONFLICT (id) DO UPDATE SET "
              "state = 0, line = excluded.line, result = '', principal = excluded.principal, "
              "client = excluded.client, accepted = excluded.accepted WHERE tasks.state = 2",
              {task.id, task.client.principal, task.client.name, task.line, task.receipt, task.accepted}));
    }
    return ok_status();
  });
}

Result<std::optional<StoredTask>> TaskStore::find(const std::string& id) {
  NEREID_TRY(const auto rows,
             database_->run(fmt::format("SELECT {} FROM tasks WHERE id = $1", kColumns), {id}));
  return rows.empty() ? std::nullopt : std::optional(task_of(rows.front()));
}

Result<std::string> TaskStore::line(const std::string& id) {
  NEREID_TRY(const auto rows, database_->run("SELECT line FROM tasks WHERE id = $1", {id}));
  if (rows.empty()) return our_error("the store {} has lost the task {}", database_->name(), id);
  return rows.front().text(0);
}

Status TaskStore::settle(const std::string& id, StoredTask::State state, const std::string& result,
                         double answered) {
  NEREID_TRY(
      [[maybe_unused]] const auto none,
      database_->run("UPDATE tasks SET state = $2, result = $3, answered = $4, line = '' WHERE id = $1",
                     {id, static_cast<int64_t>(state), result, answered}));
  return ok_status();
}

Result<std::vector<StoredTask>> TaskStore::select(const std::string& sql, int64_t most) {
  NEREID_TRY(const auto rows, database_->run(sql, {most}));
  std::vector<StoredTask> tasks;
  tasks.reserve(rows.size());
  for (const Row& row : rows) tasks.push_back(task_of(row));
  return tasks;
}

Result<std::vector<StoredTask>> TaskStore::waiting() {
  return select(
      fmt::format("SELECT {} FROM tasks WHERE state = 0 ORDER BY accepted, rowid LIMIT $1", kColumns),
      INT64_MAX);
}

Result<std::vector<StoredTask>> TaskStore::latest(int64_t most) {
  return select(
      fmt::format("SELECT {} FROM tasks WHERE state != 0 ORDER BY answered DESC, rowid DESC LIMIT $1",
                  kColumns),
      most);
}

Result<int64_t> TaskStore::prune(double before) {
  NEREID_TRY(const auto removed,
             database_->run("DELETE FROM tasks WHERE state != 0 AND answered < $1", {before}));
  return removed.changed;
}

}  // namespace nereid::serve
