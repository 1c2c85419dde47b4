// What was accepted and what came of it, in one SQLite file or PostgreSQL database: nothing accepted is lost
// to a kill -9, and the same question costs once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/serve/fair_queue.h"
#include "nereid/store/database.h"

namespace nereid::serve {

struct StoredTask {
  enum class State {
    kWaiting,   // accepted: to be judged
    kAnswered,  // `result` is the verdict's JSON
    kFault,     // `result` says what failed on our side; asking again judges again
  };
  std::string id;
  Client client;
  State state = State::kWaiting;
  std::string line;     // for the judge; empty once it is answered
  std::string receipt;  // JSON: what was asked
  std::string result{};
  double accepted = 0, answered = 0;  // seconds since 1970
};

// For one thread. One process at a time uses a file or a database: `open` of a second one is an error.
class TaskStore {
 public:
  // A path or a postgresql:// URI (`store::Address`).
  static Result<std::unique_ptr<TaskStore>> open(const std::string& address);

  // All or nothing. An id that is here already stays as it is, but for a fault, which waits again.
  Status accept(const std::vector<StoredTask>& tasks);
  Result<std::optional<StoredTask>> find(const std::string& id);  // without its line
  Result<std::string> line(const std::string& id);
  Status settle(const std::string& id, StoredTask::State state, const std::string& result, double answered);
  // Those that wait, without their lines, in the order in which they came.
  Result<std::vector<StoredTask>> waiting();
  // The newest that are answered, at most so many.
  Result<std::vector<StoredTask>> latest(int64_t most);
  // Removes what was answered before `before`; returns how many.
  Result<int64_t> prune(double before);

 private:
  explicit TaskStore(std::unique_ptr<store::Database> database) : database_(std::move(database)) {}
  Result<std::vector<StoredTask>> select(const std::string& sql, int64_t most);

  std::unique_ptr<store::Database> database_;
};

}  // namespace nereid::serve
