// PlanSizes over tokens: what a sample goes on with, in the tokens of its model.
//
// A completed line ends within a token where the vocabulary has tokens over its end ("]\n#"). So it is given
// up to there (tokenizer/token_prefixes.h), and the next token is one of those that go on with the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/plan_sizes/plan_sizes.h"
#include "nereid/lm/tokenizer/token_prefixes.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

// What the samples of one model need to be completed. One thread.
struct CompletionTokens {
  explicit CompletionTokens(std::shared_ptr<const Tokenizer> of)
      : tokenizer(std::move(of)), encoder(tokenizer), prefixes(*tokenizer) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  Encoder encoder;
  TokenPrefixes prefixes;
};

class SizeCompletion {
 public:
  // `task`: the Python text that the plan is for; `begun`: what the answer begins with, which is not written.
  explicit SizeCompletion(const std::string& task, std::string_view begun = "") : sizes_(task) {
    if (!begun.empty()) sizes_.push(begun);
  }

  struct Next {
    std::vector<int64_t> tokens = {};   // that come next
    std::vector<int64_t> allowed = {};  // after them a token is drawn among these; empty: among all
  };
  // The text of the sample's next token.
  Next push(std::string_view piece, CompletionTokens& with);

 private:
  PlanSizes sizes_;
  std::string rest_;  // of a completed line, which the next tokens begin with
};

}  // namespace nereid::lm
