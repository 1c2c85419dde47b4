// What was found out before: verdicts, times, proposals and runs, in one SQLite file or PostgreSQL database
// that any number of processes may read and write at once.
//
// Every record is found by what its answer depends on (`Key`): the task, what was asked about it, the
// hardware and the versions. A record is written whole or not at all, also where its writer is killed. Long
// texts (sources) are kept once each, by content.
//
//   NEREID_TRY(auto store, Store::open(Store::default_address()));
//   NEREID_TRY(const auto known, store->find(key));
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/store/database.h"

namespace nereid::store {

enum class Kind { kVerdict, kTime, kProposal, kRun };
std::string_view to_string(Kind kind);  // "verdict", "time", "proposal", "run"
std::optional<Kind> kind_from_string(std::string_view name);

struct Key {
  Kind kind = Kind::kVerdict;
  std::string task;      // SHA-256 of the reference's source; empty for a run of many
  std::string subject;   // what it is about: SHA-256 of a candidate, a proposer's or a baseline's name
  std::string question;  // all else that the answer depends on, in words that are equal when it is
  std::string hardware;  // "cpu", or a GPU's name
  std::string versions;  // of this program, torch and triton

  std::string hash() const;  // 64 hexadecimal digits
};

struct Record {
  Key key;
  std::string state{};                   // the verdict's kind, a proposal's candidate, or a run's state
  std::optional<double> milliseconds{};  // of a timed candidate
  std::string document{};                // JSON: all there is to say
  int64_t made = 0;                      // seconds since 1970; 0 in `put`: now
};

// Which records. Empty fields do not matter; `task` and `key` match by their beginning.
struct Filter {
  std::optional<Kind> kind{};
  std::string key{}, task{}, state{}, subject{};
  std::string other_versions_than{};
  std::optional<int64_t> made_before{};  // seconds since 1970
  int64_t most = 1000;                   // newest first; of `list` alone
};

// Thread-safe. Not to be used in a forked child.
class Store {
 public:
  // $NEREID_STORE, else $XDG_DATA_HOME/nereid/store.db, else ~/.local/share/nereid/store.db.
  static std::string default_address();
  // A path or a postgresql:// URI (`Address`). Makes the tables, and a file's folder, where they are not
  // there. An error (blamed on the input) where it is no store, or a newer program's.
  static Result<std::unique_ptr<Store>> open(const std::string& address);

  // Replaces what was there for this key.
  Status put(const Record& record);
  Result<std::optional<Record>> find(const Key& key);
  Result<std::vector<Record>> list(const Filter& filter);
  Result<int64_t> count(const Filter& filter);
  // Removes these records, then texts that no record names; returns how many records went. A file is written
  // anew, smaller.
  Result<int64_t> prune(const Filter& filter);

  // A text by content. `keep_text` returns its SHA-256.
  Result<std::string> keep_text(std::string_view text);
  Result<std::optional<std::string>> text(const std::string& hash);

  // SQLite's own check of the whole file; in PostgreSQL that every record can be read and every text is what
  // its hash says. Empty where all is well.
  Result<std::string> check();
  Result<int64_t> bytes();
  // For people: the path, or the URI without a password.
  const std::string& name() const { return database_->name(); }
  static constexpr int kSchema = 1;

 private:
  explicit Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  std::mutex mutex_;
  std::unique_ptr<Database> database_;
};

}  // namespace nereid::store
