// engine_selftest DEVICE: the engine on a device, in every way it computes. Tokens under greedy decoding are
// the same with and without batches, blocks of several sizes, pieces of prompts, our own kernels, and
// recorded graphs; logits in bfloat16 differ by rounding alone. On a GPU training's kernels, too.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <cmath>
#include <exception>

#include "nereid/lm/decoder/decoder.h"
#include "nereid/lm/decoder/device.h"
#include "nereid/lm/engine/cuda/cuda_device.h"
#include "nereid/lm/engine/runner/sampler.h"
#include "nereid/train/kernels/training_operators.h"
#include "tests/support/random_batch.h"

namespace nereid::lm {
namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (!holds) ++failures;
  fmt::print("{} {}\n", holds ? "ok    " : "FAILED", what);
  std::fflush(stdout);
}

lm::Weights drawn(lm::Family family, lm::Dtype dtype, at::Device device) {
  auto weights = lm::make_weights({.family = family,
                                   .vocab_size = 997,
                                   .hidden_size = 256,
                                   .intermediate_size = 320,
                                   .layers = 3,
                                   .heads = 8,
                                   .key_value_heads = 2,
                                   .head_dim = 64,
                                   .max_position_embeddings = 256,
                                   .attention_bias = family == lm::Family::kQwen2,
                                   .initializer_range = 0.1,
                                   .dtype = dtype},
                                  device);
  lm::initialize(weights, 21);
  return weights;
}

std::vector<Tokens> prompts() {
  std::mt19937 random(5);
  std::vector<Tokens> all;
  for (const size_t length : {1, 2, 17, 40, 130, 5, 64}) {
    all.emplace_back();
    for (size_t i = 0; i < length; ++i) all.back().push_back(random() % 997);
  }
  return all;
}

void compare_tokens(at::Device where, const Installation& installation) {
  constexpr int kMore = 24;
  for (const auto family : {lm::Family::kQwen3, lm::Family::kQwen2}) {
    const auto weights = drawn(family, lm::Dtype::kF32, where);
    std::vector<Tokens> expected;
    for (const auto& prompt : prompts()) expected.push_back(continued(weights, prompt, kMore));
    for (const bool kernels : {false, true}) {
      if (kernels && where.is_cpu()) continue;  // the unit tests run ours there
      auto device = open_engine_device(where, installation, kernels);
      if (!device.ok()) return expect(false, device.error().message);
      for (const int64_t block_size : {4, 16}) {
        for (const bool recorded : {false, true}) {
          auto runner = Runner::create(
              weights, **device,
              {.blocks = 400,
               .block_size = block_size,
               .recorded_sizes = recorded ? std::vector<int64_t>{1, 2, 4, 8} : std::vector<int64_t>{}});
          if (!runner.ok()) return expect(false, runner.error().message);
          RandomBatch batch(**runner, static_cast<uint32_t>(block_size));
          for (const auto& prompt : prompts()) batch.add(prompt);
          batch.finish(kMore, 50);
          size_t same = 0;
          for (size_t i = 0; i < expected.size(); ++i) same += batch.running()[i].tokens == expected[i];
          expect(same == expected.size(),
                 fmt::format("{} float32, blocks of {}{}{}: {} of {} continuations are the decoder's own",
                             model_type(family), block_size, kernels ? ", own kernels" : "",
                             recorded ? ", recorded" : "", same, expected.size()));
        }
      }
    }
  }
}

// One step of a prompt, then one of decoding, in bfloat16: both ways' logits from those of float32.
void compare_rounding(at::Device where, const Installation& installation) {
  const auto weights = drawn(lm::Family::kQwen3, lm::Dtype::kBF16, where), exact = [&] {
    auto wide = drawn(lm::Family::kQwen3, lm::Dtype::kF32, where);
    wide.flat.copy_(weights.flat);
    return wide;
  }();
  const auto logits_of = [&](const lm::Weights& some, bool kernels, bool recorded) -> Result<at::Tensor> {
    NEREID_TRY(const auto device, open_engine_device(where, installation, kernels));
    NEREID_TRY(const auto runner, Runner::create(some, *device,
                                                 {.blocks = 40,
                                                  .block_size = 16,
                                                  .recorded_sizes = recorded ? std::vector<int64_t>{2}
                                                                             : std::vector<int64_t>{}}));
    Step prompts{.starts = {0, 100, 130}, .lengths = {100, 30}, .blocks = {{3, 9, 1, 7, 5, 11, 13}, {2, 4}}};
    for (int64_t i = 0; i < 130; ++i) {
      const int64_t sequence = i < 100 ? 0 : 1, at = sequence == 0 ? i : i - 100;
      prompts.tokens.push_back((i * 37) % 997);
      prompts.positions.push_back(at);
      prompts.slots.push_back(
          prompts.blocks[static_cast<size_t>(sequence)][static_cast<size_t>(at / 16)] * 16 + at % 16);
    }
    (void)runner->forward(prompts);
    const Step decode{.tokens = {3, 4},
                      .positions = {100, 30},
                      .slots = {13 * 16 + 4, 4 * 16 + 14},
                      .starts = {0, 1, 2},
                      .lengths = {101, 31},
                      .blocks = prompts.blocks,
                      .wanted = {0, 1}};
    for (int i = 0; i < 3; ++i)
      (void)runner->forward(decode);  // the same again: keys are written to where they are
    return runner->forward(decode).to(at::kFloat).cpu();
  };
  const auto wide = logits_of(exact, false, false), plain = logits_of(weights, false, false);
  if (!wide.ok() || !plain.ok())
    return expect(false, wide.ok() ? plain.error().message : wide.error().message);
  const auto distance = [&](const at::Tensor& some) { return (some - *wide).abs().max().item<float>(); };
  for (const bool recorded : {false, true}) {
    if (where.is_cpu()) break;
    const auto own = logits_of(weights, true, recorded);
    if (!own.ok()) return expect(false, own.error().message);
    expect(distance(*own) <= 2 * distance(*plain),
           fmt::format("bfloat16, own kernels{}: logits {:.3f} from float32's, PyTorch's operators {:.3f}",
                       recorded ? ", recorded" : "", distance(*own), distance(*plain)));
  }
}

