// A run file, runs/*.toml: the configuration of one training run, read into the structs of the parts it
// configures. docs/sft.md names every key.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/config.h"
#include "nereid/train/schedule.h"

namespace nereid::train {

class TomlTable;
struct TomlKey;

// A model that a Tinker-compatible service holds: of reinforcement learning alone.
struct ServiceSettings {
  std::string base_model;  // as the service names it
  std::string url;         // empty: $TINKER_BASE_URL, else the package's own
  int64_t lora_rank = 32;  // of the adapter that is trained
  std::string reduction =
      "sum";              // of a loss, by the service: over tokens; or "mean": over tokens, then sequences
  double patience = 600;  // seconds in which a service that is away is asked again
};

struct ModelSettings {
  std::optional<ServiceSettings> service;  // instead of all below
  std::string start_from;                  // a folder with config.json and safetensors; or
  std::optional<lm::Config> shape;         // ... weights drawn by the run's seed
  // The data's tokenizer: it and its folder's prompts and chat template go into each checkpoint. Default:
  // start_from's own, where it has one.
  std::string tokenizer;
};

struct DataSettings {
  std::vector<std::string> train;     // folders that `nereid train data` wrote
  std::vector<std::string> held_out;  // ... whose loss is looked at, and not trained on
  int64_t sequence_length = 4096;     // tokens of a row
  int64_t global_batch_size = 0;      // of all ranks together
  int64_t micro_batch_size = 1;       // of one rank in one forward; the rest is accumulated
  int64_t window = 4096;              // documents that are packed together
};

struct OptimizerSettings {
  enum class Kind { kAdamW, kMuon };
  Kind kind = Kind::kAdamW;
  double learning_rate = 3e-4;  // AdamW's peak
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;         // of matrices alone: norms and biases have none
  double clip_norm = 1.0;            // of the whole gradient
  double muon_learning_rate = 0.02;  // Muon's peak, for the matrices between embedding and head
  double muon_momentum = 0.95;
};

struct CheckpointSettings {
  int64_t every_steps = 500;
  int64_t keep = 3;  // the last so many
};

struct MachineSettings {
  enum class Precision {
    kFloat32,
    kBfloat16
  };  // bfloat16: weights and activations, with float32 master weights
  Precision precision = Precision::kBfloat16;
  bool recompute = true;           // a layer's activations are computed again in the backward pass
  bool shard_parameters = false;   // among ranks, not only the optimizer's state; layers are recomputed
  bool offload_optimizer = false;  // AdamW's masters and moments are the host's, in pinned memory
  bool deterministic = true;       // a run is the same bit by bit; without, PyTorch may take faster kernels
};

struct RunFile {
  std::string name;  // of the run's folder; default: the file's own name
  int64_t seed = 0;
  int64_t held_out_every = 100;  // steps between two looks at the held-out loss
  ModelSettings model;
  DataSettings data;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  CheckpointSettings checkpoints;
  MachineSettings machine;
};

// What a kind of run adds: tables of its own, read from the file's root; and perhaps it makes its training
// data itself.
struct RunFileExtension {
  std::function<void(TomlTable& root)> read = {};
  bool own_data = false;
  std::vector<TomlKey>* keys = nullptr;  // gets every key that was looked up, also where the file has errors
};

// `name` is the file's, for errors and for the run's name. Paths in it are left as they are written.
Result<RunFile> parse_run_file(std::string_view text, const std::string& name,
                               const RunFileExtension& extension = {});
Result<RunFile> read_run_file(const std::filesystem::path& path, const RunFileExtension& extension = {});

}  // namespace nereid::train
