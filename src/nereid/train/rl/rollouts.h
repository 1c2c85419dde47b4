// Answers as rows of tokens, and back: which place of which batch holds which token.
#pragma once

#include "nereid/train/data/batch.h"

namespace nereid::train {

struct WrittenAnswer {
  std::vector<int32_t> tokens;  // the prompt, then the answer
  size_t prompt = 0;            // how many of them are the prompt; at least 1
  size_t begun = 0;             // how many of the prompt's last are what the answer begins with
};

struct PackedAnswers {
  std::vector<Batch> batches;
  struct Place {
    size_t batch = 0, first = 0;  // where the answer's first token is predicted: one place before it
  };
  std::vector<Place> places;  // of each answer
};

// Packs by best fit, the longest first. Rows are at least as many as make whole batches; an answer longer
// than a row is a mistake.
PackedAnswers pack_answers(const std::vector<WrittenAnswer>& answers, int64_t row_length,
                           int64_t micro_batch_size);

}  // namespace nereid::train
