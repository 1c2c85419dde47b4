// The run file of reinforcement learning: what every run has, and [rl], [curriculum] and [sft_mix].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/train/rl/objective/curriculum.h"
#include "nereid/train/rl/objective/objective.h"
#include "nereid/train/run_file.h"

namespace nereid::train {

struct RlSettings {
  ObjectiveSettings objective;
  std::string tokenizer;  // a tokenizer.json; default: the model's own
  std::vector<std::string>
      tasks;  // a file of lines for each class, as `nereid synth -o FILE.jsonl` writes them
  std::vector<std::string> held_out;  // likewise, for pass@1
  int64_t held_out_tasks = 16;        // of a class, looked at each time
  int64_t prompts_per_step = 8;
  int64_t samples = 8;         // of each prompt: a group
  int64_t branches = 1;        // of these, so many go on from one plan
  int64_t turns = 1;           // answers in a conversation: one more after each that is wrong
  double turn_discount = 0.4;  // of what an answer's return takes from the next turn's
  int64_t max_tokens = 2048;   // of a sample
  int64_t sequences = 256;     // written at a time, at most
  int64_t updates = 1;         // optimizer steps on each step's rollouts
  double temperature = 1;
  std::optional<double> code_temperature;  // after the plan; default: the same
  double min_p = 0;  // tokens less than so many times as probable as the likeliest are not drawn
  // Steps between the weights that write rollouts and those that learn from them first: 0, or 1, where the
  // engine writes the next step's while these are judged. Default: 1, but 0 where the judge would use the
  // engine's GPU while it writes.
  std::optional<int64_t> staleness;
  double importance_limit = 2;    // of the weights of rl/importance.h
  std::string policy = "mostly";  // the judge's
  // False: an answer that is Disallowed by a rule, but would be Verified without its rules, is rewarded as if
  // it were. Figures of verdicts and pass@1 are those of the whole judge all the same.
  bool rule_reward = true;
  std::string judge_device = "auto";
  int64_t judge_gpu = -1;  // what rank 0's judge sees, rank r's r more; -1: the rank's own
  // Answers judged at a time, of each rank; 0: one a core, of all ranks together, but for two that feed a
  // GPU.
  int64_t judge_jobs = 0;
  int64_t trials = 3;        // of each answer on the task's own inputs
  bool fast_inputs = false;  // of other inputs, those that find the most
  // How answers come to their times, where the objective asks for them and there is a GPU. Together: one
  // judge, on the GPU, has both verdict and time. Apart: a CPU's replays have the verdict, while the engine
  // writes; what is Verified is timed afterwards, while the engine and the trainer stand still.
  enum class Times { kTogether, kApart } times = Times::kTogether;
  double timing_seconds = 0.1;  // for sampling an answer's times
  double time_limit = 30;       // seconds, of a judged replay
  // Once nine in ten of the programs that a step has judged have their verdicts, the others have so many
  // seconds more; then they are left out of their groups, and counted as `unjudged`. 0: all are waited for.
  double straggler_timeout_s = 0;
  // A run's folder: its rollouts' answers to the same tasks are written in place of what the model draws, to
  // measure throughput. Empty: none.
  std::string recorded_answers;
};

// Supervised data of earlier training, mixed into every update.
struct SftMixSettings {
  std::vector<std::string> train;  // folders that `nereid train data` wrote
  int64_t rows = 0;                // of data.sequence_length tokens, in each update, of all ranks together
  double weight = 1;               // of the mean loss over their targets, against the objective's 1
};

struct RlRun {
  RunFile run;
  RlSettings rl;
  std::optional<SftMixSettings> sft_mix;
  CurriculumSettings curriculum;
};
// `keys` gets every key that was looked up, also where the file has errors.
Result<RlRun> parse_rl_file(std::string_view text, const std::string& name,
                            std::vector<TomlKey>* keys = nullptr);

}  // namespace nereid::train
