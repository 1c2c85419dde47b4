#include "nereid/store/postgres.h"

#include <libpq-fe.h>

#include <cmath>
#include <pqxx/pqxx>
#include <thread>

namespace nereid::store {
namespace {

constexpr double kQuickSeconds = 5, kLongSeconds = 600;
constexpr double kPatience = 4;  // seconds of tries for one statement
constexpr double kFirstPause = 3, kMaxPause = 15;
constexpr double kRefusalSeconds = 1;  // seconds: a server that refuses answers sooner
// Of advisory locks: "Nere" and what is locked.
constexpr int kLockClass = 0x4e657265, kSchemaLock = 0;

// Types of result columns, from PostgreSQL's catalogue pg_type.
constexpr unsigned kBool = 16, kBytea = 17, kInt8 = 20, kInt2 = 21, kInt4 = 23, kFloat8 = 701;

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  for (const auto beginning : beginnings)
    if (text.starts_with(beginning)) return true;
  return false;
}

// "\x..." of any bytes, PostgreSQL's text form of `bytea`.
std::string bytea_text(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  for (const unsigned char byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::optional<std::string> parameter_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return bytea_text(*text);
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::to_string(*number);
  return std::nullopt;
}

Value field_value(const pqxx::field& field) {
  if (field.is_null()) return std::monostate{};
  switch (field.type()) {
    case kBytea:
      return pqxx::binarystring(field).str();
    case kInt2:
    case kInt4:
    case kInt8:
      return field.as<int64_t>();
    case kBool:
      return int64_t{field.as<bool>()};
    case kFloat8:
      return std::strtod(field.c_str(), nullptr);
    default:
      return std::string(field.c_str(), field.size());
  }
}

Rows rows_of(const pqxx::result& result) {
  Rows rows;
  rows.reserve(result.size());
  for (const auto& from : result) {
    Row row;
    row.values.reserve(from.size());
    for (const auto& field : from) row.values.push_back(field_value(field));
    rows.push_back(std::move(row));
  }
  rows.changed = static_cast<int64_t>(result.affected_rows());
  return rows;
}

// One line of libpq's several.
std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c == '\n')
      line += "; ";
    else if (c != '\t')
      line += c;
  }
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return line;
}

}  // namespace

class PostgresDatabase::Connection {
 public:
  explicit Connection(const std::string& address) : server(address) {
    // A connection that came again by itself would lack this session's settings and lock.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    server.inhibit_reactivation(true);
#pragma GCC diagnostic pop
  }

  pqxx::result execute(const std::string& sql, const std::vector<Value>& parameters) {
    const auto [prepared, fresh] = names_.try_emplace(sql, fmt::format("s{}", names_.size()));
    if (fresh) server.prepare(prepared->second, sql);
    std::vector<std::optional<std::string>> texts;
    std::vector<const char*> pointers;
    for (const Value& value : parameters) texts.push_back(parameter_text(value));
    for (const auto& text : texts) pointers.push_back(text ? text->c_str() : nullptr);
    const auto values = pqxx::prepare::make_dynamic_params(pointers);
    if (transaction) return transaction->exec_prepared(prepared->second, values);
    return pqxx::nontransaction(server).exec_prepared(prepared->second, values);
  }
  // Statements without parameters and without rows.
  void script(const std::string& sql) {
    if (transaction)
      transaction->exec(sql);
    else
      pqxx::nontransaction(server).exec(sql);
  }
  // The server's own limit, a little before this program's, so that it is the server that says so.
  void limit(double seconds) {
    if (seconds == limit_) return;
    script(fmt::format("SET statement_timeout = {}", static_cast<int64_t>(900 * seconds)));
    limit_ = seconds;
  }

  void roll_back() {
    transaction.reset();
    limit_ = 0;  // as it was before the transaction
  }

  pqxx::connection server;
  std::unique_ptr<pqxx::work> transaction;

 private:
  std::map<std::string, std::string> names_;  // of prepared statements
  double limit_ = 0;
};

PostgresDatabase::PostgresDatabase(Address address, const Layout& layout, Use use)
    : Database(address.name()), address_(std::move(address)), layout_(layout), use_(use) {}
PostgresDatabase::~PostgresDatabase() = default;

Result<std::unique_ptr<Database>> PostgresDatabase::open(const Address& address, const Layout& layout,
                                                         Use use) {
  std::unique_ptr<PostgresDatabase> database(new PostgresDatabase(address, layout, use));
  NEREID_TRY_STATUS(database->prepare_schema());
  return std::unique_ptr<Database>(std::move(database));
}

