#include "nereid/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "nereid/base/deadline.h"

namespace nereid::store {
namespace {

constexpr int kBusySeconds = 30;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
};

void bind_value(sqlite3_stmt* statement, int at, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    ::sqlite3_bind_text64(statement, at, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  else if (const auto* integer = std::get_if<int64_t>(&value))
    ::sqlite3_bind_int64(statement, at, *integer);
  else if (const auto* number = std::get_if<double>(&value))
    ::sqlite3_bind_double(statement, at, *number);
  else
    ::sqlite3_bind_null(statement, at);
}

Value column_value(sqlite3_stmt* statement, int column) {
  switch (::sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return ::sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT:
      return ::sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate{};
    default: {
      const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement, column));
      return std::string(bytes == nullptr ? "" : bytes,
                         static_cast<size_t>(::sqlite3_column_bytes(statement, column)));
    }
  }
}

}  // namespace

Result<std::unique_ptr<Database>> SqliteDatabase::open(const std::filesystem::path& path,
                                                       const Layout& layout, Use use) {
  std::error_code failure;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
  if (failure) return input_error("the store {}: {}", path.string(), failure.message());
  const auto kind = std::filesystem::status(path, failure).type();
  if (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular)
    return input_error("the store {}: expected a regular file, or none yet", path.string());
  Fd lock;
  if (use == Use::kExclusive) {
    const std::string lock_path = path.string() + ".lock";
    lock = Fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.valid()) return input_error("the store {}: {}", lock_path, std::strerror(errno));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return input_error("the store {} is used by another server: expected one that is not (--store)",
                         path.string());
  }
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(path, std::move(lock)));
  NEREID_TRY_STATUS(database->connect());
  NEREID_TRY_STATUS(database->prepare_schema(layout));
  return std::unique_ptr<Database>(std::move(database));
}

SqliteDatabase::~SqliteDatabase() { ::sqlite3_close_v2(handle_); }

Status SqliteDatabase::connect() {
  const int code = ::sqlite3_open_v2(
      path_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code != SQLITE_OK) return error("cannot be opened");
  ::sqlite3_busy_timeout(handle_, kBusySeconds * 1000);
  ::sqlite3_extended_result_codes(handle_, 1);
  return ok_status();
}

Status SqliteDatabase::prepare_schema(const Layout& layout) {
  const auto schema = static_cast<int64_t>(layout.sqlite.size());
  // Before anything is written: the file may be another program's database.
  NEREID_TRY(const int64_t tables, integer("SELECT count(*) FROM sqlite_master"));
  NEREID_TRY(const int64_t application, integer("PRAGMA application_id"));
  if (tables > 0 && application != layout.application)
    return input_error("{} is a database, but {}", path_.string(), layout.stranger);
  NEREID_TRY_STATUS(write_ahead());
  NEREID_TRY_STATUS(script("PRAGMA synchronous=NORMAL"));
  NEREID_TRY(const int64_t found, integer("PRAGMA user_version"));
  if (found == schema) return ok_status();
  return transaction([&]() -> Status {
    NEREID_TRY(const int64_t version,
               integer("PRAGMA user_version"));  // another process may have been quicker
    if (version > schema)
      return input_error("the store {} has schema {}, this program knows {}: it was written by a newer one",
                         path_.string(), version, schema);
    for (int64_t from = version; from < schema; ++from)
      NEREID_TRY_STATUS(script(layout.sqlite[static_cast<size_t>(from)]));
    return script(
        fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", layout.application, schema).c_str());
  });
}

Status SqliteDatabase::write_ahead() {
  // The switch needs the file alone, and does not wait for it as other statements do.
  const auto deadline = Deadline::after(kBusySeconds);
  while (::sqlite3_exec(handle_, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr) != SQLITE_OK) {
    const int code = ::sqlite3_errcode(handle_);
    if ((code != SQLITE_BUSY && code != SQLITE_LOCKED) || deadline.passed())
      return error("cannot be switched to write-ahead logging");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ok_status();
}

Result<Rows> SqliteDatabase::run(const std::string& sql, const std::vector<Value>& parameters, Pace) {
  sqlite3_stmt* handle = nullptr;
  if (::sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &handle, nullptr) != SQLITE_OK)
    return error(sql);
  const std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement(handle);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int at = ::sqlite3_bind_parameter_index(handle, fmt::format("${}", i + 1).c_str());
    if (at > 0) bind_value(handle, at, parameters[i]);
  }
  Rows rows;
  const int columns = ::sqlite3_column_count(handle);
  for (;;) {
    const int code = ::sqlite3_step(handle);
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) return error(sql);
    Row row;
    row.values.reserve(static_cast<size_t>(columns));
    for (int i = 0; i < columns; ++i) row.values.push_back(column_value(handle, i));
    rows.push_back(std::move(row));
  }
  rows.changed = ::sqlite3_changes64(handle_);
  return rows;
}

// Begun as a writer, so that two of them queue instead of failing at the end.
Status SqliteDatabase::transaction(const std::function<Status()>& work) {
  NEREID_TRY_STATUS(script("BEGIN IMMEDIATE"));
  Status done = work();
  if (done.ok()) done = script("COMMIT");
  if (!done.ok()) (void)script("ROLLBACK");
  return done;
}

Result<std::string> SqliteDatabase::check() {
  NEREID_TRY(const auto rows, run("PRAGMA integrity_check(10)", {}, Pace::kLong));
  std::string trouble;
  for (const Row& row : rows)
    if (row.text(0) != "ok") trouble += (trouble.empty() ? "" : "; ") + row.text(0);
  return trouble;
}

Result<int64_t> SqliteDatabase::bytes() {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path_, failure);
  if (failure) return input_error("the store {}: {}", path_.string(), failure.message());
  return static_cast<int64_t>(size);
}

Status SqliteDatabase::script(const char* sql) {
  if (::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error(sql);
  return ok_status();
}

Result<int64_t> SqliteDatabase::integer(const std::string& sql) {
  NEREID_TRY(const auto rows, run(sql, {}, Pace::kQuick));
  return rows.empty() ? 0 : rows.front().integer(0);
}

Error SqliteDatabase::error(std::string_view what) const {
  const int code = handle_ == nullptr ? SQLITE_NOMEM : ::sqlite3_extended_errcode(handle_) & 0xff;
  const bool input = code == SQLITE_CANTOPEN || code == SQLITE_NOTADB || code == SQLITE_READONLY ||
                     code == SQLITE_PERM || code == SQLITE_CORRUPT;
  return Error{fmt::format("the store {}: {}: {}", path_.string(), what,
                           handle_ == nullptr ? "out of memory" : ::sqlite3_errmsg(handle_)),
               input ? Blame::kInput : Blame::kOurs};
}

}  // namespace nereid::store
