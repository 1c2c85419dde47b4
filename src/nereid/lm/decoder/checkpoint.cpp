// Weights from and to checkpoints.
#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <cstring>
#include <set>

#include "nereid/base/file.h"
#include "nereid/lm/checkpoint/safetensors.h"
#include "nereid/lm/checkpoint/staged_folder.h"
#include "nereid/lm/decoder/weights.h"

namespace nereid::lm {
namespace {

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kBF16 || dtype == Dtype::kF16 || dtype == Dtype::kF64;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// The view as a tensor on the CPU: in place where its bytes are aligned to its elements.
at::Tensor as_tensor(const TensorView& view) {
  const auto options = at::TensorOptions(scalar_type(view.dtype));
  if (reinterpret_cast<uintptr_t>(view.bytes.data()) % element_bytes(view.dtype) == 0)
    return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.shape, options);
  at::Tensor copy = at::empty(view.shape, options);
  std::memcpy(copy.data_ptr(), view.bytes.data(), view.bytes.size());
  return copy;
}

// Names that models have had and that say nothing the configuration does not.
bool is_ignorable(const Config& config, std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || (config.tie_word_embeddings && name == "lm_head.weight");
}

// Whether it holds what the configuration asks for, and nothing else. Asks for no memory: what config.json
// promises without tensors to match is found out here.
Status check_tensors(const Checkpoint& checkpoint, const Config& config) {
  std::set<std::string> wanted;
  for (const auto& parameter : lay_out_parameters(config).parameters) {
    const auto& info = parameter.info;
    const TensorView* view = checkpoint.find(info.name);
    if (view == nullptr)
      return input_error("{}: expected a tensor '{}' of shape {}, got none", checkpoint.folder().string(),
                         info.name, shape_text(info.shape));
    const std::string file = checkpoint.file_of(info.name);
    if (view->shape != info.shape)
      return input_error("{}: tensor '{}': expected shape {}, as config.json asks for, got {}", file,
                         info.name, shape_text(info.shape), shape_text(view->shape));
    if (!is_floating(view->dtype))
      return input_error("{}: tensor '{}': expected F64, F32, BF16 or F16, got {}", file, info.name,
                         safetensors_name(view->dtype));
    wanted.insert(info.name);
  }
  for (const auto& [name, unused] : checkpoint.names())
    if (!wanted.contains(name) && !is_ignorable(config, name))
      return input_error("{}: tensor '{}': expected none of that name in a {} with {} layers",
                         checkpoint.file_of(name), name, model_type(config.family), config.layers);
  return ok_status();
}

void fill(const Checkpoint& checkpoint, Weights& weights) {
  const c10::NoGradGuard no_gradients;
  for (size_t i = 0; i < weights.parameters.size(); ++i)
    weights.parameters[i].detach().copy_(as_tensor(*checkpoint.find(weights.layout.parameters[i].info.name)));
}

}  // namespace

Result<Weights> load_weights(const std::filesystem::path& folder, at::Device device,
                             std::optional<Dtype> dtype) {
  NEREID_TRY(Config config, read_config(folder / "config.json"));
  if (dtype) config.dtype = *dtype;
  NEREID_TRY(const auto checkpoint, Checkpoint::open(folder));
  NEREID_TRY_STATUS(check_tensors(checkpoint, config));
  Weights weights = make_weights(config, device);
  fill(checkpoint, weights);
  return weights;
}

Status load_weights_into(const std::filesystem::path& folder, Weights& weights) {
  NEREID_TRY(Config config, read_config(folder / "config.json"));
  config.dtype = weights.config.dtype;
  if (config != weights.config)
    return input_error("{}: expected the configuration of the model that is loaded",
                       (folder / "config.json").string());
  NEREID_TRY(const auto checkpoint, Checkpoint::open(folder));
  NEREID_TRY_STATUS(check_tensors(checkpoint, config));
  fill(checkpoint, weights);
  return ok_status();
}

std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code absent;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "special_tokens_map.json", "prompts"})
    if (std::filesystem::exists(folder / name, absent)) found.push_back(folder / name);
  return found;
}

Status save_weights(const Weights& weights, const std::filesystem::path& folder, const SaveOptions& options) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(auto staged, StagedFolder::create(folder));
  Config config = weights.config;
  config.dtype = options.dtype.value_or(dtype_of(weights.flat.scalar_type()));
  std::vector<TensorInfo> infos;
  for (const auto& parameter : weights.layout.parameters) {
    infos.push_back(parameter.info);
    infos.back().dtype = config.dtype;
  }
  const ShardPlan plan = plan_shards(infos, options.max_shard_bytes);
  size_t next = 0;
  for (const auto& shard : plan.shards) {
    NEREID_TRY(auto writer, SafetensorsWriter::create(staged.staged() / shard.file, shard.tensors));
    for (size_t i = 0; i < shard.tensors.size(); ++i) {
      const at::Tensor tensor =
          weights.parameters[next++].detach().to(scalar_type(config.dtype)).cpu().contiguous();
      NEREID_TRY_STATUS(
          writer.append({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}));
    }
    NEREID_TRY_STATUS(writer.finish());
  }
  if (!plan.index.empty())
    NEREID_TRY_STATUS(write_file_atomically(staged.staged() / "model.safetensors.index.json", plan.index));
  NEREID_TRY_STATUS(write_file_atomically(staged.staged() / "config.json", to_json(config).dump(2) + "\n"));
  NEREID_TRY_STATUS(write_file_atomically(staged.staged() / "generation_config.json",
                                          generation_json(config).dump(2) + "\n"));
  for (const auto& file : options.also) {
    if (std::error_code failure; std::filesystem::is_directory(file, failure)) {
      std::filesystem::copy(file, staged.staged() / file.filename(), std::filesystem::copy_options::recursive,
                            failure);
      if (failure) return our_error("{}: {}", file.string(), failure.message());
      continue;
    }
    NEREID_TRY(const std::string bytes, read_file(file));
    NEREID_TRY_STATUS(write_file_atomically(staged.staged() / file.filename(), bytes));
  }
  return staged.publish();
}

}  // namespace nereid::lm
