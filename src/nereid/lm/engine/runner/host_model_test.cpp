#include "nereid/lm/engine/runner/host_model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/lm/engine/runner/runner.h"

namespace nereid::lm {
namespace {

// Sizes that are no multiples of a vector, heads that share keys, biases.
lm::Config odd_config(lm::Family family) {
  return {.family = family,
          .vocab_size = 131,
          .hidden_size = 44,
          .intermediate_size = 75,
          .layers = 3,
          .heads = 6,
          .key_value_heads = 2,
          .head_dim = 10,
          .max_position_embeddings = 256,
          .attention_bias = family == lm::Family::kQwen2,
          .initializer_range = 0.2};
}

// One sequence of so many tokens from the start, in blocks of four; logits of all.
Step whole(const std::vector<int64_t>& tokens, int32_t first_block) {
  Step step{.tokens = tokens,
            .starts = {0, static_cast<int32_t>(tokens.size())},
            .lengths = {static_cast<int32_t>(tokens.size())},
            .blocks = {{}}};
  for (int64_t t = 0; t < std::ssize(tokens); ++t) {
    if (t % 4 == 0) step.blocks[0].push_back(first_block + static_cast<int32_t>(t / 4));
    step.positions.push_back(t), step.slots.push_back(step.blocks[0].back() * 4 + t % 4),
        step.wanted.push_back(t);
  }
  return step;
}

void append(Step& to, const Step& more) {
  const auto before = static_cast<int64_t>(to.tokens.size());
  const auto add = [](auto& all, const auto& own) { all.insert(all.end(), own.begin(), own.end()); };
  add(to.tokens, more.tokens), add(to.positions, more.positions), add(to.slots, more.slots),
      add(to.lengths, more.lengths), add(to.blocks, more.blocks);
  for (size_t i = 1; i < more.starts.size(); ++i)
    to.starts.push_back(static_cast<int32_t>(before) + more.starts[i]);
  for (const int64_t wanted : more.wanted) to.wanted.push_back(before + wanted);
}

std::vector<int64_t> some_tokens(size_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(seed = (seed * 75 + 74) % 65537 % 131);
  return tokens;
}

TEST(HostModel, LogitsAreTheDecoders) {
  for (const auto family : {lm::Family::kQwen3, lm::Family::kQwen2, lm::Family::kLlama}) {
    auto weights = lm::make_weights(odd_config(family), at::kCPU);
    lm::initialize(weights, 3);
    const auto tokens = some_tokens(70, 5);
    lm::PackedAttention attention({0, 70}, at::kCPU);
    const c10::NoGradGuard no_gradients;
    const auto expected = lm::logits_of(
        weights, lm::hidden_states(weights, at::tensor(tokens), at::arange(70, at::kLong), attention));
    for (const int threads : {1, 3}) {
      auto cache = make_cache(weights.config, 40, 4, at::kFloat);
      const auto got = HostModel(weights, threads).forward(whole(tokens, 1), cache);
      EXPECT_LT((got - expected).abs().max().item<float>(), 2e-4 * expected.abs().max().item<float>())
          << lm::model_type(family);
    }
  }
}

// Bit by bit, whatever else is in the batch and by however many threads; so a draw is a function of its own
// sequence.
TEST(HostModel, ARowDependsOnItselfAlone) {
  auto weights = lm::make_weights(odd_config(lm::Family::kQwen3), at::kCPU);
  lm::initialize(weights, 3);
  const auto tokens = some_tokens(37, 5);
  auto cache = make_cache(weights.config, 200, 4, at::kFloat);
  const auto alone = HostModel(weights, 1).forward(whole(tokens, 1), cache);
  Step batch = whole(some_tokens(61, 9), 20);
  const int64_t before = std::ssize(batch.tokens);
  append(batch, whole(tokens, 50));
  append(batch, whole(some_tokens(3, 2), 100));
  auto together_cache = make_cache(weights.config, 200, 4, at::kFloat);
  EXPECT_TRUE(HostModel(weights, 3).forward(batch, together_cache).narrow(0, before, 37).equal(alone));
  // The last token once more, on what the cache holds.
  Step last = whole(tokens, 1);
  for (auto* numbers : {&last.tokens, &last.positions, &last.slots})
    numbers->erase(numbers->begin(), numbers->end() - 1);
  last.starts = {0, 1}, last.wanted = {0};
  EXPECT_TRUE(HostModel(weights, 1).forward(last, cache)[0].equal(alone[36]));
}

TEST(HostModel, HalvesAreReadAsTheyLie) {
  auto config = odd_config(lm::Family::kQwen3);
  config.dtype = lm::Dtype::kBF16;
  auto halves = lm::make_weights(config, at::kCPU);
  lm::initialize(halves, 3);
  config.dtype = lm::Dtype::kF32;
  auto floats = lm::make_weights(config, at::kCPU);
  floats.flat.copy_(halves.flat);
  const auto step = whole(some_tokens(37, 5), 1);
  auto one = make_cache(config, 40, 4, at::kFloat), other = make_cache(config, 40, 4, at::kFloat);
  EXPECT_TRUE(HostModel(halves).forward(step, one).equal(HostModel(floats).forward(step, other)));
  EXPECT_TRUE(HostModel::takes(halves));
  config.dtype = lm::Dtype::kF16;
  EXPECT_FALSE(HostModel::takes(lm::make_weights(config, at::kCPU)));
}

}  // namespace
}  // namespace nereid::lm
