// How fast the engine decodes: sequences of one length over blocks in random places, weights and keys drawn
// at random.
//
//   bench_engine [--device cuda] [--model DIR | --shape qwen3-8b|small|toy] [--sequences 256]
//                [--context 2048] [--steps 64] [--plain] [--no-graphs]
//
// The memory roofline is what a step must read (all weights but the embedding, and the keys and values of all
// sequences) over the memory's bandwidth.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <numeric>
#include <random>

#include "nereid/base/deadline.h"
#include "nereid/lm/decoder/device.h"
#include "nereid/lm/engine/cuda/cuda_device.h"
#include "nereid/lm/engine/runner/sampler.h"

namespace nereid::lm {
namespace {

struct Options {
  std::string device = "auto", model, shape = "qwen3-8b";
  int64_t sequences = 256, context = 2048, steps = 64, block_size = 16;
  double terabytes_a_second = 4.8, temperature = 0;
  bool plain = false, no_graphs = false;
};

lm::Config shape_named(const std::string& name) {
  if (name == "qwen3-8b")
    return {.family = lm::Family::kQwen3,
            .vocab_size = 151936,
            .hidden_size = 4096,
            .intermediate_size = 12288,
            .layers = 36,
            .heads = 32,
            .key_value_heads = 8,
            .head_dim = 128,
            .max_position_embeddings = 40960,
            .rope_theta = 1e6,
            .dtype = lm::Dtype::kBF16};
  if (name == "small")  // runs/small-sft.toml
    return {.family = lm::Family::kQwen3,
            .vocab_size = 4096,
            .hidden_size = 384,
            .intermediate_size = 1024,
            .layers = 8,
            .heads = 6,
            .key_value_heads = 2,
            .head_dim = 64,
            .max_position_embeddings = 8192,
            .rope_theta = 1e5,
            .tie_word_embeddings = true,
            .dtype = lm::Dtype::kBF16};
  return {.family = lm::Family::kQwen3,
          .vocab_size = 1000,
          .hidden_size = 128,
          .intermediate_size = 256,
          .layers = 2,
          .heads = 4,
          .key_value_heads = 2,
          .head_dim = 32,
          .max_position_embeddings = 4096,
          .dtype = lm::Dtype::kBF16};
}

// All sequences at `length` keys, in blocks of their own.
Step step_at(const Options& options, const std::vector<std::vector<int32_t>>& blocks, int64_t length,
             const std::vector<int64_t>& tokens) {
  Step step{.tokens = tokens, .starts = {0}, .blocks = blocks};
  for (int64_t i = 0; i < options.sequences; ++i) {
    const int64_t at = length - 1;
    step.positions.push_back(at);
    step.slots.push_back(
        int64_t{blocks[static_cast<size_t>(i)][static_cast<size_t>(at / options.block_size)]} *
            options.block_size +
        at % options.block_size);
    step.starts.push_back(static_cast<int32_t>(i + 1));
    step.lengths.push_back(static_cast<int32_t>(length));
    step.wanted.push_back(i);
  }
  return step;
}

Result<int> run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(const at::Device where, lm::open_device(options.device));
  std::optional<lm::Weights> weights;
  if (options.model.empty()) {
    weights = lm::make_weights(shape_named(options.shape), where);
    weights->flat.normal_(0, 0.02);
  } else {
    NEREID_TRY(weights, lm::load_weights(options.model, where));
  }
  NEREID_TRY(const auto device, open_engine_device(where, installation, !options.plain));
  const int64_t most = options.context + options.steps + options.block_size,
                each = (most + options.block_size - 1) / options.block_size;
  RunnerOptions runner_options{
      .blocks = options.sequences * each + 1, .block_size = options.block_size, .max_tokens = most};
  if (!options.no_graphs) runner_options.recorded_sizes = {options.sequences};
  NEREID_TRY(const auto runner, Runner::create(*weights, *device, runner_options));
  runner->cache().keys.normal_();
  runner->cache().values.normal_();

  std::vector<int32_t> order(static_cast<size_t>(runner_options.blocks) - 1);
  std::iota(order.begin(), order.end(), 1);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<std::vector<int32_t>> blocks;
  for (int64_t i = 0; i < options.sequences; ++i)
    blocks.emplace_back(order.begin() + i * each, order.begin() + (i + 1) * each);

  std::vector<int64_t> tokens(static_cast<size_t>(options.sequences), 7);
  std::vector<DrawParameters> draws(tokens.size(), {.temperature = options.temperature});
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.steps; ++i) {
    Stopwatch watch;
    tokens = draw(runner->forward(step_at(options, blocks, options.context + i, tokens)), draws).tokens;
    seconds.push_back(watch.seconds());
  }
  fmt::print("first step {:.2f} s\n", seconds[0]);
  seconds.erase(seconds.begin(), seconds.begin() + std::min<int64_t>(4, options.steps - 1));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2], rate = static_cast<double>(options.sequences) / median;
  const auto& config = weights->config;
  const double element = static_cast<double>(c10::elementSize(weights->flat.scalar_type()));
  const double read =
      element *
          (static_cast<double>(config.parameter_count()) -
           (config.tie_word_embeddings ? 0.0 : static_cast<double>(config.vocab_size * config.hidden_size))) +
      static_cast<double>(options.sequences * (options.context + options.steps / 2)) * 2 * element *
          static_cast<double>(config.layers * config.key_value_heads * config.head_dim);
  const double least = read / (options.terabytes_a_second * 1e12);
  fmt::print(
      "{} sequences at {} to {} keys: {:.3f} ms a step, {:.0f} tokens/s; {:.1f} GB a step, roofline {:.3f} "
      "ms: {:.1f} % of it\n",
      options.sequences, options.context, options.context + options.steps, median * 1e3, rate, read / 1e9,
      least * 1e3, 100 * least / median);
  return 0;
}

}  // namespace
}  // namespace nereid::lm

int main(int argc, char** argv) {
  CLI::App app{"How fast the engine decodes"};
  nereid::lm::Options options;
  app.add_option("--device", options.device);
  app.add_option("--model", options.model, "A checkpoint; random weights of --shape where not given");
  app.add_option("--shape", options.shape, "qwen3-8b, small (the model that ships) or toy")
      ->check(CLI::IsMember({"qwen3-8b", "small", "toy"}));
  app.add_option("--sequences", options.sequences)->check(CLI::PositiveNumber);
  app.add_option("--context", options.context)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--block-size", options.block_size)->check(CLI::PositiveNumber);
  app.add_option("--temperature", options.temperature);
  app.add_option("--bandwidth", options.terabytes_a_second, "Of the memory, in TB/s");
  app.add_flag("--plain", options.plain, "PyTorch's operators alone");
  app.add_flag("--no-graphs", options.no_graphs);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto code = nereid::lm::run(options);
    if (code.ok()) return *code;
    fmt::print(stderr, "bench_engine: {}\n", code.error().message);
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_engine: {}\n", e.what());
    return 3;
  }
}
