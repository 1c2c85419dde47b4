#include "nereid/train/rl/writer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::train {
namespace {

constexpr std::string_view kEndOfPlan = "</think>";
constexpr int64_t kBlockSize = 16;

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
  NEREID_TRY(const auto messages, prompts_.repair_messages("model.py", prompt.task.source, prompt.wrong));
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
  options.max_tokens = std::min(settings.row_length, weights.config.max_position_embeddings);
  NEREID_TRY(auto format, AnswerFormat::create(std::move(tokenizer), std::move(prompts), options.max_tokens,
                                               settings.chat));
  AnswerWriter writer(std::move(format), settings);
  options.max_blocks = settings.together * ((options.max_tokens + kBlockSize - 1) / kBlockSize) + 1;
  if (weights.flat.is_cuda()) options.recorded_sizes = lm::recorded_sizes_up_to(settings.together);
  NEREID_TRY(writer.runner_, lm::Runner::create(weights, device, options));
  writer.generation_ = std::make_unique<lm::Generation>(
      *writer.runner_, lm::GenerationOptions{.max_sequences = settings.together, .max_step_tokens = 8192});
  return writer;
}

namespace {

// The requests of one call, and which answers they write.
class Writing {
 public:
  Writing(lm::Generation& generation, const AnswerFormat& format, const Sampling& sampling)
      : generation_(generation), format_(format), sampling_(sampling) {}
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  // Ends what an error leaves of its requests: the generation outlives them. Of those that are over it is
  // nothing.
  ~Writing() {
    for (const auto& [request, indices] : indices_) generation_.cancel(request);
  }

  // Samples about a prompt, whose answers are added in their order.
  Status add(const Prompt& asked, DrawnAnswer answer, int64_t max_new) {
    lm::GenerationRequest usual;
    usual.max_new = max_new;
    usual.draw = {.temperature = sampling_.temperature,
                  .min_p = sampling_.min_p,
                  .seed = sampling_.seed * 1'000'003 + asked.number};
    if (sampling_.code_temperature) {
      usual.turning_token = static_cast<int64_t>(*format_.end_of_plan());
      usual.turned_temperature = *sampling_.code_temperature;
    }
    usual.end_tokens = {static_cast<int64_t>(format_.end_token())};
    std::vector<std::vector<int64_t>> given;
    for (const GivenAnswer& one : asked.given) {
      NEREID_TRY(given.emplace_back(), format_.tokens_of(one, answer.tokens));
    }
    std::vector<size_t> first;
    for (int64_t sample = 0; sample < sampling_.samples; ++sample) {
      if (sample % sampling_.branches == 0) first.push_back(answers.size());
      answer.sample = static_cast<size_t>(sample);
      answers.push_back(answer);
      auto& own = usual_.emplace_back(usual);
      if (given.empty()) continue;
      own.given = {given[static_cast<size_t>(sample) % given.size()]};
    }
    return begin(std::move(first));
  }

  // A token of a sample; its answer's index where that is whole.
  std::optional<size_t> take(const lm::Token& token) {
    const size_t index = indices_.at(token.request)[static_cast<size_t>(token.sample)];
    DrawnAnswer& answer = answers[index];
    answer.tokens.tokens.push_back(static_cast<int32_t>(token.token));
    answer.engine_logprobs.push_back(token.logprob);
    const bool leads = answer.sample % static_cast<size_t>(sampling_.branches) == 0;
    if (sampling_.branches > 1 && leads && !planned_.contains(index)) {
      const bool planned = static_cast<lm::TokenId>(token.token) == format_.end_of_plan();
      if (planned || token.last) {
        planned_.insert(index);
        std::vector<size_t> others(static_cast<size_t>(sampling_.branches) - 1);
        std::iota(others.begin(), others.end(), index + 1);
        const Status begun = planned && !token.last ? fork(token, index, others) : begin(others);
        if (!begun.ok() && trouble_.ok()) trouble_ = begun;
      }
    }
    if (!token.last) return std::nullopt;
    format_.finish(answer);
    return index;
  }

  const Status& trouble() const { return trouble_; }

  std::vector<DrawnAnswer> answers;

 private:
  // Answers to one prompt, from it.
  Status begin(std::vector<size_t> indices) {
    const auto& prompt = answers[indices.front()].tokens;
    auto request = request_of(indices);
    request.prompt.assign(prompt.tokens.begin(),
                          prompt.tokens.begin() + static_cast<ptrdiff_t>(prompt.prompt));
    NEREID_TRY(const size_t number, generation_.add(std::move(request)));
    indices_.emplace(number, std::move(indices));
    return ok_status();
  }

