#include "nereid/lm/text/pre_tokenizer.h"

#include <algorithm>

namespace nereid::lm {

PreTokenizerRun::PreTokenizerRun(const PreTokenizer& pre_tokenizer) : pre_tokenizer_(pre_tokenizer) {
  for (const SplitStep& step : pre_tokenizer.steps) matchers_.emplace_back(step.pattern);
  if (pre_tokenizer.byte_level_pattern) byte_level_matcher_.emplace(*pre_tokenizer.byte_level_pattern);
}

Status PreTokenizerRun::matches(std::string_view text, Pattern::Matcher& matcher) {
  spans_.clear();
  size_t done = 0;
  while (done < text.size()) {
    NEREID_TRY(const auto match, matcher.find(text, done));
    if (match.begin == Pattern::Matcher::npos) break;
    if (match.begin > done) spans_.push_back({done, match.begin, false});
    spans_.push_back({match.begin, match.end, true});
    done = match.end;
  }
  if (done < text.size()) spans_.push_back({done, text.size(), false});
  return ok_status();
}

// Appends the pieces of `text` to next_.
Status PreTokenizerRun::cut(const SplitStep& step, Pattern::Matcher& matcher, std::string_view text) {
  NEREID_TRY_STATUS(matches(text, matcher));
  if (step.invert)
    for (Span& span : spans_) span.match = !span.match;
  const auto first = static_cast<ptrdiff_t>(next_.size());
  const auto joined = [&](const Span& span) {  // the last piece, with this one before or after it
    std::string_view& last = next_.back();
    const auto begin = std::min(static_cast<size_t>(last.data() - text.data()), span.begin);
    const auto end = std::max(static_cast<size_t>(last.data() - text.data()) + last.size(), span.end);
    last = text.substr(begin, end - begin);
  };
  const auto add = [&](const Span& span) { next_.push_back(text.substr(span.begin, span.end - span.begin)); };
  const auto any = [&] { return static_cast<ptrdiff_t>(next_.size()) > first; };
  bool matched = false;  // the span before this one
  switch (step.behavior) {
    case SplitBehavior::kIsolated:
      for (const Span& span : spans_) add(span);
      break;
    case SplitBehavior::kRemoved:
      for (const Span& span : spans_)
        if (!span.match) add(span);
      break;
    case SplitBehavior::kContiguous:
      for (const Span& span : spans_) {
        any() && span.match == matched ? joined(span) : add(span);
        matched = span.match;
      }
      break;
    case SplitBehavior::kMergedWithPrevious:
      for (const Span& span : spans_) {
        any() && span.match && !matched ? joined(span) : add(span);
        matched = span.match;
      }
      break;
    case SplitBehavior::kMergedWithNext:
      for (size_t i = spans_.size(); i-- > 0;) {
        any() && spans_[i].match && !matched ? joined(spans_[i]) : add(spans_[i]);
        matched = spans_[i].match;
      }
      std::reverse(next_.begin() + first, next_.end());
      break;
  }
  return ok_status();
}

Status PreTokenizerRun::words(std::string_view text, const std::function<void(std::string_view)>& word) {
  pieces_.assign(text.empty() ? 0 : 1, text);
  for (size_t i = 0; i < pre_tokenizer_.steps.size(); ++i) {
    next_.clear();
    for (const std::string_view piece : pieces_)
      NEREID_TRY_STATUS(cut(pre_tokenizer_.steps[i], matchers_[i], piece));
    std::swap(pieces_, next_);
  }
  for (std::string_view piece : pieces_) {
    if (pre_tokenizer_.add_prefix_space && !piece.starts_with(' ')) {
      prefixed_ = ' ';
      prefixed_ += piece;
      piece = prefixed_;
    }
    if (!byte_level_matcher_) {
      word(piece);
      continue;
    }
    NEREID_TRY_STATUS(matches(piece, *byte_level_matcher_));
    for (const Span& span : spans_) word(piece.substr(span.begin, span.end - span.begin));
  }
  return ok_status();
}

}  // namespace nereid::lm
