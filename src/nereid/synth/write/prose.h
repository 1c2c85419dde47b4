// Comments and docstrings of sampled programs: sentences without information, made of words, numbers and
// scraps of code. A model that learns from programs has to ignore them.
#pragma once

#include <cstdint>
#include <string>

#include "nereid/synth/sample/rng.h"

namespace nereid::synth {

// What an author writes follows from the number alone. No text has a quote of two strokes, a backslash or an
// end of line.
class Prose {
 public:
  explicit Prose(uint32_t number);
  // Of `n` times once.
  bool one_in(uint32_t n) { return rng_.below(n) == 0; }
  uint32_t below(uint32_t n) { return rng_.below(n); }
  std::string sentence();  // "Scores, scaled by x / 8, over the last axis."
  std::string remark();    // "of each head", "(N, C)", "TODO: tune 3"
  std::string number();    // "3", "1e-5"

 private:
  std::string scrap();
  std::string phrase(uint32_t words);
  Rng rng_;
};

}  // namespace nereid::synth
