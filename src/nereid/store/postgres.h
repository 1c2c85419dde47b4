// A database in PostgreSQL, in the schema `nereid`, which other programs' tables may surround.
#pragma once

#include <memory>
#include <string>

#include "nereid/base/deadline.h"
#include "nereid/store/database.h"
#include "nereid/store/watchdog.h"

namespace nereid::store {

// A statement takes 5 s at most (Pace::kLong: 10 minutes), also where the server hangs. A connection that is
// lost is made again, and the statement or transaction is done again, for up to 4 s; after that errors come
// at once, with one more try every 3 s, later every 15.
class PostgresDatabase : public Database {
 public:
  // Exclusive use holds an advisory lock of the session.
  static Result<std::unique_ptr<Database>> open(const Address& address, const Layout& layout, Use use);
  ~PostgresDatabase() override;

  Result<Rows> run(const std::string& sql, const std::vector<Value>& parameters, Pace pace) override;
  Status transaction(const std::function<Status()>& work) override;
  Status compact() override { return ok_status(); }  // the server's autovacuum does
  Result<std::string> check() override;
  Result<int64_t> bytes() override;

 private:
  class Connection;  // libpqxx's, for its headers are read by one file

  PostgresDatabase(Address address, const Layout& layout, Use use);
  Status prepare_schema();
  Status migrate(int64_t version);
  Result<Rows> run_once(const std::string& sql, const std::vector<Value>& parameters, Pace pace);
  // Connects where there is no connection.
  Status connect();
  Status start_session();
  Status lock_exclusively();
  // `once`, with a connection, until it ends otherwise than by a lost connection.
  Status persist(const std::function<Status()>& once);
  // `action`, libpqxx's exceptions as an error; sets `lost_` and `slow_`.
  Status guarded(double seconds, const std::function<void()>& action);
  Error error(const std::string& what, Blame blame = Blame::kOurs) const;

  Address address_;
  Layout layout_;
  Use use_;
  std::unique_ptr<Connection> connection_;
  Watchdog watchdog_;
  bool in_transaction_ = false;
  bool lost_ = false;  // the last error was the connection's, or one that another try may mend
  bool slow_ = false;  // the last error was a time limit's
  // While the server is not reachable.
  Clock::time_point next_try_{};
  double pause_ = 0;  // seconds; 0: it is reachable
  Error trouble_;
};

}  // namespace nereid::store
