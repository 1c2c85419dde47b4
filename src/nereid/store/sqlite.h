// SQLite as this folder uses it: a connection, a statement, and errors as results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace nereid::store {

class Statement;

// One connection, for one thread at a time. Waits up to 30 s for other writers.
class Connection {
 public:
  static Result<Connection> open(const std::filesystem::path& path);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  // Statements without parameters and without rows.
  Status run(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  Result<int64_t> integer(std::string_view sql);  // the first column of the first row
  // A switch to write-ahead logging, which other processes may be making too.
  Status write_ahead();
  int64_t changes() const;  // rows that the last statement changed
  Error error(std::string_view what) const;

 private:
  Connection(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  sqlite3* handle_ = nullptr;
  std::string path_;
};

class Statement {
 public:
  Statement(Connection& connection, sqlite3_stmt* handle) : connection_(&connection), handle_(handle) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Parameters are numbered from 1, columns from 0.
  Statement& bind(int at, std::string_view text);
  Statement& bind(int at, double number);
  Statement& bind(int at, int64_t number);
  Statement& bind_null(int at);
  // True: there is a row to read.
  Result<bool> step();
  std::string text(int column) const;
  double number(int column) const;
  int64_t integer(int column) const;
  bool is_null(int column) const;

 private:
  Connection* connection_;
  sqlite3_stmt* handle_;
};

// A transaction that writes: begun at once, so that two writers queue instead of failing at the end; undone
// where it goes without `commit`.
class Transaction {
 public:
  static Result<Transaction> begin(Connection& connection);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

}  // namespace nereid::store
