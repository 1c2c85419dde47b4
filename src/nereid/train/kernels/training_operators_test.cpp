#include "nereid/train/kernels/training_operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>

#include "nereid/lm/decoder/decoder.h"
#include "tests/support/ttir_launcher.h"

namespace nereid::train {

using lm::build_kernels, lm::KernelRequest, lm::TtirLauncher;

namespace {

// The loss and the gradients of all parameters, with our kernels and with PyTorch's operators: documents
// within a tile, across several, and of no token, for heads of 64 (which have tensor descriptors, in
// bfloat16) and others, with norms of heads and without.
TEST(TrainingOperators, HaveTheDecodersGradients) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok());
  for (const auto family : {lm::Family::kQwen3, lm::Family::kQwen2}) {
    for (const auto& [dtype, bound] : {std::pair(lm::Dtype::kF32, 2e-5), std::pair(lm::Dtype::kBF16, 3e-2)}) {
      const lm::Config config{.family = family,
                              .vocab_size = 61,
                              .hidden_size = 40,
                              .intermediate_size = 56,
                              .layers = 2,
                              .heads = 9,
                              .key_value_heads = 3,
                              .head_dim = family == lm::Family::kQwen3 ? 20 : 64,
                              .max_position_embeddings = 256,
                              .attention_bias = family == lm::Family::kQwen2,
                              .initializer_range = 0.2,
                              .dtype = dtype};
      TtirLauncher launcher;
      const auto operators = make_training_operators(config, launcher, *installation);
      ASSERT_TRUE(operators.ok()) << operators.error().message;
      std::vector<lm::Weights> both;
      std::vector<float> losses;
      const auto tokens = at::randint(61, {179}, at::kLong);
      for (const bool own : {false, true}) {
        auto& weights = both.emplace_back(lm::make_weights(config, at::kCPU));
        lm::initialize(weights, 3);
        (void)lm::require_gradients(weights);
        if (own) weights.operators = *operators;
        lm::PackedAttention attention({0, 9, 9, 23, 155, 179}, at::kCPU);
        const auto hidden = lm::hidden_states(weights, tokens, at::arange(179, at::kLong), attention);
        const auto loss =
            at::nll_loss(at::log_softmax(lm::logits_of(weights, hidden).to(at::kFloat), -1), tokens.roll(-1));
        loss.backward();
        losses.push_back(loss.item<float>());
      }
      EXPECT_NEAR(losses[0], losses[1], bound);
      for (size_t i = 0; i < both[0].parameters.size(); ++i) {
        const auto expected = both[0].parameters[i].grad().to(at::kFloat),
                   got = both[1].parameters[i].grad().to(at::kFloat);
        EXPECT_LT((expected - got).norm().item<float>(), bound * expected.norm().item<float>() + 1e-6)
            << both[0].layout.parameters[i].info.name;
      }
      EXPECT_EQ(launcher.launches, 2 * (5 + 6) + 2);
    }
  }
}

// Log-probabilities and the logits' gradients, a row in one tile and in several, with logits far apart and of
// -inf.
TEST(TrainingOperators, HaveTheLossesOfPyTorch) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok());
  for (const int64_t vocabulary : {61, 20'000}) {
    const lm::Config config{.family = lm::Family::kLlama,
                            .vocab_size = vocabulary,
                            .hidden_size = 32,
                            .intermediate_size = 48,
                            .layers = 1,
                            .heads = 2,
                            .key_value_heads = 1,
                            .head_dim = 16,
                            .max_position_embeddings = 128,
                            .dtype = lm::Dtype::kF32};
    TtirLauncher launcher;
    const auto operators = make_training_operators(config, launcher, *installation);
    ASSERT_TRUE(operators.ok()) << operators.error().message;
    auto logits = at::randn({5, vocabulary}) * 8;
    logits[2][vocabulary - 1] = 90, logits[3][0] = -std::numeric_limits<float>::infinity();
    const auto targets = at::randint(1, vocabulary, {5}, at::kLong), weights = at::randn({5});
    const auto given = logits.clone().requires_grad_();
    const auto expected = at::log_softmax(given, -1).gather(1, targets.unsqueeze(1)).squeeze(1);
    (expected * weights).sum().backward();
    const auto found = (*operators)->token_losses(logits, targets, weights);
    EXPECT_TRUE(at::allclose(found, expected.detach(), 1e-5, 1e-5)) << found << expected;
    EXPECT_TRUE(at::allclose(logits, given.grad(), 1e-5, 1e-6));
    EXPECT_EQ(launcher.launches, 1);
  }
}

TEST(TrainingOperators, TakeNoMoreRegistersThanAskedFor) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok());
  KernelRequest request{"token_losses", "bf16", {{"WIDTH", 20'000}, {"TILE", 4096}}};
  const auto free = build_kernels(*installation, 90, {request});
  request.registers = 32;
  const auto bounded = build_kernels(*installation, 90, {request});
  ASSERT_TRUE(free.ok() && bounded.ok()) << (free.ok() ? bounded : free).error().message;
  EXPECT_GT(free->front().image.registers, 32);
  EXPECT_LE(bounded->front().image.registers, 32);
}

TEST(TrainingOperators, HaveOtherTilesWhereWordsSaySo) {
  const lm::Config config{.head_dim = 64, .dtype = lm::Dtype::kBF16};
  const auto own = tiles_of(config);
  const auto all = with_tiles(own, "keys=64,128,8,2,168 forward=128,32,4,3,0");
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->of_keys.queries, 64);
  EXPECT_EQ(all->of_keys.keys, 128);
  EXPECT_EQ(all->of_keys.warps, 8);
  EXPECT_EQ(all->of_keys.stages, 2);
  EXPECT_EQ(all->of_keys.registers, 168);
  EXPECT_EQ(all->forward.queries, 128);
  EXPECT_EQ(all->of_queries.keys, own.of_queries.keys);
  EXPECT_TRUE(own.forward.described && !all->forward.described) << "128 queries are four blocks of 32 keys";
  EXPECT_TRUE(with_tiles(own, "forward=128,64,4,3,0")->forward.described);
  EXPECT_TRUE(all->of_keys.described) << "128 keys are two blocks of 64 queries";
  EXPECT_FALSE(with_tiles(own, "keys=128,64,8,2,0")->of_keys.described);
  for (const std::string word : {"keys", "keys=", "keys=64,64,4,3", "keys=64,64,4,3,0,1", "keys=48,64,4,3,0",
                                 "keys=64,8,4,3,0", "keys=64,64,0,3,0", "values=64,64,4,3,0"}) {
    const auto refused = with_tiles(own, "forward=64,64,4,3,0 " + word);
    ASSERT_FALSE(refused.ok()) << word;
    EXPECT_NE(refused.error().message.find("'" + word + "'"), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace nereid::train
