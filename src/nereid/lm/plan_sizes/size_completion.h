// PlanSizes over tokens: what a sample goes on with, in the tokens of its model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/plan_sizes/plan_sizes.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

class SizeCompletion {
 public:
  // `task`: the Python text that the plan is for; `begun`: what the answer begins with, which is not written.
  explicit SizeCompletion(const std::string& task, std::string_view begun = "") : sizes_(task) {
    if (!begun.empty()) sizes_.push(begun);
  }

  // The text of the sample's next token. The result is empty, or tokens that come next.
  std::vector<int64_t> push(std::string_view piece, Encoder& encoder) {
    const std::string next = sizes_.push(piece);
    std::vector<TokenId> ids;
    if (next.empty() || !encoder.encode(next, {.add_special = false}, ids).ok()) return {};
    return {ids.begin(), ids.end()};
  }

 private:
  PlanSizes sizes_;
};

}  // namespace nereid::lm
