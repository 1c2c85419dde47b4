// A request to /v1/chat/completions or /v1/completions, in the engine's terms.
//
// Read are the fields of OpenAI's API that a model here can follow, and also `top_k`, `min_p` and
// `continue_final_message` (the answer goes on from the last message, an assistant's). A field
// that would change the answer and is not followed (penalties, tools, a forced format) is an error; others
// are passed over.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/json_field.h"
#include "nereid/base/result.h"
#include "nereid/lm/chat/chat.h"
#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

enum class Endpoint { kChat, kCompletions };

struct CompletionRequest {
  Endpoint endpoint = Endpoint::kChat;
  std::string model = {};                     // as the client calls it; empty: none was named
  std::vector<std::vector<int64_t>> prompts;  // at least one; each has generation.samples choices
  std::vector<std::string> echoes;            // of each prompt, what its choices begin with; empty: nothing
  lm::GenerationRequest generation = {};      // of each prompt, but for its tokens
  std::vector<std::string> stops;
  bool streams = false, returns_usage = false;
  bool returns_logprobs = false;  // generation.likeliest with each
  // A chat whose answers' sizes are completed (lm/plan_sizes): the last question, and what the answer begins
  // with. Empty: they are not.
  std::string task = {}, begun = {};
};

struct CompletionDefaults {
  int64_t max_new = 4096;  // of a chat's answer
  bool thinking = true;
};

class CompletionReader {
 public:
  // Without a chat template chats are refused, with its error.
  CompletionReader(std::shared_ptr<const lm::Tokenizer> tokenizer, const lm::GenerationConfig& said,
                   Result<lm::ChatTemplate> chat, CompletionDefaults defaults)
      : tokenizer_(tokenizer),
        encoder_(tokenizer),
        said_(said),
        chat_(std::move(chat)),
        defaults_(defaults) {}

  // An error is blamed on the input and names the field, what was expected and what came.
  Result<CompletionRequest> read(Endpoint endpoint, const std::string& body);

 private:
  Status read_conversation(const JsonField& root, CompletionRequest& request);
  Status read_prompts(const JsonField& root, CompletionRequest& request);
  Status read_sampling(const JsonField& root, CompletionRequest& request);
  Status read_logprobs(const JsonField& root, CompletionRequest& request) const;
  Result<std::vector<int64_t>> encode(const std::string& text, bool special);

  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  lm::Encoder encoder_;
  const lm::GenerationConfig& said_;
  Result<lm::ChatTemplate> chat_;
  const CompletionDefaults defaults_;
  uint64_t unseeded_ = 0;
};

}  // namespace nereid::lm
