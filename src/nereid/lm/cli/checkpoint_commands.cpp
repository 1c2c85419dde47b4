// `nereid-lm export` (checkpoints into checkpoints) and `nereid-lm logits` (what a model says of given
// tokens, for tests).
#include <ATen/ops/from_blob.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>

#include "nereid/base/program/shipped_model.h"
#include "nereid/lm/checkpoint/safetensors.h"
#include "nereid/lm/cli/command.h"
#include "nereid/lm/cli/dtype_option.h"
#include "nereid/lm/decoder/decoder.h"
#include "nereid/lm/decoder/device.h"
#include "nereid/lm/decoder/weights.h"

namespace nereid::lm {
namespace {

struct Options {
  std::string model, output, tokens, device = "auto", dtype;
  uint64_t shard_bytes = 5'000'000'000;
};

Result<Answer> export_checkpoint(const Options& given) {
  Options options = given;
  if (options.model.empty()) {
    NEREID_TRY(const auto installation, Installation::locate());
    NEREID_TRY(const auto shipped, shipped_model(installation));
    options.model = shipped.string();
  }
  NEREID_TRY(const auto dtype, dtype_option(options.dtype));
  NEREID_TRY(const auto weights, lm::load_weights(options.model, at::kCPU, dtype));
  auto also = lm::tokenizer_files(options.model);
  const auto generation = std::filesystem::path(options.model) / "generation_config.json";
  if (std::error_code absent; std::filesystem::exists(generation, absent)) also.push_back(generation);
  NEREID_TRY_STATUS(
      lm::save_weights(weights, options.output, {.max_shard_bytes = options.shard_bytes, .also = also}));
  fmt::print(stderr, "{}: {} parameters in {}, from {}\n", options.output, weights.config.parameter_count(),
             lm::torch_name(weights.config.dtype), options.model);
  return Answer::kYes;
}

template <typename T>
Result<std::vector<T>> numbers_of(const lm::SafetensorsFile& file, const char* name, lm::Dtype dtype) {
  const auto found = file.tensors().find(std::string_view(name));
  if (found == file.tensors().end() || found->second.dtype != dtype || found->second.shape.size() != 1)
    return input_error("{}: expected a tensor '{}' of {} with one dimension", file.path().string(), name,
                       safetensors_name(dtype));
  std::vector<T> numbers(static_cast<size_t>(found->second.shape[0]));
  std::memcpy(numbers.data(), found->second.bytes.data(), found->second.bytes.size());
  return numbers;
}

Result<Answer> write_logits(const Options& options) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const auto dtype, dtype_option(options.dtype));
  NEREID_TRY(const at::Device device, lm::open_device(options.device));
  NEREID_TRY(const auto weights, lm::load_weights(options.model, device, dtype));
  NEREID_TRY(const auto file, lm::SafetensorsFile::open(options.tokens));
  NEREID_TRY(const auto tokens, numbers_of<int64_t>(file, "tokens", lm::Dtype::kI64));
  NEREID_TRY(const auto cumulative, numbers_of<int32_t>(file, "cumulative", lm::Dtype::kI32));
  for (const int64_t token : tokens)
    if (token < 0 || token >= weights.config.vocab_size)
      return input_error("{}: expected tokens from 0 to {}, got {}", options.tokens,
                         weights.config.vocab_size - 1, token);
  if (cumulative.size() < 2 || cumulative[0] != 0 || !std::is_sorted(cumulative.begin(), cumulative.end()) ||
      cumulative.back() != static_cast<int64_t>(tokens.size()))
    return input_error("{}: expected 'cumulative' to lead from 0 to {}", options.tokens, tokens.size());
  std::vector<int64_t> positions;
  for (size_t i = 0; i + 1 < cumulative.size(); ++i)
    for (int32_t at = cumulative[i]; at < cumulative[i + 1]; ++at) positions.push_back(at - cumulative[i]);

  const auto on_device = [&](const std::vector<int64_t>& numbers) {
    return at::from_blob(const_cast<int64_t*>(numbers.data()), {static_cast<int64_t>(numbers.size())},
                         at::kLong)
        .clone()
        .to(device);
  };
  lm::PackedAttention attention(cumulative, device);
  const auto hidden = lm::hidden_states(weights, on_device(tokens), on_device(positions), attention);
  const auto logits = lm::logits_of(weights, hidden).to(at::kFloat).cpu().contiguous();
  const std::vector<lm::TensorInfo> infos = {{"logits", lm::Dtype::kF32, logits.sizes().vec()}};
  NEREID_TRY(auto writer, lm::SafetensorsWriter::create(options.output, infos));
  NEREID_TRY_STATUS(writer.append({static_cast<const std::byte*>(logits.const_data_ptr()), logits.nbytes()}));
  NEREID_TRY_STATUS(writer.finish());
  return Answer::kYes;
}

CLI::App* add_command(CLI::App& app, Chosen& chosen, const char* name, const char* what,
                      const std::shared_ptr<Options>& options, Result<Answer> (*run)(const Options&)) {
  auto* command = app.add_subcommand(name, what);
  command->add_option("MODEL", options->model, "Checkpoint folder: config.json and safetensors");
  command->add_option("-o,--output", options->output, "Folder to write")->required();
  command->add_option("--dtype", options->dtype,
                      "Weight type: float32, bfloat16 or float16 (default: the checkpoint's)");
  command->callback([options, &chosen, run] { chosen.run = [options, run] { return run(*options); }; });
  return command;
}

}  // namespace

void add_export_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  auto* command =
      add_command(app, chosen, "export",
                  "Convert a checkpoint to a folder that transformers loads (default: the shipped model)",
                  options, export_checkpoint);
  command->add_option("--shard-bytes", options->shard_bytes, "Maximum bytes of a file")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_logits_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();
  auto* command = add_command(app, chosen, "logits", "The logits of packed documents", options, write_logits);
  command->get_option("MODEL")->required();
  command
      ->add_option("--tokens", options->tokens,
                   "A safetensors file with `tokens` (I64) and `cumulative` (I32): where each document "
                   "begins, and the end")
      ->required();
  command->add_option("--device", options->device, "Device: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
}

}  // namespace nereid::lm
