#include "nereid/lm/engine/runner/fused.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/lm/engine/runner/runner.h"
#include "tests/support/ttir_launcher.h"

namespace nereid::lm {
namespace {

lm::Config small_config(lm::Family family, lm::Dtype dtype) {
  return {.family = family,
          .vocab_size = 97,
          .hidden_size = 40,
          .intermediate_size = 56,
          .layers = 2,
          .heads = 6,
          .key_value_heads = 2,
          .head_dim = 24,
          .max_position_embeddings = 512,
          .attention_bias = family == lm::Family::kQwen2,
          .initializer_range = 0.3,
          .dtype = dtype};
}

class KernelsOnCpu : public testing::Test {
 protected:
  std::unique_ptr<FusedModel> fused(const lm::Config& config, int64_t block_size) {
    const auto installation = Installation::locate();
    EXPECT_TRUE(installation.ok()) << installation.error().message;
    auto made = FusedModel::create(config, block_size, launcher_, *installation);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }
  TtirLauncher launcher_;
};

// Short and long sequences, few and many: all numbers of splits, some of which have nothing to do.
TEST_F(KernelsOnCpu, DecodingAttendsAsPyTorchDoes) {
  at::manual_seed(1);
  const auto config = small_config(lm::Family::kQwen3, lm::Dtype::kF32);
  const auto kernels = fused(config, 4);
  PaddedDecode reference;
  for (const int64_t sequences : {1, 5, 40, 300}) {
    const int64_t width = sequences > 40 ? 3 : 40;
    const auto keys = at::randn({50, 4, 2, 24}), values = at::randn({50, 4, 2, 24}),
               query = at::randn({sequences, 6, 24});
    const auto tables = at::randint(50, {sequences, width}, at::kInt),
               lengths = at::randint(1, 4 * width + 1, {sequences}, at::kInt);
    const auto difference = (kernels->attend(query, keys, values, tables, lengths) -
                             reference.attend(query, keys, values, tables, lengths))
                                .abs()
                                .max()
                                .item<float>();
    EXPECT_LT(difference, 2e-6) << sequences;
  }
  EXPECT_EQ(launcher_.launches, 7);
}

// The whole forward, prompts and decoding, against PyTorch's operators.
TEST_F(KernelsOnCpu, TheForwardIsTheDecoders) {
  const c10::NoGradGuard no_gradients;
  for (const auto& [family, dtype, bound] : {std::tuple(lm::Family::kQwen3, lm::Dtype::kF32, 1e-4),
                                             std::tuple(lm::Family::kQwen2, lm::Dtype::kF32, 1e-4),
                                             std::tuple(lm::Family::kLlama, lm::Dtype::kBF16, 0.3)}) {
    const auto config = small_config(family, dtype);
    auto weights = lm::make_weights(config, at::kCPU);
    lm::initialize(weights, 5);
    TtirLauncher launcher;
    const auto kernels = FusedModel::create(config, 4, launcher, *Installation::locate());
    ASSERT_TRUE(kernels.ok()) << kernels.error().message;
    PaddedDecode padded;
    // Seven tokens of a prompt whose first two are stored by an earlier step; and one that decodes alone at
    // its second place.
    Step step{.tokens = {5, 6, 7, 8, 9, 3},
              .positions = {2, 3, 4, 5, 6, 0},
              .slots = {6, 7, 16, 17, 18, 8},
              .starts = {0, 5, 6},
              .lengths = {7, 1},
              .blocks = {{1, 4}, {2}},
              .wanted = {}};
    Step before{.tokens = {1, 2},
                .positions = {0, 1},
                .slots = {4, 5},
                .starts = {0, 2},
                .lengths = {2},
                .blocks = {{1}},
                .wanted = {}};
    std::vector<at::Tensor> results;
    for (const bool with_kernels : {true, false}) {
      auto cache = make_cache(config, 6, 4, weights.flat.options());
      for (const auto* part : {&before, &step}) {
        const StepTensors tensors = {at::tensor(part->tokens),
                                     at::tensor(part->positions),
                                     at::tensor(part->slots),
                                     at::tensor(part->starts, at::kInt),
                                     at::tensor(part->lengths, at::kInt),
                                     part == &step ? at::tensor({1, 4, 2, 0}, at::kInt).view({2, 2})
                                                   : at::tensor({1}, at::kInt).view({1, 1})};
        PagedAttention attention(cache, *part, tensors,
                                 with_kernels ? static_cast<DecodeKernel&>(**kernels) : padded);
        results.push_back(with_kernels
                              ? (*kernels)->hidden_states(weights, tensors.tokens, tensors.positions,
                                                          tensors.slots, cache, attention)
                              : lm::hidden_states(weights, tensors.tokens, tensors.positions, attention));
      }
      results.push_back(cache.keys), results.push_back(cache.values);
    }
    for (size_t i = 0; i < 4; ++i) {
      const auto difference = (results[i] - results[i + 4]).to(at::kFloat).abs().max().item<float>();
      EXPECT_LT(difference, bound) << lm::model_type(family) << " " << i;
    }
    EXPECT_GT(results[0].abs().max().item<float>(), 0.5);
  }
}

}  // namespace
}  // namespace nereid::lm
