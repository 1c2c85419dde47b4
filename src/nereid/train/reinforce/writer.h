// Answers to tasks, written by the model as it is now.
#pragma once

#include <memory>

#include "nereid/engine/runner/runner.h"
#include "nereid/model/prompts.h"
#include "nereid/model/tokenizer.h"
#include "nereid/train/reinforce/rollouts.h"

namespace nereid::train {

// The sources of a file of lines, each an object with `code` (or `task`).
Result<std::vector<std::string>> read_tasks(const std::string& path);

struct AnswerWriterSettings {
  int64_t most_tokens = 2048;  // of an answer
  int64_t row_length = 4096;   // of prompt and answer
  int64_t together = 256;      // sequences
};

struct Sampling {
  int64_t samples = 1;
  double temperature = 1;  // 0: greedy
  uint64_t seed = 0;
};

struct DrawnAnswer {
  size_t prompt = 0;       // its number
  WrittenAnswer tokens;    // with the token that ended it
  std::string text;        // what the judge gets
  size_t plan_tokens = 0;  // up to and including </think>; 0 where there is none
  bool cut_off = false;    // it did not end by itself
};

class AnswerWriter {
 public:
  // `weights` may be changed in place between two calls; they and `device` outlive it.
  static Result<AnswerWriter> create(const model::Weights& weights, engine::Device& device,
                                     std::shared_ptr<const model::Tokenizer> tokenizer,
                                     model::Prompts prompts, const AnswerWriterSettings& settings);
  // Of each task's source so many answers, in the order of tasks. A prompt that leaves no room for an answer
  // is an error that says its length.
  Result<std::vector<DrawnAnswer>> write(const std::vector<std::string>& tasks, const Sampling& sampling);

 private:
  AnswerWriter(std::shared_ptr<const model::Tokenizer> tokenizer, model::Prompts prompts,
               const AnswerWriterSettings& settings)
      : tokenizer_(std::move(tokenizer)), prompts_(std::move(prompts)), settings_(settings) {}
  Result<std::vector<int64_t>> prompt_of(const std::string& source, model::Encoder& encoder) const;
  void finish(DrawnAnswer& answer) const;

  std::shared_ptr<const model::Tokenizer> tokenizer_;
  model::Prompts prompts_;
  AnswerWriterSettings settings_;
  std::unique_ptr<engine::Runner> runner_;
  model::TokenId end_ = 0;
};

}  // namespace nereid::train
