// Sequences that a test has continued: by the decoder alone, and by a runner in batches, blocks and pieces
// drawn at random.
#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <random>
#include <vector>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/lm/engine/runner/runner.h"

namespace nereid::lm {

using Tokens = std::vector<int64_t>;

// The most probable continuation, from the whole sequence again for every token: no cache, no batch.
inline Tokens continued(const lm::Weights& weights, Tokens tokens, int more) {
  const c10::NoGradGuard no_gradients;
  for (int i = 0; i < more; ++i) {
    const auto length = static_cast<int32_t>(tokens.size());
    const auto device = weights.flat.device();
    lm::PackedAttention attention({0, length}, device);
    const auto hidden = lm::hidden_states(weights, at::tensor(tokens).to(device),
                                          at::arange(length, at::kLong).to(device), attention);
    tokens.push_back(lm::logits_of(weights, hidden).select(0, -1).argmax().item<int64_t>());
  }
  return tokens;
}

// A sequence as a scheduler would keep it.
struct Running {
  Tokens tokens;      // the prompt, then what was drawn
  size_t prompt = 0;  // tokens of the prompt
  size_t done = 0;    // tokens whose keys are in the cache
  std::vector<int32_t> blocks;
};

class RandomBatch {
 public:
  RandomBatch(Runner& runner, uint32_t seed) : runner_(runner), random_(seed) {
    for (int64_t block = runner.options().blocks - 1; block > 0; --block)
      free_.push_back(static_cast<int32_t>(block));
    std::shuffle(free_.begin(), free_.end(), random_);
  }

  void add(const Tokens& prompt, const Running* prefix_of = nullptr, size_t shared = 0) {
    Running running{.tokens = prompt, .prompt = prompt.size(), .done = shared * block_size(), .blocks = {}};
    if (prefix_of != nullptr)
      running.blocks.assign(prefix_of->blocks.begin(),
                            prefix_of->blocks.begin() + static_cast<ptrdiff_t>(shared));
    running_.push_back(std::move(running));
  }
  size_t block_size() const { return static_cast<size_t>(runner_.options().block_size); }
  std::vector<Running>& running() { return running_; }

  // A random part of the sequences go on: each by a token, or by a random piece of its prompt.
  void step(int more, size_t max_piece) {
    Step step;
    step.starts = {0};
    std::vector<Running*> drawing;
    for (auto& s : running_) {
      if (s.tokens.size() == s.prompt + static_cast<size_t>(more) || random_() % 4 == 0) continue;
      const size_t piece = std::min(s.tokens.size() - s.done, 1 + random_() % max_piece);
      for (size_t i = 0; i < piece; ++i, ++s.done) {
        if (s.done / block_size() == s.blocks.size()) s.blocks.push_back(free_.back()), free_.pop_back();
        step.tokens.push_back(s.tokens[s.done]);
        step.positions.push_back(static_cast<int64_t>(s.done));
        step.slots.push_back(static_cast<int64_t>(
            static_cast<size_t>(s.blocks[s.done / block_size()]) * block_size() + s.done % block_size()));
      }
      step.starts.push_back(static_cast<int32_t>(step.tokens.size()));
      step.lengths.push_back(static_cast<int32_t>(s.done));
      step.blocks.push_back(s.blocks);
      if (s.done < s.tokens.size()) continue;
      step.wanted.push_back(static_cast<int64_t>(step.tokens.size()) - 1);
      drawing.push_back(&s);
    }
    if (step.tokens.empty()) return;
    const auto tokens = runner_.forward(step).argmax(1);
    for (size_t i = 0; i < drawing.size(); ++i)
      drawing[i]->tokens.push_back(tokens[static_cast<int64_t>(i)].item<int64_t>());
  }

  void finish(int more, size_t max_piece) {
    const auto unfinished = [&](const Running& s) {
      return s.tokens.size() < s.prompt + static_cast<size_t>(more);
    };
    while (std::any_of(running_.begin(), running_.end(), unfinished)) step(more, max_piece);
  }

 private:
  Runner& runner_;
  std::mt19937 random_;
  std::vector<int32_t> free_;
  std::vector<Running> running_;
};

}  // namespace nereid::lm
