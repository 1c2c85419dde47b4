#include "nereid/train/run_file.h"

#include "nereid/base/file.h"
#include "nereid/train/toml_table.h"

namespace nereid::train {
namespace {

constexpr int64_t kMaxSteps = 1'000'000'000;
constexpr int64_t kMaxWidth = 1 << 20;  // of a model, a vocabulary times four

lm::Config read_shape(TomlTable& table) {
  using lm::Family;
  lm::Config shape;
  shape.max_position_embeddings = 32'768;
  shape.rope_theta = 1e6;
  shape.tie_word_embeddings = true;
  table.choice<Family>("model_type", shape.family,
                       {{"qwen3", Family::kQwen3}, {"qwen2", Family::kQwen2}, {"llama", Family::kLlama}});
  for (const auto& [key, field] : {std::pair{"vocab_size", &shape.vocab_size},
                                   {"hidden_size", &shape.hidden_size},
                                   {"intermediate_size", &shape.intermediate_size},
                                   {"num_hidden_layers", &shape.layers},
                                   {"num_attention_heads", &shape.heads}}) {
    table.required(key, fmt::format("an integer from 1 to {}", kMaxWidth));
    table.integer(key, *field, 1, kMaxWidth);
  }
  shape.key_value_heads = shape.heads;
  table.integer("num_key_value_heads", shape.key_value_heads, 1, kMaxWidth);
  if (shape.heads > 0) {
    shape.head_dim = shape.hidden_size / shape.heads;
    if (!table.has("head_dim") && shape.hidden_size % shape.heads != 0)
      table.wrong("hidden_size",
                  fmt::format("a multiple of num_attention_heads ({}), or a head_dim", shape.heads));
    if (shape.heads % shape.key_value_heads != 0)
      table.wrong("num_key_value_heads", fmt::format("a divisor of num_attention_heads ({})", shape.heads));
  }
  table.integer("head_dim", shape.head_dim, 2, kMaxWidth);
  if (shape.head_dim % 2 != 0) table.wrong("head_dim", "an even number: rotary embeddings turn pairs");
  table.integer("max_position_embeddings", shape.max_position_embeddings, 1, int64_t{1} << 24);
  table.real("rope_theta", shape.rope_theta, {.lowest = 1, .highest = 1e12});
  table.real("rms_norm_eps", shape.rms_norm_eps, {.lowest = 0, .highest = 1, .above = true});
  table.boolean("tie_word_embeddings", shape.tie_word_embeddings);
  if (table.has("eos_token_id")) {
    table.integer("eos_token_id", shape.eos_token_ids.emplace_back(0), 0,
                  std::max<int64_t>(shape.vocab_size - 1, 0));
  }
  // Qwen2 has these biases and says so nowhere.
  shape.attention_bias = shape.family == Family::kQwen2;
  return shape;
}

ServiceSettings read_service(TomlTable& table) {
  ServiceSettings service;
  table.required("base_model", "a model's name, as the service has it");
  table.text("base_model", service.base_model);
  table.text("url", service.url);
  table.integer("lora_rank", service.lora_rank, 1, 65'536);
  table.choice<std::string>("reduction", service.reduction, {{"sum", "sum"}, {"mean", "mean"}});
  table.real("patience", service.patience, {.lowest = 0, .highest = 1e6});
  return service;
}

void read_model(TomlTable& root, ModelSettings& model, bool own_data) {
  root.required("model", "a table [model]");
  auto table = root.table("model");
  if (!table) return;
  if (own_data) {
    std::string backend = "local";
    table->choice<std::string>("backend", backend, {{"local", "local"}, {"tinker", "tinker"}});
    if (backend == "tinker") {
      model.service = read_service(*table);
      return;
    }
  }
  table->text("start_from", model.start_from);
  if (!own_data) table->text("tokenizer", model.tokenizer);
  if (!table->has("start_from")) model.shape = read_shape(*table);
}

void read_data(TomlTable& root, DataSettings& data, bool own_data) {
  root.required("data", "a table [data]");
  auto table = root.table("data");
  if (!table) return;
  if (!own_data) {
    table->required("train", "an array of folders that `nereid train data` wrote");
    table->texts("train", data.train);
    if (table->has("train") && data.train.empty()) table->wrong("train", "at least one folder");
    table->texts("held_out", data.held_out);
  }
  table->integer("sequence_length", data.sequence_length, 2, 1 << 24);
  if (!own_data) {
    table->required("global_batch_size", "how many rows one step takes");
    table->integer("global_batch_size", data.global_batch_size, 1, 1 << 20);
    table->integer("window", data.window, 1, 1 << 20);
  }
  table->integer("micro_batch_size", data.micro_batch_size, 1, 1 << 20);
  if (data.global_batch_size > 0 && data.global_batch_size % data.micro_batch_size != 0)
    table->wrong("micro_batch_size",
                 fmt::format("a divisor of global_batch_size ({})", data.global_batch_size));
}

void read_optimizer(TomlTable& root, OptimizerSettings& optimizer) {
  auto table = root.table("optimizer");
  if (!table) return;
  using Kind = OptimizerSettings::Kind;
  table->choice<Kind>("kind", optimizer.kind, {{"adamw", Kind::kAdamW}, {"muon", Kind::kMuon}});
  table->real("learning_rate", optimizer.learning_rate, {.lowest = 0, .highest = 10, .above = true});
  table->real("beta1", optimizer.beta1, {.lowest = 0, .highest = 1, .below = true});
  table->real("beta2", optimizer.beta2, {.lowest = 0, .highest = 1, .below = true});
  table->real("epsilon", optimizer.epsilon, {.lowest = 0, .highest = 1, .above = true});
  table->real("weight_decay", optimizer.weight_decay, {0, 10});
  table->real("clip_norm", optimizer.clip_norm, {.lowest = 0, .highest = 1e6, .above = true});
  if (optimizer.kind != Kind::kMuon) return;
  table->real("muon_learning_rate", optimizer.muon_learning_rate,
              {.lowest = 0, .highest = 10, .above = true});
  table->real("muon_momentum", optimizer.muon_momentum, {.lowest = 0, .highest = 1, .below = true});
}

void read_schedule(TomlTable& root, ScheduleSettings& schedule) {
  root.required("schedule", "a table [schedule]");
  auto table = root.table("schedule");
  if (!table) return;
  using Kind = ScheduleSettings::Kind;
  table->choice<Kind>("kind", schedule.kind,
                      {{"constant", Kind::kConstant},
                       {"cosine", Kind::kCosine},
                       {"warmup-stable-decay", Kind::kWarmupStableDecay}});
  table->real("seconds", schedule.seconds, {.lowest = 0, .highest = 1e9, .above = true});
  if (schedule.seconds > 0)
    schedule.steps = kMaxSteps;
  else
    table->required("steps", "how many steps the run has, or its seconds");
  table->integer("steps", schedule.steps, 1, kMaxSteps);
  table->integer("warmup_steps", schedule.warmup_steps, 0, kMaxSteps);
  if (schedule.kind != Kind::kConstant) table->real("final_share", schedule.final_share, {0, 1});
  if (schedule.kind == Kind::kWarmupStableDecay) {
    if (schedule.seconds > 0) table->wrong("seconds", "none where decay_steps is set: it falls by steps");
    table->required("decay_steps", "over how many steps it falls at the end");
    table->integer("decay_steps", schedule.decay_steps, 1, kMaxSteps);
  }
  if (schedule.steps > 0 && schedule.warmup_steps + schedule.decay_steps > schedule.steps)
    table->wrong("steps", fmt::format("at least warmup_steps + decay_steps ({})",
                                      schedule.warmup_steps + schedule.decay_steps));
}

void read_checkpoints(TomlTable& root, CheckpointSettings& checkpoints) {
  auto table = root.table("checkpoints");
  if (!table) return;
  table->integer("every_steps", checkpoints.every_steps, 1, kMaxSteps);
  table->integer("keep", checkpoints.keep, 1, 1'000'000);
}

void read_machine(TomlTable& root, const OptimizerSettings& optimizer, MachineSettings& machine) {
  auto table = root.table("machine");
  if (!table) return;
  using Precision = MachineSettings::Precision;
  table->choice<Precision>("precision", machine.precision,
                           {{"float32", Precision::kFloat32}, {"bfloat16", Precision::kBfloat16}});
  table->boolean("recompute", machine.recompute);
  table->boolean("shard_parameters", machine.shard_parameters);
  if (machine.shard_parameters && !machine.recompute)
    table->wrong("recompute", "true where parameters are sharded: a layer's weights are not there to keep");
  table->boolean("offload_optimizer", machine.offload_optimizer);
  if (machine.offload_optimizer &&
      (machine.shard_parameters || optimizer.kind != OptimizerSettings::Kind::kAdamW))
    table->wrong("offload_optimizer", "false with sharded parameters and with Muon");
  table->boolean("deterministic", machine.deterministic);
}

}  // namespace

Result<RunFile> parse_run_file(std::string_view text, const std::string& name,
                               const RunFileExtension& extension) {
  NEREID_TRY(TomlDocument document, TomlDocument::parse(text, name));
  RunFile run;
  run.name = std::filesystem::path(name).stem().string();
  {
    TomlTable root(document);
    root.text("name", run.name);
    if (run.name.empty() || run.name.find('/') != std::string::npos || run.name.starts_with('.'))
      root.wrong("name", "a folder's name");
    root.integer("seed", run.seed, 0, INT64_MAX);
    root.integer("held_out_every", run.held_out_every, 1, kMaxSteps);
    read_model(root, run.model, extension.own_data);
    read_data(root, run.data, extension.own_data);
    read_optimizer(root, run.optimizer);
    read_schedule(root, run.schedule);
    read_checkpoints(root, run.checkpoints);
    read_machine(root, run.optimizer, run.machine);
    if (extension.read) extension.read(root);
  }
  if (extension.keys != nullptr) *extension.keys = document.keys();
  NEREID_TRY_STATUS(document.status());
  return run;
}

Result<RunFile> read_run_file(const std::filesystem::path& path, const RunFileExtension& extension) {
  NEREID_TRY(const std::string text, read_file(path, 1 << 20));
  return parse_run_file(text, path.string(), extension);
}

}  // namespace nereid::train
