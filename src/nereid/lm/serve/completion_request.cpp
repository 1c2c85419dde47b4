#include "nereid/lm/serve/completion_request.h"

#include <algorithm>

namespace nereid::lm {
namespace {

constexpr size_t kLongestName = 4096, kMaxPrompts = 1024, kLongestPrompt = size_t{16} << 20;
constexpr int64_t kMaxNew = 1 << 24, kMaxTopLogprobs = 20, kMaxSamples = 1024, kMaxStops = 64;
constexpr size_t kMaxChoices = 1024;  // of all prompts of a request: its tokens are one turn of the server's
constexpr int64_t kMaxNewOfCompletions = 16;  // where a request does not say: as OpenAI's

using Found = Result<std::optional<JsonField>>;

// A field that is there and not null.
Found given(const JsonField& root, const char* name) {
  NEREID_TRY(auto field, root.find(name));
  if (field && field->json().is_null()) field.reset();
  return field;
}

Result<double> number(const JsonField& root, const char* name, double otherwise, double lowest,
                      double highest) {
  NEREID_TRY(const auto field, given(root, name));
  if (!field) return otherwise;
  NEREID_TRY(const double value, field->number());
  if (!(value >= lowest && value <= highest))
    return field->expected(fmt::format("a number from {} to {}", lowest, highest));
  return value;
}

Result<int64_t> whole(const JsonField& root, const char* name, int64_t otherwise, int64_t lowest,
                      int64_t highest) {
  NEREID_TRY(const auto field, given(root, name));
  return field ? field->integer(lowest, highest) : otherwise;
}

Result<bool> flag(const JsonField& root, const char* name) {
  NEREID_TRY(const auto field, given(root, name));
  return field ? field->boolean() : false;
}

// What is not followed may be said, as long as it says nothing.
Status refuse_what_is_not_followed(const JsonField& root) {
  for (const char* name : {"presence_penalty", "frequency_penalty"}) {
    NEREID_TRY([[maybe_unused]] const double none, number(root, name, 0, 0, 0));
  }
  for (const char* name : {"tools", "functions", "logit_bias", "suffix"}) {
    NEREID_TRY(const auto field, given(root, name));
    if (field && !field->json().empty() && field->json() != "")
      return field->expected("nothing (it is not supported)");
  }
  NEREID_TRY(const auto format, given(root, "response_format"));
  if (format) {
    NEREID_TRY(const std::string type, format->text_at("type"));
    if (type != "text") return format->expected("the type text (no other is supported)");
  }
  NEREID_TRY(const int64_t samples, whole(root, "n", 1, 1, kMaxSamples));
  NEREID_TRY([[maybe_unused]] const int64_t best, whole(root, "best_of", samples, samples, samples));
  return ok_status();
}

bool is_token_list(const Json& json) { return json.is_array() && !json.empty() && json[0].is_number(); }

}  // namespace

Result<CompletionRequest> CompletionReader::read(Endpoint endpoint, const std::string& body) {
  NEREID_TRY(const Json document, parse_json(body, "body"));
  const JsonField root(document, "body");
  CompletionRequest request{.endpoint = endpoint, .prompts = {}, .echoes = {}, .stops = {}};
  NEREID_TRY(const auto model, given(root, "model"));
  if (model) {
    NEREID_TRY(request.model, model->text(kLongestName));
  }
  NEREID_TRY_STATUS(endpoint == Endpoint::kChat ? read_conversation(root, request)
                                                : read_prompts(root, request));
  NEREID_TRY_STATUS(refuse_what_is_not_followed(root));
  NEREID_TRY_STATUS(read_sampling(root, request));
  if (const auto samples = static_cast<size_t>(request.generation.samples);
      samples * request.prompts.size() > kMaxChoices)
    return input_error("body.n: expected at most {} answers to a request, got {} to each of {} prompts",
                       kMaxChoices, samples, request.prompts.size());
  NEREID_TRY_STATUS(read_logprobs(root, request));
  NEREID_TRY(request.streams, flag(root, "stream"));
  NEREID_TRY(const auto stream_options, given(root, "stream_options"));
  if (stream_options) {
    NEREID_TRY(request.returns_usage, flag(*stream_options, "include_usage"));
  }
  return request;
}

Result<std::vector<int64_t>> CompletionReader::encode(const std::string& text, bool special) {
  std::vector<lm::TokenId> ids;
  NEREID_TRY_STATUS(encoder_.encode(text, {.add_special = special}, ids));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

Status CompletionReader::read_conversation(const JsonField& root, CompletionRequest& request) {
  if (!chat_.ok()) return chat_.error();
  NEREID_TRY(const JsonField messages, root.at("messages"));
  NEREID_TRY(auto conversation, lm::chat_messages(messages.json(), "body.messages"));
  NEREID_TRY(const bool continues, flag(root, "continue_final_message"));
  std::string begun;  // the answer's beginning, which is not repeated
  if (continues) {
    if (conversation.empty() || conversation.back().role != "assistant")
      return input_error(
          "body.continue_final_message: expected an assistant's message as the last of messages");
    begun = std::move(conversation.back().content);
    conversation.pop_back();
  }
  NEREID_TRY(const std::string text, lm::render_chat(*chat_, conversation, {.thinking = defaults_.thinking}));
  NEREID_TRY(auto tokens, encode(text + begun, /*special=*/false));  // the conversation has its own
  request.prompts.push_back(std::move(tokens));
  if (said_.complete_sizes && !conversation.empty()) {
    request.task = conversation.back().content;
    request.begun = std::move(begun);
  }
  return ok_status();
}

// A text, the tokens of one, or several of either.
Status CompletionReader::read_prompts(const JsonField& root, CompletionRequest& request) {
  NEREID_TRY(const bool echo, flag(root, "echo"));
  const auto add = [&](const JsonField& prompt) -> Status {
    if (!prompt.json().is_string() && !is_token_list(prompt.json()))
      return prompt.expected("a text or a list of tokens");
    std::vector<int64_t> tokens;
    if (prompt.json().is_string()) {
      NEREID_TRY(const std::string text, prompt.text(kLongestPrompt));
      NEREID_TRY(tokens, encode(text, /*special=*/true));
      if (echo) request.echoes.push_back(text);
    } else {
      NEREID_TRY_STATUS(prompt.each(kLongestPrompt, [&](const JsonField& token) -> Status {
        NEREID_TRY(const int64_t id, token.integer(0, INT32_MAX));
        tokens.push_back(id);
        return ok_status();
      }));
      const std::vector<lm::TokenId> ids(tokens.begin(), tokens.end());
      if (echo) request.echoes.push_back(tokenizer_->decode(ids, /*skip_special=*/true));
    }
    request.prompts.push_back(std::move(tokens));
    return ok_status();
  };
  NEREID_TRY(const JsonField prompt, root.at("prompt"));
  if (prompt.json().is_string() || is_token_list(prompt.json())) return add(prompt);
  if (!prompt.json().is_array()) return prompt.expected("a text, a list of tokens, or a list of either");
  NEREID_TRY_STATUS(prompt.each(kMaxPrompts, add));
  return request.prompts.empty() ? Status(prompt.expected("at least one prompt")) : ok_status();
}

Status CompletionReader::read_sampling(const JsonField& root, CompletionRequest& request) {
  auto& generation = request.generation;
  NEREID_TRY(
      generation.max_new,
      whole(root, "max_tokens",
            request.endpoint == Endpoint::kChat ? defaults_.max_new : kMaxNewOfCompletions, 1, kMaxNew));
  NEREID_TRY(generation.max_new, whole(root, "max_completion_tokens", generation.max_new, 1, kMaxNew));
  NEREID_TRY(generation.samples, whole(root, "n", 1, 1, kMaxSamples));
  auto& draw = generation.draw;
  NEREID_TRY(draw.temperature, number(root, "temperature", said_.temperature.value_or(1), 0, 100));
  NEREID_TRY(draw.top_p, number(root, "top_p", said_.top_p.value_or(1), 1e-9, 1));
  NEREID_TRY(draw.min_p, number(root, "min_p", 0, 0, 1));
  NEREID_TRY(draw.top_k, whole(root, "top_k", said_.top_k.value_or(0), 0, 1 << 24));
  // Without a seed every request has another.
  NEREID_TRY(const int64_t seed,
             whole(root, "seed", static_cast<int64_t>(++unseeded_), INT64_MIN, INT64_MAX));
  draw.seed = static_cast<uint64_t>(seed);
  generation.end_tokens = said_.eos_token_ids;
  NEREID_TRY(const auto stop, given(root, "stop"));
  if (!stop) return ok_status();
  if (stop->json().is_string()) {
    NEREID_TRY(const std::string one, stop->text());
    request.stops.push_back(one);
    return ok_status();
  }
  if (!stop->json().is_array()) return stop->expected("a text or a list of texts");
  return stop->each(kMaxStops, [&](const JsonField& item) -> Status {
    NEREID_TRY(const std::string one, item.text());
    request.stops.push_back(one);
    return ok_status();
  });
}

// A flag and a number in chat, one number in completions.
Status CompletionReader::read_logprobs(const JsonField& root, CompletionRequest& request) const {
  auto& likeliest = request.generation.likeliest;
  if (request.endpoint == Endpoint::kChat) {
    NEREID_TRY(request.returns_logprobs, flag(root, "logprobs"));
    NEREID_TRY(const auto top, given(root, "top_logprobs"));
    if (!top) return ok_status();
    NEREID_TRY(likeliest, top->integer(0, kMaxTopLogprobs));
    if (!request.returns_logprobs) return top->expected("logprobs: true with it");
    return ok_status();
  }
  NEREID_TRY(const auto logprobs, given(root, "logprobs"));
  if (!logprobs) return ok_status();
  NEREID_TRY(likeliest, logprobs->integer(0, kMaxTopLogprobs));
  request.returns_logprobs = true;
  if (!request.echoes.empty())
    return logprobs->expected("no echo with it (log-probabilities of prompt tokens are not computed)");
  return ok_status();
}

}  // namespace nereid::lm
