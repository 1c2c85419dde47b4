// The text of a sample up to the first of some stop strings, handed out as soon as it is certain.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::lm {

class StoppedText {
 public:
  explicit StoppedText(std::vector<std::string> stops) : stops_(std::move(stops)) { std::erase(stops_, ""); }

  // More text; whether a stop string is complete. What follows it is left out, and it itself.
  bool push(std::string_view piece) {
    if (stopped_) return true;
    size_t longest = 0;
    for (const auto& stop : stops_) longest = std::max(longest, stop.size());
    const size_t from = text_.size() - std::min(text_.size(), longest);
    text_ += piece;
    size_t first = std::string::npos;
    for (const auto& stop : stops_) first = std::min(first, text_.find(stop, from));
    if (first != std::string::npos) text_.resize(first), stopped_ = true;
    certain_ = stopped_ ? text_.size() : text_.size() - held_back();
    return stopped_;
  }
  // Nothing follows.
  void finish() { certain_ = text_.size(); }

  bool stopped() const { return stopped_; }
  const std::string& whole() const { return text_; }
  // What has become certain since the last call.
  std::string_view take_certain() {
    const size_t from = std::min(taken_, certain_);
    taken_ = std::max(taken_, certain_);
    return std::string_view(text_).substr(from, certain_ - from);
  }

 private:
  // The longest end of the text that may become a stop string.
  size_t held_back() const {
    size_t most = 0;
    for (const auto& stop : stops_)
      for (size_t n = std::min(stop.size() - 1, text_.size()); n > most; --n)
        if (std::string_view(text_).ends_with(std::string_view(stop).substr(0, n))) most = n;
    return most;
  }

  std::vector<std::string> stops_;
  std::string text_;
  size_t certain_ = 0, taken_ = 0;
  bool stopped_ = false;
};

}  // namespace nereid::lm
