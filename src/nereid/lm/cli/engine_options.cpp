#include "nereid/lm/cli/engine_options.h"

#include <CLI/CLI.hpp>

#include "nereid/base/program/shipped_model.h"

namespace nereid::lm {

void add_model_option(CLI::App& command, EngineOptions& options) {
  command.add_option("--model", options.model,
                     "Checkpoint folder with tokenizer.json (default: the shipped model)");
}

Status name_model(EngineOptions& options) {
  if (!options.model.empty()) return ok_status();
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(const auto shipped, shipped_model(installation));
  options.model = shipped.string();
  return ok_status();
}

void add_engine_options(CLI::App& command, EngineOptions& options) {
  const auto from_one = [](int bits) { return CLI::Range(int64_t{1}, int64_t{1} << bits); };
  command.add_option("--device", options.device, "Device: auto, cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--dtype", options.dtype,
                     "Weight type: float32, bfloat16 or float16 (default: the checkpoint's)");
  command.add_option("--sequences", options.sequences, "Maximum sequences in a batch")
      ->check(from_one(16))
      ->capture_default_str();
  command.add_option("--step-tokens", options.step_tokens, "Maximum prompt tokens in one forward")
      ->check(from_one(20))
      ->capture_default_str();
  command.add_option("--block-size", options.block_size, "Tokens per block of the key-value cache")
      ->check(from_one(12))
      ->capture_default_str();
  command.add_flag("--plain", options.plain, "Use PyTorch's operators instead of Nereid's kernels");
  command.add_flag("--no-graphs", options.no_graphs, "Do not use CUDA graphs");
}

}  // namespace nereid::lm
