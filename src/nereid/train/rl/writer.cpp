#include "nereid/train/rl/writer.h"

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::train {
namespace {

constexpr std::string_view kEndOfPlan = "</think>";
constexpr int64_t kBlockSize = 16;
// Ends what an error leaves of its requests: the generation outlives them. Of those that are over it is
// nothing.
struct CancelledAtEnd {
  lm::Generation& generation;
  std::vector<size_t> requests{};
  ~CancelledAtEnd() {
    for (const size_t request : requests) generation.cancel(request);
  }
};

constexpr double kCacheShare =
    0.5;  // of the memory that weights and optimizer leave: the rest is for learning

}  // namespace

Result<AnswerFormat> AnswerFormat::create(std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Prompts prompts,
                                          int64_t row_length, const lm::ChatTemplate& chat) {
  AnswerFormat format(std::move(tokenizer), std::move(prompts), row_length, chat);
  const auto end = format.tokenizer_->find(chat.end_of_message());
  if (!end)
    return input_error("the tokenizer has no {}, which ends a message of the checkpoint's chat template",
                       chat.end_of_message());
  format.end_ = *end;
  format.end_of_plan_ = format.tokenizer_->find(kEndOfPlan);
  return format;
}

Status AnswerFormat::can_repair() const {
  if (!prompts_.repair.empty()) return ok_status();
  return input_error(
      "rl.turns: expected 1 for a model whose prompts/repair.md is empty, or a repair.md with "
      "{{{{evidence}}}}");
}

Result<std::vector<lm::TokenId>> AnswerFormat::question_of(const Prompt& prompt) const {
  lm::Encoder encoder(tokenizer_);
  NEREID_TRY(const auto messages, prompts_.ask_again("model.py", prompt.task.source, prompt.wrong));
  NEREID_TRY(const std::string text, lm::render_chat(chat_, messages));
  std::vector<lm::TokenId> ids;
  NEREID_TRY_STATUS(encoder.encode(text, {.add_special = false}, ids));
  return ids;
}

Result<bool> AnswerFormat::has_room(const Prompt& prompt, size_t tokens) const {
  NEREID_TRY(const auto ids, question_of(prompt));
  return std::ssize(ids) + static_cast<int64_t>(tokens) <= row_length_;
}

Result<WrittenAnswer> AnswerFormat::prompt_of(const Prompt& prompt) const {
  lm::Encoder encoder(tokenizer_);
  NEREID_TRY(auto ids, question_of(prompt));
  std::vector<lm::TokenId> begun;
  if (prompt.wrong.empty()) {
    NEREID_TRY(const std::string prefill, prompts_.prefill_for(prompt.task.forward));
    NEREID_TRY_STATUS(encoder.encode(prefill, {.add_special = false}, begun));
  }
  ids.insert(ids.end(), begun.begin(), begun.end());
  if (std::ssize(ids) >= row_length_)
    return input_error(
        "a task's prompt has {} tokens, and data.sequence_length ({}) leaves no room for an answer",
        ids.size(), row_length_);
  return WrittenAnswer{.tokens = {ids.begin(), ids.end()}, .prompt = ids.size(), .begun = begun.size()};
}

Result<AnswerWriter> AnswerWriter::create(const lm::Weights& weights, lm::Device& device,
                                          std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Prompts prompts,
                                          const AnswerWriterSettings& settings) {
  lm::RunnerOptions options{.block_size = kBlockSize, .memory_share = kCacheShare};
  options.most_tokens = std::min(settings.row_length, weights.config.max_position_embeddings);
  NEREID_TRY(auto format, AnswerFormat::create(std::move(tokenizer), std::move(prompts), options.most_tokens,
                                               settings.chat));
  AnswerWriter writer(std::move(format), settings);
  options.most_blocks = settings.together * ((options.most_tokens + kBlockSize - 1) / kBlockSize) + 1;
  if (weights.flat.is_cuda()) options.recorded_sizes = lm::recorded_sizes_up_to(settings.together);
  NEREID_TRY(writer.runner_, lm::Runner::create(weights, device, options));
  writer.generation_ = std::make_unique<lm::Generation>(
      *writer.runner_, lm::GenerationOptions{.most_sequences = settings.together, .most_step_tokens = 8192});
  return writer;
}

Result<std::vector<DrawnAnswer>> AnswerWriter::write(const std::vector<Prompt>& prompts,
                                                     const Sampling& sampling, const OnWritten& on_written) {
  if (sampling.code_temperature && !format_.end_of_plan())
    return input_error("rl.code_temperature: expected a tokenizer with {} as one token", kEndOfPlan);
  const c10::NoGradGuard no_gradients;
  lm::Generation& generation = *generation_;
  if (std::ranges::all_of(prompts, [](const Prompt& asked) { return asked.wrong.empty(); }))
    generation.weights_changed();
  std::vector<DrawnAnswer> answers;
  CancelledAtEnd begun{.generation = generation};
  std::vector<size_t>& requests = begun.requests;
  for (const Prompt& asked : prompts) {
    DrawnAnswer answer{.prompt = asked.number, .tokens = {}, .engine_logprobs = {}, .text = {}};
    NEREID_TRY(answer.tokens, format_.prompt_of(asked));
    for (int64_t sample = 0; sample < sampling.samples; ++sample) {
      answer.sample = static_cast<size_t>(sample);
      answers.push_back(answer);
    }
    const auto& prompt = answer.tokens.tokens;
    lm::GenerationRequest request{.prompt = {prompt.begin(), prompt.end()}, .samples = sampling.samples};
    request.most_new =
        std::min(settings_.most_tokens, runner_->options().most_tokens - std::ssize(request.prompt));
    request.draw = {.temperature = sampling.temperature,
                    .min_p = sampling.min_p,
                    .seed = sampling.seed * 1'000'003 + asked.number};
    if (sampling.code_temperature) {
      request.turning_token = static_cast<int64_t>(*format_.end_of_plan());
      request.turned_temperature = *sampling.code_temperature;
    }
    request.end_tokens = {static_cast<int64_t>(format_.end_token())};
    NEREID_TRY(requests.emplace_back(), generation.add(std::move(request)));
  }
  while (!generation.idle()) {
    if (sampling.interruptible && interrupted()) return Error{"interrupted", Blame::kInterrupted};
    generation.step([&](const lm::Token& token) {
      const size_t index = (token.request - requests.front()) * static_cast<size_t>(sampling.samples) +
                           static_cast<size_t>(token.sample);
      DrawnAnswer& answer = answers[index];
      answer.tokens.tokens.push_back(static_cast<int32_t>(token.token));
      answer.engine_logprobs.push_back(token.logprob);
      if (!token.last) return;
      format_.finish(answer);
      if (on_written) on_written(index, answer);
    });
  }
  return answers;
}

size_t plan_length(std::span<const int32_t> answer, lm::TokenId end_of_plan) {
  const auto found = std::ranges::find(answer, static_cast<int32_t>(end_of_plan));
  return found == answer.end() ? 0 : static_cast<size_t>(found - answer.begin()) + 1;
}

void AnswerFormat::finish(DrawnAnswer& answer) const {
  const auto& tokens = answer.tokens.tokens;
  answer.text.clear();
  // As a token: where it is a special one, as the small model's is, the text has it not.
  answer.plan_tokens =
      end_of_plan_ ? plan_length(std::span(tokens).subspan(answer.tokens.prompt), *end_of_plan_) : 0;
  answer.cut_off = tokens.back() != static_cast<int32_t>(end_);
  lm::StreamDecoder decoder(tokenizer_, /*skip_special=*/true);
  for (size_t t = answer.tokens.prompt - answer.tokens.begun; t < tokens.size(); ++t) {
    const size_t from = answer.text.size() - std::min(answer.text.size(), kEndOfPlan.size());
    answer.text += decoder.push(static_cast<lm::TokenId>(tokens[t]));
    if (!end_of_plan_ && t >= answer.tokens.prompt && answer.plan_tokens == 0 &&
        answer.text.find(kEndOfPlan, from) != std::string::npos)
      answer.plan_tokens = t + 1 - answer.tokens.prompt;
  }
  answer.text += decoder.finish();
}

}  // namespace nereid::train
