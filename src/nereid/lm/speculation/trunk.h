// An answer that is being written, from which others branch off: its tokens, and where they can be cut.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/lm/speculation/answer_boundaries.h"

namespace nereid::lm {

// A boundary as tokens: the most of them whose text does not go beyond it. A token across a boundary is not
// among them, nor one of which a part of a character is held back.
struct Cut {
  Boundary boundary{};
  size_t tokens = 0;  // of those that were pushed
  size_t text = 0;    // bytes that these, and what the answer begins with, stand for
};

class Trunk {
 public:
  // `begins_with`: a text that was not generated.
  explicit Trunk(std::string_view begins_with) { boundaries_.push(begins_with), begun_ = begins_with.size(); }

  // A token, and the text that it adds. Boundaries in what the answer begins with are no cuts.
  std::vector<Cut> push(int64_t token, std::string_view text) {
    tokens_.push_back(token);
    const auto found = boundaries_.push(text);
    lengths_.push_back(boundaries_.text().size());
    std::vector<Cut> cuts;
    for (const Boundary& boundary : found) {
      Cut cut{.boundary = boundary, .tokens = 0, .text = begun_};
      for (size_t i = 0; i < lengths_.size() && lengths_[i] <= boundary.at; ++i)
        if (lengths_[i] > cut.text) cut.tokens = i + 1, cut.text = lengths_[i];
      cuts.push_back(cut);
    }
    return cuts;
  }

  const std::string& text() const { return boundaries_.text(); }
  std::span<const int64_t> tokens() const { return tokens_; }

 private:
  AnswerBoundaries boundaries_;
  size_t begun_ = 0;
  std::vector<int64_t> tokens_;
  std::vector<size_t> lengths_;  // bytes of text after each token
};

}  // namespace nereid::lm
