// A database as this program uses one: statements with parameters, transactions, and errors as results.
// SQLite and PostgreSQL are behind it.
//
//   NEREID_TRY(auto database, Database::open(address, kLayout));
//   NEREID_TRY(auto rows, database->run("SELECT made FROM texts WHERE hash = $1", {hash}));
//
// SQL is what both know, with parameters $1, $2, ... Strings are any bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/store/address.h"

namespace nereid::store {

using Value = std::variant<std::monostate, int64_t, double, std::string>;

struct Row {
  std::vector<Value> values;  // columns from 0

  bool is_null(size_t column) const { return values.at(column).index() == 0; }
  std::string text(size_t column) const { return get<std::string>(column); }
  int64_t integer(size_t column) const { return get<int64_t>(column); }
  double number(size_t column) const { return get<double>(column); }

 private:
  template <typename T>
  T get(size_t column) const {
    const T* value = std::get_if<T>(&values.at(column));
    return value == nullptr ? T{} : *value;
  }
};

struct Rows : std::vector<Row> {
  int64_t changed = 0;  // rows that the statement inserted, updated or deleted
};

// The tables of one kind of store.
struct Layout {
  const char* part;      // PostgreSQL holds several in one database
  int64_t application;   // in the header of SQLite's file
  const char* stranger;  // "no store of Nereid's": what another program's file is
  // What takes the tables from version N to N + 1 stands at N. None is ever changed once it was released.
  std::span<const char* const> sqlite, postgres;
  // A statement whose rows (one text) are what is wrong with the tables' contents; null: there is nothing to
  // see.
  const char* postgres_check = nullptr;
};

enum class Use {
  kShared,
  kExclusive,  // an error where another process has it exclusively
};

enum class Pace {
  kQuick,  // an answer within seconds
  kLong,   // reads or writes much: minutes
};

// For one thread at a time.
class Database {
 public:
  // Makes the tables where they are missing, and a file's folder. An error (blamed on the input) where the
  // file or the database is another program's, or a newer program's, or refuses this user.
  static Result<std::unique_ptr<Database>> open(const Address& address, const Layout& layout,
                                                Use use = Use::kShared);
  virtual ~Database() = default;

  // One statement: in the transaction that runs, else in one of its own.
  virtual Result<Rows> run(const std::string& sql, const std::vector<Value>& parameters = {},
                           Pace pace = Pace::kQuick) = 0;
  // `work` in one transaction, undone where it returns an error. A connection that is lost calls `work`
  // again, maybe after a first call took effect: it must be right to do twice.
  virtual Status transaction(const std::function<Status()>& work) = 0;
  // Gives space of removed rows back, where that is not done by itself.
  virtual Status compact() = 0;
  // SQLite's check of the file, or the layout's own in PostgreSQL: empty, or what is damaged.
  virtual Result<std::string> check() = 0;
  virtual Result<int64_t> bytes() = 0;

  const std::string& name() const { return name_; }

 protected:
  explicit Database(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

}  // namespace nereid::store