void compare_draws(at::Device where) {
  at::manual_seed(3);
  const auto logits = at::randn({64, 5000}) * 3;
  std::vector<DrawParameters> parameters;
  for (uint64_t i = 0; i < 64; ++i)
    parameters.push_back({.temperature = 0.5 * static_cast<double>(i % 4),
                          .top_k = i % 3 == 0 ? 40 : 0,
                          .top_p = i % 5 == 0 ? 0.9 : 1,
                          .min_p = i % 7 == 0 ? 0.02 : 0,
                          .seed = i,
                          .index = 3 * i});
  const auto here = draw(logits, parameters), there = draw(logits.to(where), parameters);
  expect(here.tokens == there.tokens, "draws are the CPU's");
}

// Training's kernels against PyTorch's operators: the loss and all gradients of packed documents, within a
// tile and across several.
void compare_training(at::Device where, const Installation& installation) {
  if (where.is_cpu()) return;  // the unit tests run ours there
  const c10::AutoGradMode gradients(true);
  const auto device = open_engine_device(where, installation);
  if (!device.ok()) return expect(false, device.error().message);
  for (const auto& [dtype, bound] : {std::pair(lm::Dtype::kF32, 1e-4), std::pair(lm::Dtype::kBF16, 3e-2)}) {
    for (const int64_t dim : {64, 128}) {
      const lm::Config config{.family = lm::Family::kQwen3,
                              .vocab_size = 997,
                              .hidden_size = 256,
                              .intermediate_size = 320,
                              .layers = 2,
                              .heads = 8,
                              .key_value_heads = 2,
                              .head_dim = dim,
                              .max_position_embeddings = 1024,
                              .initializer_range = 0.1,
                              .dtype = dtype};
      const auto operators = train::make_training_operators(config, *(*device)->launcher(), installation);
      if (!operators.ok()) return expect(false, operators.error().message);
      at::manual_seed(7);
      const auto tokens = at::randint(997, {1500}, at::kLong).to(where);
      std::vector<at::Tensor> found;
      double losses[2];
      for (const bool own : {false, true}) {
        auto weights = lm::make_weights(config, where);
        lm::initialize(weights, 3);
        (void)lm::require_gradients(weights);
        if (own) weights.operators = *operators;
        lm::PackedAttention attention({0, 9, 9, 140, 1200, 1500}, where);
        const auto hidden = lm::hidden_states(
            weights, tokens, at::arange(1500, at::kLong).remainder(1024).to(where), attention);
        const auto loss =
            at::nll_loss(at::log_softmax(lm::logits_of(weights, hidden).to(at::kFloat), -1), tokens.roll(-1));
        loss.backward();
        losses[own] = loss.item<double>();
        std::vector<at::Tensor> all;
        for (const auto& parameter : weights.parameters)
          all.push_back(parameter.grad().to(at::kDouble).flatten());
        found.push_back(at::cat(all));
      }
      const double apart = ((found[1] - found[0]).norm() / found[0].norm()).item<double>();
      expect(apart <= bound && std::abs(losses[1] - losses[0]) <= bound,
             fmt::format("training's kernels, {}, heads of {}: gradients {:.1e} of their norm from PyTorch's "
                         "operators', at most {:.0e}; losses {:.5f} and {:.5f}",
                         dtype == lm::Dtype::kF32 ? "float32" : "bfloat16", dim, apart, bound, losses[1],
                         losses[0]));
    }
  }
}

int run(const std::string& name) {
  at::set_num_threads(1);
  const auto installation = Installation::locate();
  const auto device = lm::open_device(name);
  if (!installation.ok() || !device.ok()) {
    fmt::print(stderr, "engine_selftest: {}\n",
               installation.ok() ? device.error().message : installation.error().message);
    return 2;
  }
  const c10::NoGradGuard no_gradients;
  compare_tokens(*device, *installation);
  compare_rounding(*device, *installation);
  compare_training(*device, *installation);
  compare_draws(*device);
  fmt::print("{} failures\n", failures);
  return failures != 0;
}

}  // namespace
}  // namespace nereid::lm

int main(int argc, char** argv) {
  try {
    return nereid::lm::run(argc > 1 ? argv[1] : "auto");
  } catch (const std::exception& e) {
    fmt::print(stderr, "engine_selftest: {}\n", e.what());
    return 3;
  }
}
