#include "nereid/lm/engine/stop_matcher.h"

#include <algorithm>

namespace nereid::lm {

std::string StopMatcher::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < begin)) begin = at, end = at + stop.size();
  }
  matched_ = end != std::string::npos;
  size_t sure = matched_ ? begin : held_.size();
  if (!matched_) {
    // The longest end of the text that begins a stop text is held back.
    size_t longest = 0;
    for (const std::string& stop : stops_)
      for (size_t length = std::min(stop.size() - 1, held_.size()); length > longest; --length)
        if (held_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
    sure -= longest;
  }
  std::string out = held_.substr(0, sure);
  held_.erase(0, matched_ ? held_.size() : sure);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace nereid::lm
