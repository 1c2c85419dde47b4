#include "nereid/lm/engine/runner/runner.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/random_batch.h"

namespace nereid::lm {
namespace {

// Tensors this small are not worth a second thread.
const bool kOneThread = (at::set_num_threads(1), true);

lm::Weights drawn_weights(lm::Family family = lm::Family::kQwen3) {
  auto weights = lm::make_weights({.family = family,
                                   .vocab_size = 97,
                                   .hidden_size = 32,
                                   .intermediate_size = 48,
                                   .layers = 2,
                                   .heads = 4,
                                   .key_value_heads = 2,
                                   .head_dim = 8,
                                   .max_position_embeddings = 64,
                                   .tie_word_embeddings = true,
                                   .attention_bias = family == lm::Family::kQwen2,
                                   .initializer_range = 0.3},
                                  at::kCPU);
  lm::initialize(weights, 21);
  return weights;
}

std::vector<Tokens> prompts() {
  std::mt19937 random(5);
  std::vector<Tokens> all;
  for (const size_t length : {1, 2, 7, 16, 33}) {
    all.emplace_back();
    for (size_t i = 0; i < length; ++i) all.back().push_back(random() % 97);
  }
  return all;
}

// Whatever is batched with whatever, in blocks and pieces of whatever size, recorded or not: the tokens are
// the same.
TEST(Runner, TokensDoNotDependOnHowTheyAreComputed) {
  constexpr int kMore = 12;
  ASSERT_TRUE(kOneThread);
  for (const auto family : {lm::Family::kQwen3, lm::Family::kQwen2}) {
    const auto weights = drawn_weights(family);
    std::vector<Tokens> expected;
    for (const auto& prompt : prompts()) expected.push_back(continued(weights, prompt, kMore));
    Device libtorchs;
    HostDevice ours;
    for (const int64_t block_size : {1, 3, 16}) {
      for (const size_t piece : {1, 5, 100}) {
        for (const auto& [device, recorded] :
             {std::pair<Device*, bool>(&libtorchs, false), {&libtorchs, true}, {&ours, false}}) {
          auto runner = Runner::create(
              weights, *device,
              {.blocks = 200,
               .block_size = block_size,
               .recorded_sizes = recorded ? std::vector<int64_t>{1, 2, 4} : std::vector<int64_t>{}});
          ASSERT_TRUE(runner.ok()) << runner.error().message;
          RandomBatch batch(**runner, static_cast<uint32_t>(block_size));
          for (const auto& prompt : prompts()) batch.add(prompt);
          batch.finish(kMore, piece);
          for (size_t i = 0; i < expected.size(); ++i)
            EXPECT_EQ(batch.running()[i].tokens, expected[i])
                << block_size << " " << piece << " " << recorded;
        }
      }
    }
  }
}

TEST(Runner, BlocksOfAPrefixAreSharedAndCopied) {
  const auto weights = drawn_weights();
  Device device;
  const auto runner = *Runner::create(weights, device, {.blocks = 60, .block_size = 4});
  const Tokens prompt = prompts()[4];  // 33 tokens: 8 blocks and one token
  RandomBatch batch(*runner, 3);
  batch.add(prompt);
  batch.finish(6, 100);
  Tokens other(prompt.begin(), prompt.begin() + 20);
  other.insert(other.end(), {1, 2, 3});
  const Running first = batch.running()[0];
  batch.add(other, &first, 5);
  batch.add(prompt, &first, 8);
  batch.finish(6, 100);
  EXPECT_EQ(batch.running()[1].tokens, continued(weights, other, 6));
  EXPECT_EQ(batch.running()[2].tokens, batch.running()[0].tokens);

  const int32_t from = first.blocks[2], to = 59 == from ? 58 : 59;
  runner->copy_blocks({{from, to}});
  EXPECT_TRUE(runner->cache().keys.select(1, from).equal(runner->cache().keys.select(1, to)));
  EXPECT_TRUE(runner->cache().values.select(1, from).equal(runner->cache().values.select(1, to)));
}

TEST(Runner, WeightsAreUpdatedInPlace) {
  auto weights = drawn_weights();
  Device device;
  const auto runner =
      *Runner::create(weights, device, {.blocks = 60, .block_size = 4, .recorded_sizes = {1}});
  const Tokens prompt = prompts()[2];
  RandomBatch before(*runner, 3);
  before.add(prompt);
  before.finish(8, 100);
  EXPECT_EQ(before.running()[0].tokens, continued(weights, prompt, 8));
  weights.flat.mul_(-0.7);
  RandomBatch after(*runner, 3);
  after.add(prompt);
  after.finish(8, 100);
  EXPECT_EQ(after.running()[0].tokens, continued(weights, prompt, 8));
  EXPECT_NE(after.running()[0].tokens, before.running()[0].tokens);
}

TEST(Runner, RecordedSizesAreFew) {
  EXPECT_EQ(recorded_sizes_up_to(300), (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 300}));
  EXPECT_EQ(recorded_sizes_up_to(1), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace nereid::lm
