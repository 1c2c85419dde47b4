// Stop texts in a text that comes in pieces: what is let through never holds a stop text, nor the beginning
// of one that may still be completed.
//
// The match that ends first counts, of two that end together the longer one: so the outcome is the same
// however the text is cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nereid::lm {

class StopMatcher {
 public:
  // Empty stop texts stop nothing.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) { std::erase(stops_, ""); }
  // The text that is certain to be let through. After a match nothing more is.
  std::string push(std::string_view text);
  // The end of the text: what was held back.
  std::string finish();
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace nereid::lm
