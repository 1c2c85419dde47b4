#include "nereid/store/sqlite.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "nereid/base/deadline.h"

namespace nereid::store {
namespace {
constexpr int kBusySeconds = 30;
}

Connection::Connection(Connection&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}
Connection::~Connection() { ::sqlite3_close_v2(handle_); }

Result<Connection> Connection::open(const std::filesystem::path& path) {
  sqlite3* handle = nullptr;
  const int code = ::sqlite3_open_v2(
      path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Connection connection(handle, path.string());
  if (code != SQLITE_OK) return connection.error("cannot be opened");
  ::sqlite3_busy_timeout(handle, kBusySeconds * 1000);
  ::sqlite3_extended_result_codes(handle, 1);
  return connection;
}

Error Connection::error(std::string_view what) const {
  const int code = handle_ == nullptr ? SQLITE_NOMEM : ::sqlite3_extended_errcode(handle_) & 0xff;
  const bool input = code == SQLITE_CANTOPEN || code == SQLITE_NOTADB || code == SQLITE_READONLY ||
                     code == SQLITE_PERM || code == SQLITE_CORRUPT;
  return Error{fmt::format("the store {}: {}: {}", path_, what,
                           handle_ == nullptr ? "out of memory" : ::sqlite3_errmsg(handle_)),
               input ? Blame::kInput : Blame::kOurs};
}

Status Connection::run(const char* sql) {
  if (::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error(sql);
  return ok_status();
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  if (::sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &handle, nullptr) != SQLITE_OK)
    return error(sql);
  return Statement(*this, handle);
}

Result<int64_t> Connection::integer(std::string_view sql) {
  NEREID_TRY(auto statement, prepare(sql));
  NEREID_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : int64_t{0};
}

Status Connection::write_ahead() {
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

int64_t Connection::changes() const { return ::sqlite3_changes64(handle_); }

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_), handle_(std::exchange(other.handle_, nullptr)) {}
Statement::~Statement() { ::sqlite3_finalize(handle_); }

Statement& Statement::bind(int at, std::string_view text) {
  ::sqlite3_bind_text64(handle_, at, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind(int at, double number) {
  ::sqlite3_bind_double(handle_, at, number);
  return *this;
}
Statement& Statement::bind(int at, int64_t number) {
  ::sqlite3_bind_int64(handle_, at, number);
  return *this;
}
Statement& Statement::bind_null(int at) {
  ::sqlite3_bind_null(handle_, at);
  return *this;
}

Result<bool> Statement::step() {
  const int code = ::sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->error(::sqlite3_sql(handle_));
}

std::string Statement::text(int column) const {
  const auto* bytes = ::sqlite3_column_text(handle_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(::sqlite3_column_bytes(handle_, column))};
}
double Statement::number(int column) const { return ::sqlite3_column_double(handle_, column); }
int64_t Statement::integer(int column) const { return ::sqlite3_column_int64(handle_, column); }
bool Statement::is_null(int column) const { return ::sqlite3_column_type(handle_, column) == SQLITE_NULL; }

Result<Transaction> Transaction::begin(Connection& connection) {
  NEREID_TRY_STATUS(connection.run("BEGIN IMMEDIATE"));
  return Transaction(connection);
}
Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}
Transaction::~Transaction() {
  if (connection_ != nullptr) (void)connection_->run("ROLLBACK");
}
Status Transaction::commit() {
  NEREID_TRY_STATUS(connection_->run("COMMIT"));
  connection_ = nullptr;
  return ok_status();
}

}  // namespace nereid::store