Status PostgresDatabase::prepare_schema() {
  const std::string part = layout_.part;
  const auto schema = static_cast<int64_t>(layout_.postgres.size());
  const auto found = [&]() -> Result<int64_t> {
    NEREID_TRY(
        const auto tables,
        run("SELECT to_regclass('nereid.schema_versions') IS NOT NULL, count(*) FROM pg_catalog.pg_class "
            "WHERE relnamespace = to_regnamespace('nereid')",
            {}, Pace::kQuick));
    if (tables.front().integer(0) == 0) {
      if (tables.front().integer(1) > 0)
        return error(fmt::format("its schema \"nereid\" is another program's: {}", layout_.stranger),
                     Blame::kInput);
      return int64_t{0};
    }
    NEREID_TRY(const auto rows,
               run("SELECT version FROM nereid.schema_versions WHERE part = $1", {part}, Pace::kQuick));
    return rows.empty() ? int64_t{0} : rows.front().integer(0);
  };
  NEREID_TRY(int64_t version, found());
  if (version < schema) {
    NEREID_TRY_STATUS(transaction([&]() -> Status {
      NEREID_TRY_STATUS(guarded(kQuickSeconds, [&] {
        connection_->script(fmt::format("SELECT pg_advisory_xact_lock({}, {})", kLockClass, kSchemaLock));
      }));
      NEREID_TRY(version, found());  // another process may have been quicker
      return version < schema ? migrate(version) : ok_status();
    }));
  }
  if (version > schema)
    return input_error("the store {} has schema {}, this program knows {}: it was written by a newer one",
                       name(), version, schema);
  return ok_status();
}

Status PostgresDatabase::migrate(int64_t version) {
  const std::string part = layout_.part;
  const auto schema = static_cast<int64_t>(layout_.postgres.size());
  NEREID_TRY_STATUS(guarded(kQuickSeconds, [&] {
    // Asked first: a user without the right to make schemas may use one that is there.
    connection_->script(
        "DO $$ BEGIN IF to_regnamespace('nereid') IS NULL THEN CREATE SCHEMA nereid; END IF; END $$;"
        "CREATE TABLE IF NOT EXISTS nereid.schema_versions (part BYTEA PRIMARY KEY, version BIGINT NOT "
        "NULL)");
    for (int64_t from = version; from < schema; ++from)
      connection_->script(layout_.postgres[static_cast<size_t>(from)]);
  }));
  NEREID_TRY(
      [[maybe_unused]] const auto set,
      run("INSERT INTO nereid.schema_versions VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET version = "
          "excluded.version",
          {part, schema}, Pace::kQuick));
  return ok_status();
}

Result<Rows> PostgresDatabase::run(const std::string& sql, const std::vector<Value>& parameters, Pace pace) {
  if (in_transaction_) return run_once(sql, parameters, pace);
  Rows rows;
  NEREID_TRY_STATUS(persist([&]() -> Status {
    NEREID_TRY(rows, run_once(sql, parameters, pace));
    return ok_status();
  }));
  return rows;
}

Result<Rows> PostgresDatabase::run_once(const std::string& sql, const std::vector<Value>& parameters,
                                        Pace pace) {
  const double seconds = pace == Pace::kQuick ? kQuickSeconds : kLongSeconds;
  Rows rows;
  NEREID_TRY_STATUS(guarded(seconds, [&] {
    connection_->limit(seconds);
    rows = rows_of(connection_->execute(sql, parameters));
  }));
  return rows;
}

Status PostgresDatabase::transaction(const std::function<Status()>& work) {
  return persist([&]() -> Status {
    auto& transaction = connection_->transaction;
    NEREID_TRY_STATUS(
        guarded(kQuickSeconds, [&] { transaction = std::make_unique<pqxx::work>(connection_->server); }));
    in_transaction_ = true;
    Status done = work();
    in_transaction_ = false;
    const bool lost = lost_, slow = slow_;
    if (done.ok())
      return guarded(kQuickSeconds, [&] {
        transaction->commit();
        transaction.reset();
      });
    (void)guarded(kQuickSeconds, [&] { connection_->roll_back(); });
    lost_ = lost, slow_ = slow;
    return done;
  });
}

Result<std::string> PostgresDatabase::check() {
  std::string trouble;
  if (layout_.postgres_check == nullptr) return trouble;
  NEREID_TRY(const auto rows, run(layout_.postgres_check, {}, Pace::kLong));
  for (const Row& row : rows) trouble += (trouble.empty() ? "" : "; ") + row.text(0);
  return trouble;
}

