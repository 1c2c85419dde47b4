#include "nereid/lm/plan_sizes/size_completion.h"

namespace nereid::lm {

SizeCompletion::Next SizeCompletion::push(std::string_view piece, CompletionTokens& with) {
  if (!rest_.empty()) {
    // PlanSizes has this text already. A sample that could not be held to it writes its line by itself.
    const size_t known = std::min(piece.size(), rest_.size());
    if (piece.substr(0, known) == std::string_view(rest_).substr(0, known)) {
      piece.remove_prefix(known);
      rest_.erase(0, known);
      if (!rest_.empty()) return {.allowed = with.prefixes.next_tokens(rest_)};
    }
    rest_.clear();
  }
  const std::string line = sizes_.push(piece);
  if (line.empty()) return {};
  auto healed = encode_healed(line, with.encoder, *with.tokenizer, with.prefixes);
  if (!healed.ok()) return {};
  rest_ = std::move(healed->rest);
  return {.tokens = std::move(healed->tokens), .allowed = with.prefixes.next_tokens(rest_)};
}

}  // namespace nereid::lm
