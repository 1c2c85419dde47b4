#include "nereid/lm/cli/engine_options.h"

#include <CLI/CLI.hpp>

#include "nereid/base/shipped_model.h"

namespace nereid::lm {

void add_model_option(CLI::App& command, EngineOptions& options) {
  command.add_option(
      "--model", options.model,
      "A folder with a checkpoint and its tokenizer.json (default: the one that comes with Nereid)");
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
  command.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--dtype", options.dtype,
                     "float32, bfloat16 or float16; the checkpoint's own where not given");
  command.add_option("--sequences", options.sequences, "At most so many at a time")
      ->check(from_one(16))
      ->capture_default_str();
  command.add_option("--step-tokens", options.step_tokens, "Of prompts, at most so many read at a time")
      ->check(from_one(20))
      ->capture_default_str();
  command.add_option("--block-size", options.block_size, "Keys and values of so many tokens lie together")
      ->check(from_one(12))
      ->capture_default_str();
  command.add_flag("--plain", options.plain, "PyTorch's operators instead of our kernels");
  command.add_flag("--no-graphs", options.no_graphs, "No CUDA graphs");
}

}  // namespace nereid::lm
