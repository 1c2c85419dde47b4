// What a search asks of the outside: to trace a reference, to judge a proposal, to ask a proposer; each asked
// once for the same question, where there is a store.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>

#include "nereid/proposers/proposer.h"
#include "nereid/search/judged.h"
#include "nereid/search/timeline.h"
#include "nereid/store/store.h"
#include "nereid/verify/stages/pipeline.h"

namespace nereid::search {

// A reference that was traced: what everything else is about. Does not move: `facts` points into `trace`.
struct Task {
  std::string name{}, source{};
  std::string hash{};  // SHA-256 of the source
  trace::Trace trace{};
  verify::TraceAnalysis facts{};
  Work work{};  // of the reference
  // Who wrote and who judged when, since it was traced; that of the whole program for a subgraph of one.
  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
};

struct EvaluatorOptions {
  verify::Settings settings{};
  store::Store* store = nullptr;  // null: nothing is remembered
  bool fresh = false;             // look nothing up; what is found out is kept all the same
  std::string hardware = "cpu", versions{};
  int judged_at_once = 0;  // candidates; 0: as many as are requested
};

// Thread-safe. Trouble with the store is no reason to fail: it is reported once, in `trouble`.
class Evaluator {
 public:
  Evaluator(verify::VerifierBackends backends, EvaluatorOptions options);

  // An Error (blamed on the input) where it cannot be traced, with the reason.
  // `timeline`: the one to be used, where it does not have its own.
  Result<std::unique_ptr<const Task>> trace(const std::string& name, const std::string& source,
                                            Deadline deadline, std::shared_ptr<Timeline> timeline = {});
  // The task with another trace that does the same.
  Result<std::unique_ptr<const Task>> with_trace(const Task& task, trace::Trace trace);
  // Broken off at the deadline. The same code is judged once, whatever is said around it: a model's samples
  // often differ in their words alone.
  Judged judge(const Task& task, const std::string& proposer, const proposers::Proposal& proposal,
               Deadline deadline);
  // How long it takes, whatever does the work (`hybrid`), after few comparisons: of what is only compared
  // with.
  Judged measure(const Task& task, const std::string& proposer, const proposers::Proposal& proposal,
                 Deadline deadline);
  // A candidate's trace and, where there is a GPU, the machine code of its kernels by trace::Kernel::hash, as
  // JSON: for its callers. An Error (blamed on the input) says why there is none.
  struct Candidate {
    trace::Trace trace{};
    std::map<std::string, std::string> kernels{};
  };
  // The trace of a file with this class, which gets the task's inputs unless it is a Model. An Error (blamed
  // on the input) says why there is none.
  Result<trace::Trace> trace_of(const Task& task, const std::string& source, const std::string& class_name,
                                Deadline deadline = Deadline::never());
  Result<Candidate> candidate(const Task& task, const std::string& source, Deadline deadline);
  Result<proposers::Answer> ask(proposers::Proposer& proposer, const Task& task, int sample,
                                const std::vector<proposers::Attempt>& attempts, Deadline deadline,
                                const std::atomic<bool>* cancelled = nullptr);
  // Samples of the first answer: first those that are remembered, then the others as they come. `round` and
  // `cancelled`: as in proposers::Request.
  std::unique_ptr<proposers::Answers> request_samples(proposers::Proposer& proposer, const Task& task,
                                                      const std::vector<int>& samples, int round = 0,
                                                      bool speculate = false,
                                                      const std::atomic<bool>* cancelled = nullptr);

  // What is stored next to these; nothing where there is no store, or it is to be computed anew.
  std::optional<store::Record> look_up(const store::Key& key);
  void keep(const store::Record& record, std::initializer_list<std::string_view> texts);

  const verify::Settings& settings() const { return judge_.settings(); }
  const EvaluatorOptions& options() const { return options_; }
  std::string trouble() const;

 private:
  class SeveralAnswers;
  store::Key proposal_key(const proposers::Proposer& proposer, const Task& task, int sample,
                          const std::vector<proposers::Attempt>& attempts, int round = 0,
                          bool speculate = false) const;
  std::optional<proposers::Answer> remembered(const store::Key& key);
  void remember(const store::Key& key, const Task& task, const proposers::Answer& answer);
  Judged judge_by(verify::Judge& judge, const Task& task, const std::string& proposer,
                  const proposers::Proposal& proposal, Deadline deadline);
  Result<tracer::TraceAnswer> trace_candidate(const Task& task, const std::string& source);
  std::optional<Work> work_of_candidate(const Task& task, const std::string& source);
  void note(const Error& error);

  verify::VerifierBackends backends_;
  EvaluatorOptions options_;
  verify::Judge judge_, measure_;
  std::counting_semaphore<> turns_;         // to judge
  mutable std::mutex mutex_;                // guards what follows
  std::map<std::string, Judged> judged_{};  // by task, question and code
  std::string trouble_;
};

}  // namespace nereid::search
