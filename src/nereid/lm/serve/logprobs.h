// Log-probabilities of drawn tokens as OpenAI's two endpoints return them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

struct ReportedToken {
  int64_t token = 0;
  float logprob = 0;
  std::vector<lm::Likely> likeliest = {};
  size_t from = 0;  // the byte of the choice's text where it begins
};

// {"content": [{"token", "logprob", "bytes", "top_logprobs": [{"token", "logprob", "bytes"}, ...]}, ...],
// "refusal": null}
Json chat_logprobs(const lm::Tokenizer& tokenizer, const std::vector<ReportedToken>& tokens);

// {"tokens", "token_logprobs", "top_logprobs": [{TOKEN: LOGPROB, ...}, ...] or null where none were asked
// for, "text_offset"} The likeliest have the drawn one among them. A token that is no whole characters is
// spelled as OpenAI does it: bytes:\xe2\x80. `text` is the choice's as far as it is known: offsets count its
// characters.
Json completion_logprobs(const lm::Tokenizer& tokenizer, const std::vector<ReportedToken>& tokens,
                         bool likeliest, std::string_view text);

}  // namespace nereid::lm
