#include "nereid/lm/serve/completion.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace nereid::lm {

std::string server_event(const Json& body) {
  return "data: " + body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
}

namespace {

// Where a token begins in what was decoded when it came: before it there may be what broken characters of
// earlier tokens became.
size_t place_of(std::string_view token, std::string_view decoded) {
  const bool begins_a_character = !token.empty() && (static_cast<unsigned char>(token[0]) & 0xc0) != 0x80;
  return begins_a_character && decoded.ends_with(token) ? decoded.size() - token.size() : 0;
}

}  // namespace

Completion::Completion(CompletionRequest request, std::shared_ptr<const lm::Tokenizer> tokenizer,
                       std::string id, std::string model)
    : request_(std::move(request)),
      tokenizer_(std::move(tokenizer)),
      id_(std::move(id)),
      model_(std::move(model)),
      created_(std::time(nullptr)) {
  const size_t count = request_.prompts.size() * static_cast<size_t>(request_.generation.samples);
  for (size_t i = 0; i < count; ++i) {
    Choice& choice = choices_.emplace_back(tokenizer_, request_.stops);
    if (!request_.task.empty()) choice.sizes.emplace(request_.task, request_.begun);
  }
  unfinished_ = count;
}

bool Completion::take(size_t index, const lm::Token& token, std::string& events) {
  Choice& choice = choices_[index];
  ++drawn_;
  const auto& ends = request_.generation.end_tokens;
  const bool is_end = std::find(ends.begin(), ends.end(), token.token) != ends.end();
  std::string certain;
  const auto push = [&](const std::string& decoded) {
    choice.decoded += decoded.size();
    certain += choice.stops.push(decoded);
  };
  if (!is_end) {
    const auto id = static_cast<lm::TokenId>(token.token);
    const std::string decoded = choice.decoder.push(id);
    if (request_.returns_logprobs)
      choice.tokens.push_back({token.token, token.logprob, token.likeliest,
                               choice.decoded + place_of(tokenizer_->bytes(id), decoded)});
    push(decoded);
    choice.piece = decoded;
  }
  if (token.last && !choice.stops.matched()) {
    push(choice.decoder.finish());
    certain += choice.stops.finish();
  }
  choice.text += certain;
  const bool stopped = choice.stops.matched();
  if (stopped || token.last) choice.finish = stopped || is_end ? "stop" : "length";

  // Tokens are reported with the text that they begin in; what a stop text cut off is not reported.
  size_t to = choice.tokens.size();
  while (to > choice.reported && choice.tokens[to - 1].from >= choice.text.size() && (stopped || !token.last))
    --to;
  if (request_.streams && (!certain.empty() || to > choice.reported))
    events += event(index, certain, nullptr, logprobs(choice, choice.reported, to));
  choice.reported = to;
  if (choice.finish.empty()) return false;
  choice.tokens.resize(to);
  --unfinished_;
  if (request_.streams) events += event(index, "", choice.finish, nullptr);
  return !token.last;
}

lm::SizeCompletion::Next Completion::next(size_t index, lm::CompletionTokens& with) {
  Choice& choice = choices_[index];
  if (!choice.sizes || !choice.finish.empty()) return {};
  return choice.sizes->push(std::exchange(choice.piece, {}), with);
}

bool Completion::take_completed(size_t index, const std::vector<int64_t>& tokens, std::string& events) {
  for (const int64_t token : tokens)
    if (take(index, {.token = token}, events)) return true;  // nothing was drawn
  choices_[index].piece.clear();
  return false;
}

Json Completion::logprobs(const Choice& choice, size_t from, size_t to) const {
  if (!request_.returns_logprobs) return nullptr;
  const std::vector<ReportedToken> reported(choice.tokens.begin() + static_cast<ptrdiff_t>(from),
                                            choice.tokens.begin() + static_cast<ptrdiff_t>(to));
  return chats() ? chat_logprobs(*tokenizer_, reported)
                 : completion_logprobs(*tokenizer_, reported, request_.generation.likeliest > 0, choice.text);
}

const std::string& Completion::echo(size_t choice) const {
  static const std::string nothing;
  return request_.echoes.empty() ? nothing
                                 : request_.echoes[choice / static_cast<size_t>(request_.generation.samples)];
}

Json Completion::head(bool chunk) const {
  const char* object = !chats() ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
  return {
      {"id", id_}, {"object", object}, {"created", created_}, {"model", model_}, {"choices", Json::array()}};
}

Json Completion::usage() const {
  size_t prompt = 0;
  for (const auto& tokens : request_.prompts) prompt += tokens.size();
  const auto all = static_cast<int64_t>(prompt) + drawn_;
  return {{"prompt_tokens", prompt}, {"completion_tokens", drawn_}, {"total_tokens", all}};
}

Json Completion::body() const {
  Json body = head(/*chunk=*/false);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    Json reported = {{"index", i},
                     {"finish_reason", choice.finish},
                     {"logprobs", logprobs(choice, 0, choice.tokens.size())}};
    if (chats())
      reported["message"] = {{"role", "assistant"}, {"content", choice.text}};
    else
      reported["text"] = echo(i) + choice.text;
    body["choices"].push_back(std::move(reported));
  }
  body["usage"] = usage();
  return body;
}

std::string Completion::event_of(Json choice) const {
  Json body = head(/*chunk=*/true);
  body["choices"].push_back(std::move(choice));
  if (request_.returns_usage) body["usage"] = nullptr;
  return server_event(body);
}

std::string Completion::event(size_t index, const std::string& text, const Json& finish,
                              Json logprobs) const {
  Json choice = {{"index", index}, {"finish_reason", finish}, {"logprobs", std::move(logprobs)}};
  if (!chats())
    choice["text"] = text;
  else if (finish.is_null())
    choice["delta"] = {{"content", text}};
  else
    choice["delta"] = Json::object();
  return event_of(std::move(choice));
}

std::string Completion::first_events() const {
  std::string events;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (chats())
      events += event_of({{"index", i},
                          {"finish_reason", nullptr},
                          {"logprobs", nullptr},
                          {"delta", {{"role", "assistant"}, {"content", ""}}}});
    else if (!echo(i).empty())
      events += event(i, echo(i), nullptr, nullptr);
  }
  return events;
}

std::string Completion::last_events() const {
  std::string events;
  if (request_.returns_usage) {
    Json body = head(/*chunk=*/true);
    body["usage"] = usage();
    events = server_event(body);
  }
  return events + "data: [DONE]\n\n";
}

}  // namespace nereid::lm
