// The answer to one request while it is generated: tokens in, JSON out, as a whole or as a stream of events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/engine/stop_matcher.h"
#include "nereid/lm/plan_sizes/size_completion.h"
#include "nereid/lm/serve/completion_request.h"
#include "nereid/lm/serve/logprobs.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

class Completion {
 public:
  // `id` is the answer's own; `model` the name that it shows.
  Completion(CompletionRequest request, std::shared_ptr<const lm::Tokenizer> tokenizer, std::string id,
             std::string model);

  bool streams() const { return request_.streams; }
  size_t choices() const { return choices_.size(); }
  bool done() const { return unfinished_ == 0; }

  // What a stream begins with.
  std::string first_events() const;
  // The next token of a choice. Appends a stream's events to `events`. True where the choice is over although
  // the engine would go on: a stop text was found.
  bool take(size_t choice, const lm::Token& token, std::string& events);
  // After a token that was taken and did not end the choice: how it goes on where sizes are completed. What
  // the engine does of that is taken too, as `completed`.
  lm::SizeCompletion::Next next(size_t choice, lm::CompletionTokens& with);
  bool take_completed(size_t choice, const std::vector<int64_t>& tokens, std::string& events);
  // When all are done: the body, or what a stream ends with.
  Json body() const;
  std::string last_events() const;

 private:
  struct Choice {
    Choice(const std::shared_ptr<const lm::Tokenizer>& tokenizer, const std::vector<std::string>& stops)
        : decoder(tokenizer, /*skip_special=*/true), stops(stops) {}
    lm::StreamDecoder decoder;
    lm::StopMatcher stops;
    size_t decoded = 0;  // bytes, those that `stops` holds back among them
    std::string text;    // as far as it is certain, without an echo
    std::string finish;  // empty while it goes on
    std::string piece;   // of the newest token
    std::optional<lm::SizeCompletion> sizes;
    std::vector<ReportedToken> tokens;  // with log-probabilities that are to be returned
    size_t reported = 0;                // of these, in the stream
  };
  bool chats() const { return request_.endpoint == Endpoint::kChat; }
  Json head(bool chunk) const;
  Json usage() const;
  Json logprobs(const Choice& choice, size_t from, size_t to) const;
  std::string event(size_t index, const std::string& text, const Json& finish, Json logprobs) const;
  std::string event_of(Json choice) const;
  const std::string& echo(size_t choice) const;

  CompletionRequest request_;
  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  std::string id_, model_;
  int64_t created_;
  std::vector<Choice> choices_;  // those of the first prompt, then of the second, ...
  size_t unfinished_;
  int64_t drawn_ = 0;  // tokens
};

std::string server_event(const Json& body);

}  // namespace nereid::lm
