// Answers to tasks, written by the model as it is now.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "nereid/lm/chat/chat.h"
#include "nereid/lm/chat/prompts.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/engine/runner/runner.h"
#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/train/rl/rollouts.h"
#include "nereid/train/rl/tasks.h"

namespace nereid::train {

struct AnswerWriterSettings {
  int64_t max_tokens = 2048;  // of an answer
  int64_t row_length = 4096;  // of prompt and answer
  int64_t together = 256;     // sequences
  lm::ChatTemplate chat{};    // that of the model
};

struct Sampling {
  int64_t samples = 1;
  // So many samples in a row go on from the plan of the first of them; 1: each has its own. Where that ends
  // without </think> the others begin anew. Divides `samples`.
  int64_t branches = 1;
  double temperature = 1;                    // 0: greedy
  std::optional<double> code_temperature{};  // after the plan, if it is another
  double min_p = 0;                          // as the engine's
  uint64_t seed = 0;
  bool interruptible = true;  // Ctrl-C ends it at once, as an error
};

// An answer that is written in place of a drawn one.
struct GivenAnswer {
  std::string text;        // as DrawnAnswer has it
  size_t plan_tokens = 0;  // where a token for </think> goes that the text has not; 0: nowhere
  bool cut_off = false;    // it does not end by itself
};

// A task to be answered. Its number seeds its samples' random numbers, whatever else is in the batch.
struct Prompt {
  size_t number = 0;
  Task task;
  std::vector<lm::WrongAnswer> wrong{};  // earlier turns of this conversation
  std::vector<GivenAnswer> given{};      // what its samples are, in turn; empty: they are drawn
};

struct DrawnAnswer {
  size_t prompt = 0;                   // its number
  size_t sample = 0, turn = 0;         // which conversation of the prompt's, and which answer there
  WrittenAnswer tokens;                // with the token that ended it
  std::vector<float> engine_logprobs;  // of the answer's tokens, at temperature 1, as the engine rounds
  std::string text;                    // what the judge gets: with what it begins with
  size_t plan_tokens = 0;              // up to and including </think>; 0 where there is none
  bool cut_off = false;                // it did not end by itself
};

// Of an answer's tokens those up to and including `end_of_plan`; 0 where it is not among them.
size_t plan_length(std::span<const int32_t> answer, lm::TokenId end_of_plan);

// What a model is asked, and what its tokens say.
class AnswerFormat {
 public:
  // `row_length`: of prompt and answer. The tokenizer has the token that ends the template's messages.
  static Result<AnswerFormat> create(std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Prompts prompts,
                                     int64_t row_length, const lm::ChatTemplate& chat);
  // A prompt that leaves no room for an answer is an error that says its length. Later turns begin by
  // themselves, without a prefill.
  Result<WrittenAnswer> prompt_of(const Prompt& prompt) const;
  // Whether there is room for an answer of so many tokens.
  Result<bool> has_room(const Prompt& prompt, size_t tokens) const;
  // The tokens of a given answer behind a prompt, the token that ends it included.
  Result<std::vector<int64_t>> tokens_of(const GivenAnswer& given, const WrittenAnswer& prompt) const;
  // What follows from an answer's tokens: text, plan, whether it was cut off.
  void finish(DrawnAnswer& answer) const;
  // An error (blamed on the input) where repair.md is empty.
  Status can_repair() const;
  lm::TokenId end_token() const { return end_; }
  std::optional<lm::TokenId> end_of_plan() const { return end_of_plan_; }  // none: </think> is several tokens

 private:
  Result<std::vector<lm::TokenId>> question_of(const Prompt& prompt) const;
  AnswerFormat(std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Prompts prompts, int64_t row_length,
               lm::ChatTemplate chat)
      : tokenizer_(std::move(tokenizer)),
        prompts_(std::move(prompts)),
        row_length_(row_length),
        chat_(std::move(chat)) {}

  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  lm::Prompts prompts_;
  int64_t row_length_;
  lm::ChatTemplate chat_;
  lm::TokenId end_ = 0;
  std::optional<lm::TokenId> end_of_plan_;
};

class AnswerWriter {
 public:
  // `weights` may be changed in place between two calls; they and `device` outlive it.
  static Result<AnswerWriter> create(const lm::Weights& weights, lm::Device& device,
                                     std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Prompts prompts,
                                     const AnswerWriterSettings& settings);
  // Of each prompt so many answers, in the order of prompts; `on_written` is called with each one's index as
  // soon as it is whole. Keys and values of what prompts begin with are kept until the next call whose
  // prompts are first turns; the weights may be changed before such a call alone.
  using AnswerCallback = std::function<void(size_t index, const DrawnAnswer& answer)>;
  Result<std::vector<DrawnAnswer>> write(const std::vector<Prompt>& prompts, const Sampling& sampling,
                                         const AnswerCallback& on_written = {});
  void finish(DrawnAnswer& answer) const { format_.finish(answer); }
  const AnswerFormat& format() const { return format_; }

 private:
  AnswerWriter(AnswerFormat format, const AnswerWriterSettings& settings)
      : format_(std::move(format)), settings_(settings) {}

  AnswerFormat format_;
  AnswerWriterSettings settings_;
  std::unique_ptr<lm::Runner> runner_;
  std::unique_ptr<lm::Generation> generation_;  // of runner_
};

}  // namespace nereid::train
