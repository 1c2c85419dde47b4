// Accepts questions, has them judged, answers waiting requests. Knows nothing of HTTP.
//
//   accept -> TaskStore, FairQueue -> JudgeProcess -> TaskStore -> wait
//
// What is accepted is in the store before `accept` returns: a process that is killed judges it after its next
// start. Only ids are held in memory; lines are read when a judge takes them. For one thread, which `post`
// leads to.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/serve/fair_queue.h"
#include "nereid/serve/judge_process.h"
#include "nereid/serve/question.h"
#include "nereid/serve/statistics.h"
#include "nereid/serve/task_store.h"

namespace nereid::serve {

struct ServiceOptions {
  size_t queue = 1024;             // pairs that wait at most
  size_t per_client = 768;         // of one principal
  size_t jobs = 1;                 // pairs that one judge judges at a time
  int deaths = 3;                  // of the judge, under one pair, before that is a fault
  int errors = 2;                  // of the judge's own, likewise
  double keep = 7 * 86400;         // seconds that answers are kept
  std::string versions, hardware;  // for receipts
};

// One judge, or a fleet of them: where it runs and how.
struct JudgePlace {
  std::string name;  // "cpu", "cuda:0", "ray"
  JudgeSpec spec;
  size_t judges = 1;  // at most, of a fleet
};

// What came of a question.
struct Answered {
  std::optional<Json> verdict;  // nothing: a fault of ours
  std::string fault;
  Json receipt;
};

class Service {
 public:
  struct Refusal {
    int status = 503;
    std::string message;
    int retry_after = 1;  // seconds
  };
  using Post = std::function<void(std::function<void()>)>;
  // Judges what the store holds from before.
  static Result<std::unique_ptr<Service>> start(ServiceOptions options, std::unique_ptr<TaskStore> store,
                                                const std::vector<JudgePlace>& places, Post post);

  // All or none. A question that was asked before takes no place.
  std::optional<Refusal> accept(const std::vector<Question>& questions, const Client& client);
  // Calls `done` once, now or later: when `needed` of the ids are answered, or after `seconds`; nullopt of
  // those that are not, and of ids that are unknown.
  using Done = std::function<void(std::vector<std::optional<Answered>>)>;
  void wait(std::vector<std::string> ids, size_t needed, double seconds, Done done);
  enum class Stage { kUnknown, kWaiting, kUnderWay, kAnswered };
  Stage stage(const std::string& id);

  void tick();  // to be called a few times a second
  // No more is accepted. `give_up` ends waiting requests: this process will not answer them.
  void end() { ending_ = true; }
  void give_up();
  bool ending() const { return ending_; }
  bool idle() const { return pending_.empty(); }
  size_t unanswered() const { return pending_.size(); }
  bool healthy() const;  // a judge runs

  Statistics& statistics() { return statistics_; }
  Json status();          // for the page
  std::string metrics();  // for Prometheus

 private:
  struct Pending {
    Client client;
    double accepted = 0;
    int deaths = 0, errors = 0;
    bool under_way = false;
    std::vector<uint64_t> waits{};
  };
  struct Wait {
    std::vector<std::string> ids;
    size_t missing = 0;
    double until = 0;
    Done done;
  };
  struct Judge {
    std::string name;
    std::unique_ptr<JudgeProcess> process;
    size_t pairs = 2;  // that it has at a time
    // A fleet asks again by itself where its judges die or fail. Its last report; null until it runs.
    bool is_fleet = false;
    Json report{};
    uint64_t generation = 1;
    std::set<std::string> under_way;
    bool alone = false;  // a question that may have killed a judge before: it is judged alone
    bool lives = true;
    bool ready() const { return lives && (!is_fleet || !report.is_null()); }
    int64_t restarts = 0, verdicts = 0;
  };
  Service(ServiceOptions options, std::unique_ptr<TaskStore> store)
      : options_(std::move(options)), store_(std::move(store)) {}
  Status load();
  void dispatch();
  bool ask(Judge& judge, const std::string& id);
  void take_line(size_t judge, uint64_t generation, const std::string& line);
  void take_report(Judge& judge, const std::string& line);
  void take_death(size_t judge, uint64_t generation, const std::string& why);
  void take_start(size_t judge, uint64_t generation);
  void settle(const std::string& id, StoredTask::State state, const std::string& result);
  void save(const std::string& id, StoredTask::State state, const std::string& result);
  std::optional<Answered> find(const std::string& id);
  void fire(uint64_t number);
  void add_judges(const Judge& judge, Json& judges) const;
  std::string fleet_metrics() const;

  ServiceOptions options_;
  std::unique_ptr<TaskStore> store_;
  Statistics statistics_;
  FairQueue queue_;
  std::deque<std::string> suspects_;  // each to be judged alone
  std::map<std::string, Pending> pending_;
  std::map<uint64_t, Wait> waits_;
  uint64_t next_wait_ = 1;
  // Of a store that could not be written: tried again.
  std::map<std::string, std::pair<StoredTask::State, std::string>> unsaved_;
  bool ending_ = false;
  double last_prune_ = 0;
  std::vector<Judge> judges_;  // last: their threads end first
};

}  // namespace nereid::serve
