// A language model of ours as a process of its own (`nereid-lm propose`): loaded once, asked by many, who are
// one batch to it. This program links no libtorch.
//
// It ends with us, however we end: it reads from us, and an end of that is its own. What it loses, it loses
// for everybody who waits: an Error with its last words.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/result.h"
#include "nereid/lm/speculation/branch_policy.h"
#include "nereid/proposers/chat.h"

namespace nereid::proposers {

struct Question {
  std::vector<Message> messages{};
  // Of each answer: what is written goes on from there, and starts with it. Sample s has the s-th, and is
  // greedy; those for which there is none have the first.
  std::vector<std::string> prefills{};
  std::vector<int> samples{};                    // sample 0 is greedy
  uint64_t seed = 0;                             // each sample has its own, made of it
  std::optional<double> temperature{}, top_p{};  // else the checkpoint's own word, else 1
  int64_t max_tokens = 0;                        // of a sample; 0: as many as the model's context has
  // Whether samples go on from the first one's plan and kernels, and when they begin; an answer ends with its
  // program then.
  lm::BranchStart branches = lm::BranchStart::kNone;
  int64_t enough = 0;  // so many samples that are done end the others; 0: all are wanted
};

struct Written {
  int sample = 0;
  std::string text{};
  std::string refused{};  // where there is no text: why nothing is written for this question
  bool whole = false;     // it ended by itself
  int64_t tokens = 0, prompt_tokens = 0;
  double seconds = 0;  // since the question
  // With branches: when it began, what it goes on from ("plan", "kernel"), and how many tokens of the first
  // sample it has (of that itself: all).
  double from = 0;
  std::string branch{};
  int64_t shared = 0;
};

class ModelProcess {
 public:
  // What is written for one question, as it comes; nothing more is generated when this goes. One thread's.
  class Answers {
   public:
    Answers(const Answers&) = delete;
    Answers& operator=(const Answers&) = delete;
    ~Answers();
    // Nothing where all samples have come. Of several that are there the first, or (`newest`) that with the
    // most of the first sample (lm::newest). An Error: the process is lost (blamed on the input where its
    // model cannot be loaded), there was an interrupt, the deadline has passed, or `cancelled`
    // (Request::cancelled) is true.
    Result<std::optional<Written>> next(Deadline deadline, bool newest = false,
                                        const std::atomic<bool>* cancelled = nullptr);

   private:
    friend class ModelProcess;
    Answers(ModelProcess& process, int64_t id) : process_(process), id_(id) {}
    ModelProcess& process_;
    const int64_t id_;
  };

  // Starts the program (its path first) in the background, and returns at once. Where it shares a GPU with
  // what must have it alone at times: `turn` waits for a turn and gives it, which lasts as long as what it
  // returned, and the process (started with --turns) computes in turns alone.
  static Result<std::unique_ptr<ModelProcess>> start(std::vector<std::string> words,
                                                     std::function<std::shared_ptr<void>()> turn = {});
  ~ModelProcess();

  // Thread-safe; answers go before this does.
  std::unique_ptr<Answers> ask(const Question& question);

  pid_t pid() const { return pid_; }

  // What it writes right now, all questions together.
  struct Pace {
    int64_t tokens = 0;   // since it was started
    double a_second = 0;  // of late; 0 where it writes nothing
  };
  Pace pace() const;

 private:
  struct Waiting {
    std::vector<Written> written{};  // not yet taken
    bool over = false;
  };

  ModelProcess(pid_t pid, Fd talk, Fd errors, std::function<std::shared_ptr<void>()> turn);
  void read();
  void schedule_turns();
  bool asked() const;  // with mutex_ held: a waiter waits for what is not written
  Status take(const std::string& line);
  void send(const std::string& line);

  const pid_t pid_;
  KilledAtExit killed_at_exit_;
  const Fd talk_, errors_;
  std::string last_words_;  // the reader's
  std::mutex sending_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<int64_t, Waiting> waiting_;
  int64_t next_id_ = 0;
  std::optional<Error> lost_;
  Pace pace_;
  Stopwatch paced_;
  bool holds_ = true, ends_ = false;  // of a process that has turns: it waits for the next
  const std::function<std::shared_ptr<void>()> turn_;
  std::thread reader_, turns_;
};

}  // namespace nereid::proposers