  // Answers that go on from what the sample of this token has written.
  Status fork(const lm::Token& token, size_t index, const std::vector<size_t>& others) {
    const DrawnAnswer& trunk = answers[index];
    const auto drawn = std::ssize(trunk.engine_logprobs);
    auto request = request_of(others);
    request.max_new -= drawn;
    NEREID_TRY(const size_t number, generation_.fork(token.request, token.sample, drawn, std::move(request)));
    for (const size_t other : others) {
      answers[other].tokens.tokens = trunk.tokens.tokens;
      answers[other].engine_logprobs = trunk.engine_logprobs;
    }
    indices_.emplace(number, others);
    return ok_status();
  }

  // Each sample has its own seed, whatever request it is in.
  lm::GenerationRequest request_of(const std::vector<size_t>& indices) const {
    lm::GenerationRequest request = usual_[indices.front()];
    request.samples = std::ssize(indices);
    for (const size_t index : indices) {
      auto& own = request.draws.emplace_back(request.draw);
      own.seed = lm::seed_of_sample(request.draw.seed, static_cast<int64_t>(answers[index].sample));
      if (!usual_[index].given.empty() && index != indices.front())
        request.given.push_back(usual_[index].given.front());
    }
    return request;
  }

  lm::Generation& generation_;
  const AnswerFormat& format_;
  const Sampling& sampling_;
  std::vector<lm::GenerationRequest> usual_;       // of each answer: all but prompt and samples
  std::map<size_t, std::vector<size_t>> indices_;  // by request: the answers of its samples
  std::set<size_t> planned_;                       // answers from which others have branched off
  Status trouble_ = ok_status();
};

}  // namespace

Result<std::vector<DrawnAnswer>> AnswerWriter::write(const std::vector<Prompt>& prompts,
                                                     const Sampling& sampling,
                                                     const AnswerCallback& on_written) {
  if ((sampling.code_temperature || sampling.branches > 1) && !format_.end_of_plan())
    return input_error("rl.{}: expected a tokenizer with {} as one token",
                       sampling.code_temperature ? "code_temperature" : "branches", kEndOfPlan);
  const c10::NoGradGuard no_gradients;
  lm::Generation& generation = *generation_;
  if (std::ranges::all_of(prompts, [](const Prompt& asked) { return asked.wrong.empty(); }))
    generation.weights_changed();
  Writing writing(generation, format_, sampling);
  for (const Prompt& asked : prompts) {
    DrawnAnswer answer{.prompt = asked.number, .tokens = {}, .engine_logprobs = {}, .text = {}};
    NEREID_TRY(answer.tokens, format_.prompt_of(asked));
    const int64_t room = runner_->options().max_tokens - std::ssize(answer.tokens.tokens);
    NEREID_TRY_STATUS(writing.add(asked, std::move(answer), std::min(settings_.max_tokens, room)));
  }
  while (!generation.idle()) {
    if (sampling.interruptible && interrupted()) return Error{"interrupted", Blame::kInterrupted};
    generation.step([&](const lm::Token& token) {
      if (const auto index = writing.take(token); index && on_written)
        on_written(*index, writing.answers[*index]);
    });
    if (!writing.trouble().ok()) return writing.trouble().error();
  }
  return std::move(writing.answers);
}

size_t plan_length(std::span<const int32_t> answer, lm::TokenId end_of_plan) {
  const auto found = std::ranges::find(answer, static_cast<int32_t>(end_of_plan));
  return found == answer.end() ? 0 : static_cast<size_t>(found - answer.begin()) + 1;
}

Result<std::vector<int64_t>> AnswerFormat::tokens_of(const GivenAnswer& given,
                                                     const WrittenAnswer& prompt) const {
  lm::StreamDecoder decoder(tokenizer_, /*skip_special=*/true);
  std::string begun;  // of the text, what the prompt has already
  for (size_t t = prompt.prompt - prompt.begun; t < prompt.prompt; ++t)
    begun += decoder.push(static_cast<lm::TokenId>(prompt.tokens[t]));
  begun += decoder.finish();
  std::string_view text = given.text;
  if (text.starts_with(begun)) text.remove_prefix(begun.size());
  std::vector<lm::TokenId> ids;
  lm::Encoder encoder(tokenizer_);
  NEREID_TRY_STATUS(encoder.encode(text, {.add_special = false}, ids));
  std::vector<int64_t> tokens(ids.begin(), ids.end());
  if (end_of_plan_ && given.plan_tokens > 0 && text.find(kEndOfPlan) == text.npos)
    tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(std::min(given.plan_tokens - 1, tokens.size())),
                  static_cast<int64_t>(*end_of_plan_));
  if (!given.cut_off) tokens.push_back(static_cast<int64_t>(end_));
  if (tokens.empty()) tokens.push_back(static_cast<int64_t>(end_));
  return tokens;
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