Result<int64_t> PostgresDatabase::bytes() {
  NEREID_TRY(
      const auto rows,
      run("SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_catalog.pg_class WHERE "
          "relnamespace = to_regnamespace('nereid') AND relkind = 'r'",
          {}, Pace::kQuick));
  return rows.front().integer(0);
}

Status PostgresDatabase::persist(const std::function<Status()>& once) {
  if (pause_ > 0 && Clock::now() < next_try_) return trouble_;
  const Deadline deadline = Deadline::after(pause_ > 0 ? 0 : kPatience);
  Stopwatch watch;
  for (int tries = 1;; ++tries) {
    Status done = connection_ == nullptr ? connect() : ok_status();
    if (done.ok()) done = once();
    if (done.ok()) pause_ = 0;
    if (done.ok() || (!lost_ && !slow_)) return done;
    if (lost_) connection_.reset();
    if (slow_ || deadline.passed()) {
      trouble_ = done.error();
      if (tries > 1) trouble_.message += fmt::format(" ({} tries in {:.1f} s)", tries, watch.seconds());
      pause_ = std::min(std::max(kFirstPause, 2 * pause_), kMaxPause);
      next_try_ = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * pause_));
      return trouble_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(50 << std::min(tries, 4), 500)));
  }
}

Status PostgresDatabase::connect() {
  for (bool again = false;; again = true) {
    Stopwatch watch;
    std::string message;
    try {
      connection_ = std::make_unique<Connection>(address_.connection());
      const Status started = start_session();
      if (!started.ok()) connection_.reset();  // half a session
      return started;
    } catch (const std::exception& failure) {
      message = one_line(failure.what());
    }
    // A server that answers, and refuses twice, does not know this user, password or database; while it
    // starts or has no connection left it may accept later.
    lost_ = watch.seconds() > kRefusalSeconds || ::PQping(address_.connection().c_str()) != PQPING_OK ||
            message.find("too many clients") != std::string::npos ||
            message.find("connection slots") != std::string::npos;
    slow_ = false;
    if (lost_ || again) return error(message, lost_ ? Blame::kOurs : Blame::kInput);
  }
}

Status PostgresDatabase::start_session() {
  NEREID_TRY_STATUS(guarded(kQuickSeconds, [&] {
    connection_->script(
        "SET search_path = nereid; SET extra_float_digits = 1; SET standard_conforming_strings = on");
    connection_->limit(kQuickSeconds);
  }));
  return use_ == Use::kExclusive ? lock_exclusively() : ok_status();
}

// The lock may still be held by a session of this program that is about to end: it is retried.
Status PostgresDatabase::lock_exclusively() {
  const Deadline deadline = Deadline::after(kPatience);
  for (;;) {
    NEREID_TRY(const auto rows, run_once("SELECT pg_try_advisory_lock($1::int, hashtext($2::text))",
                                         {int64_t{kLockClass}, std::string(layout_.part)}, Pace::kQuick));
    if (rows.front().integer(0) != 0) return ok_status();
    if (deadline.passed()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return input_error("the store {} is used by another server: expected one that is not (--store)", name());
}

Status PostgresDatabase::guarded(double seconds, const std::function<void()>& action) {
  lost_ = slow_ = false;
  if (!connection_->server.is_open()) {
    lost_ = true;
    return error("the connection is lost");
  }
  std::string message;
  Blame blame = Blame::kOurs;
  watchdog_.arm(connection_->server.sock(), seconds);
  try {
    action();
  } catch (const pqxx::insufficient_privilege& failure) {
    message = one_line(failure.what()), blame = Blame::kInput;
  } catch (const pqxx::data_exception& failure) {
    message = one_line(failure.what()), blame = Blame::kInput;
  } catch (const pqxx::sql_error& failure) {
    const std::string state = failure.sqlstate();
    message = one_line(failure.what());
    lost_ = begins_with_any(state, {"08", "57P"});
    slow_ = state == "57014";
    // What the user may not do or see, a database that is read only.
    if (begins_with_any(state, {"42501", "25006", "28", "3D", "3F"})) blame = Blame::kInput;
  } catch (const std::exception& failure) {
    message = one_line(failure.what());
    lost_ = true;  // or rolled back by the server, for another transaction's sake
  }
  if (watchdog_.disarm()) {
    slow_ = lost_ = true;
    return error(fmt::format("no answer in {} s", seconds));
  }
  if (message.empty()) return ok_status();
  lost_ = lost_ || !connection_->server.is_open();
  return error(message, blame);
}

Error PostgresDatabase::error(const std::string& what, Blame blame) const {
  return Error{fmt::format("the store {}: {}", name(), address_.without_secrets(what)), blame};
}

}  // namespace nereid::store
