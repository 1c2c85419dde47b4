// Verdicts on answers, by a `nereid verify --batch -` of our own: nothing of an answer runs, or is parsed,
// where weights lie. The program stays over the steps, so that its workers are warm, and judges each answer
// as it comes.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/result.h"
#include "nereid/train/rl/objective/advantages.h"

namespace nereid::train {

struct JudgeSettings {
  std::string policy = "mostly", device = "auto";
  double time_limit = 30;    // seconds, of a replay
  bool times = false;        // ask for the speed, too
  bool rule_reward = true;   // false: what only a rule refuses counts as correct; its word stays
  int64_t trials = 3;        // on the task's own inputs
  int64_t jobs = 0;          // answers judged at a time; 0: one a core
  int64_t gpu = -1;          // the one that the judge sees; -1: those that we see
  bool fast_inputs = false;  // of other inputs, those that find the most
  uint64_t seed = 0;         // of everything random in it; 0: a fresh one
  // A clock: what it is given was Verified before, and is only timed. With `times` alone.
  bool time_only = false;
  std::filesystem::path
      traces{};  // a folder in which a judge leaves traces for the clock of the same seed; empty: none
  int64_t compile_for =
      0;  // of a CPU's judge: the architecture of the GPU that a clock will time on; 0: there is none
  double timing_seconds =
      0.1;  // for sampling the times of an answer, which ends sooner where the 95 % interval of its
  double timing_width = 0.02;  // speedup is so narrow
};

struct AnswerToJudge {
  std::string task;     // the reference's source
  std::string answer;   // as the model wrote it
  std::string trace{};  // for a clock: the digest of what was judged before
};

struct JudgedAnswer {
  verify::VerdictKind kind = verify::VerdictKind::kError;  // kError: no verdict and no reward
  std::string rule{};                                      // of the evidence
  std::string reason{};                                    // a sentence
  std::string feedback{};                                  // what it is repaired by (verify/feedback.h)
  std::string trace{};                                     // its digest, where the answer has one
  double seconds = 0;                                      // that the verdict took
  std::map<std::string, double> phases{};                  // where they went: verify::Verdict::phases
  std::optional<double> reference_ms{};                    // where it was timed
  Judged judged{};
};

class AnswerJudge {
 public:
  // Starts the program, which is warm some seconds later. What it says on stderr is appended to `log`.
  static Result<std::unique_ptr<AnswerJudge>> start(const Installation& installation,
                                                    const JudgeSettings& settings,
                                                    const std::filesystem::path& log);
  ~AnswerJudge();  // ends the program and its verdicts under way; idle, it leaves its workers warm where
                   // NEREID_KEEP_WARM says so

  // Returns at once. The number is what to wait for.
  size_t submit(AnswerToJudge answer);
  // Until the verdict is there; it is forgotten then. A program that dies, or says nothing for too long, is
  // started again and gets again what it had not answered; an answer under which it died three times, or
  // that it gave an Error of ours for twice, has the verdict "Error". An error: it cannot be started, or dies
  // whatever it is given; or an interrupt, where it may end this.
  Result<JudgedAnswer> wait(size_t number, bool interruptible = true);

  // The verdict, where it is there; it is forgotten then.
  std::optional<JudgedAnswer> take(size_t number);
  // Until a verdict comes, of whatever number, or for a moment. Errors as wait()'s.
  Status wait_for_any(bool interruptible = true);
  // Of these numbers what has no verdict has an "Error" now. The program may still be at it; its result is
  // dropped.
  void give_up(const std::vector<size_t>& numbers);

  int64_t restarts() const;  // so far

 private:
  struct Asked {
    AnswerToJudge answer;
    int deaths = 0, errors = 0;
  };
  AnswerJudge() = default;
  void work();
  Status start_program();
  void begin_shutdown();
  void end_program();
  Status died();
  void fill();
  bool exchange();
  void take_line(std::string_view line);
  void settle(size_t number, JudgedAnswer judged);
  int deaths_under(size_t number) const;

  JudgeSettings settings_;
  std::vector<std::string> words_, environment_;
  std::filesystem::path log_;
  // The thread's own.
  int pid_ = -1;
  KilledAtExit killed_at_exit_;
  Fd to_, from_;
  std::string outgoing_, incoming_;
  std::map<size_t, size_t> under_way_;  // what the program has: its id for it, our number
  size_t sent_ = 0;
  int deaths_in_a_row_ = 0;
  // Of both sides.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Asked> asked_;
  std::deque<size_t> waiting_;  // numbers that the program does not have
  std::map<size_t, JudgedAnswer> judged_;
  std::optional<Error> failure_;
  size_t numbers_ = 0;
  int64_t restarts_ = 0;
  bool ending_ = false;
  Fd wake_;
  std::thread thread_;
};

// The environment in which a program sees the GPU alone that has this number among those that we see; -1: all
// of ours. Where there is none of that number it sees none.
std::vector<std::string> environment_with(std::vector<std::string> environment, int64_t gpu);

// One line of what the program wrote (with `verdict_without_rules`, where rules do not count); `where`
// names it in errors.
Result<std::pair<size_t, JudgedAnswer>> parse_judged(std::string_view line, const std::string& where);

}  // namespace nereid::train
