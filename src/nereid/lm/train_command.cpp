// `nereid-lm train-sft`: what `nereid train sft` becomes.
#include "nereid/engine/runner/cuda/cuda_device.h"
#include "nereid/engine/runner/training_operators.h"
#include "nereid/lm/command.h"
#include "nereid/train/reinforce/rl.h"
#include "nereid/train/torch/sft.h"

namespace nereid::lm {
namespace {

struct TrainOptions {
  std::string run_file, folder, device = "auto";
  int64_t ranks = 1, profile = -1;
  bool plain = false;
};

Status print_step(int64_t step, const train::Figures& figures) {
  nlohmann::ordered_json line = {{"step", step}};
  for (const auto& [name, value] : figures) line[name] = value;
  fmt::print("{}\n", line.dump());
  return std::fflush(stdout) == 0 ? ok_status() : Status(Error{"stdout is closed", Blame::kInterrupted});
}

// Our kernels on a GPU. The devices, which the kernels are launched by, live as long as the answer.
auto training_kernels() {
  const auto devices = std::make_shared<std::vector<std::unique_ptr<engine::Device>>>();
  return
      [devices](const model::Config& config, c10::Device where) -> Result<std::shared_ptr<model::Operators>> {
        NEREID_TRY(const auto installation, Installation::locate());
        NEREID_TRY(auto device, engine::open_engine_device(where, installation));
        if (device->launcher() == nullptr) return std::shared_ptr<model::Operators>();
        devices->push_back(std::move(device));
        return engine::make_training_operators(config, *devices->back()->launcher(), installation);
      };
}

Result<Answer> run_train(const TrainOptions& options, bool json) {
  train::SftOptions sft{.run_file = options.run_file,
                        .folder = options.folder,
                        .device = options.device,
                        .ranks = options.ranks,
                        .profile_step = options.profile};
  if (json) sft.tell = print_step;
  if (!options.plain) sft.operators = training_kernels();
  NEREID_TRY_STATUS(train::run_sft(sft));
  return Answer::kYes;
}

Result<Answer> run_reinforce(const TrainOptions& options, bool json) {
  train::RlOptions rl{.run_file = options.run_file,
                      .folder = options.folder,
                      .device = options.device,
                      .ranks = options.ranks};
  if (json) rl.tell = print_step;
  if (!options.plain) rl.operators = training_kernels();
  NEREID_TRY_STATUS(train::run_rl(rl));
  return Answer::kYes;
}

}  // namespace

void add_train_sft_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train-sft", "Supervised fine-tuning by a run file");
  command->add_option("RUN", options->run_file, "A run file: docs/training.md")->required();
  command->add_option("-o,--output", options->folder, "The run's folder; training/NAME where not given");
  command->add_option("--device", options->device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command->add_option("--ranks", options->ranks, "Processes that share the work: one a GPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--plain", options->plain, "PyTorch's operators instead of our kernels, on a GPU");
  command->add_option("--profile", options->profile, "What the time of this step goes to, kernel by kernel")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", chosen.json, "One object a step");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run_train(*options, chosen.json); }; });
}

void add_train_rl_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train-rl", "Reinforcement learning by a run file");
  command->add_option("RUN", options->run_file, "A run file: docs/training.md")->required();
  command->add_option("-o,--output", options->folder, "The run's folder; training/NAME where not given");
  command->add_option("--device", options->device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command->add_option("--ranks", options->ranks, "Processes that share the work: one a GPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--plain", options->plain, "PyTorch's operators instead of our kernels, on a GPU");
  command->add_flag("--json", chosen.json, "One object a step");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] { return run_reinforce(*options, chosen.json); };
  });
}

}  // namespace nereid::lm
