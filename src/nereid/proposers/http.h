// Any OpenAI-compatible chat endpoint as a proposer. It gets a verdict's evidence and may repair.
#pragma once

#include "nereid/lm/chat/prompts.h"
#include "nereid/proposers/chat.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

struct HttpOptions {
  ChatOptions chat{};
  lm::Prompts prompts{};
  double dollars_per_prompt_token = 0, dollars_per_completion_token = 0;
  bool continues = false;  // the endpoint goes on from an answer's beginning (continue_final_message)

  // $NEREID_HTTP_BASE (or $OPENAI_BASE_URL), $NEREID_HTTP_KEY (or $OPENAI_API_KEY), $NEREID_HTTP_MODEL,
  // $NEREID_HTTP_PRICE ("0.5,1.5": dollars a million tokens, in and out), $NEREID_HTTP_TIMEOUT (seconds
  // without a byte), $NEREID_HTTP_CONTINUES (1: `continues`), $NEREID_HTTP_PROMPTS (a folder with system.md,
  // task.md and repair.md). An error (blamed on the input) says which is missing. `prompts`: the folder where
  // none is named.
  static Result<HttpOptions> from_environment(const std::filesystem::path& prompts);
};

class HttpProposer : public Proposer {
 public:
  explicit HttpProposer(HttpOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "http"; }
  std::string identity() const override;  // endpoint, model, temperature, prompts; never the key
  bool repairs() const override { return true; }
  bool samples() const override { return true; }
  bool paid() const override { return true; }
  bool speculates() const override { return true; }
  Result<Answer> propose(const Request& request, Deadline deadline) override;
  std::unique_ptr<Answers> propose_several(Request request, std::vector<int> samples) override;
  Result<std::optional<Reply>> converse(const std::vector<Message>& messages, Deadline deadline) override;

  // What is sent: the task, then each attempt with its evidence.
  Result<std::vector<Message>> messages(const Request& request) const;

 private:
  Answer answer_of(const ChatAnswer& said, std::string text, double seconds) const;
  Cost cost_of(const ChatAnswer& said, double seconds) const;

  HttpOptions options_;
};

}  // namespace nereid::proposers
