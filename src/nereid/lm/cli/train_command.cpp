// `nereid-lm train-sft`: what `nereid train sft` becomes.
#include <CLI/CLI.hpp>

#include "nereid/base/program/standard_output.h"
#include "nereid/lm/cli/command.h"
#include "nereid/lm/engine/cuda/cuda_device.h"
#include "nereid/train/kernels/training_operators.h"
#include "nereid/train/rl/rl.h"
#include "nereid/train/sft/sft.h"

namespace nereid::lm {
namespace {

struct TrainCommand {
  train::TrainOptions run;
  bool plain = false;
};

Status print_step(int64_t step, const train::Figures& figures) {
  nlohmann::ordered_json line = {{"step", step}};
  for (const auto& [name, value] : figures) line[name] = value;
  return stream_stdout(line.dump() + "\n");
}

// Our kernels on a GPU. The devices, which the kernels are launched by, live as long as the answer.
auto training_kernels() {
  const auto devices = std::make_shared<std::vector<std::unique_ptr<lm::Device>>>();
  return [devices](const lm::Config& config, c10::Device where) -> Result<std::shared_ptr<lm::Operators>> {
    NEREID_TRY(const auto installation, Installation::locate());
    NEREID_TRY(auto device, lm::open_engine_device(where, installation));
    if (device->launcher() == nullptr) return std::shared_ptr<lm::Operators>();
    devices->push_back(std::move(device));
    return train::make_training_operators(config, *devices->back()->launcher(), installation);
  };
}

Result<Answer> run_training(TrainCommand options, bool json, Status (*train)(const train::TrainOptions&)) {
  if (json) options.run.report = print_step;
  if (!options.plain) options.run.operators = training_kernels();
  NEREID_TRY_STATUS(train(options.run));
  if (options.run.check)
    NEREID_TRY_STATUS(stream_stdout(
        json ? nlohmann::json({{"run_file", options.run.run_file}, {"ready", true}}).dump() + "\n"
             : options.run.run_file + ": data and model are ready for the first step\n"));
  return Answer::kYes;
}

// One kind of run; its own options are to be added.
std::pair<CLI::App*, std::shared_ptr<TrainCommand>> add_train_command(
    CLI::App& app, Chosen& chosen, const char* name, const char* what,
    Status (*train)(const train::TrainOptions&)) {
  auto options = std::make_shared<TrainCommand>();
  auto* command = app.add_subcommand(name, what);
  command->add_option("RUN", options->run.run_file, "A run file: docs/sft.md")->required();
  command->add_option("-o,--output", options->run.folder, "Run folder (default: training/NAME)");
  command->add_option("--device", options->run.device, "Device: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  command->add_option("--ranks", options->run.ranks, "Number of processes, one per GPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--accept-changes", options->run.accept_changes,
                    "Resume with a run file that has other values than the run was begun with");
  command->add_flag("--check", options->run.check, "Open data and model, and stop before the first step");
  command->add_flag("--plain", options->plain,
                    "Use PyTorch's operators instead of Nereid's kernels, on a GPU");
  command->add_flag("--json", chosen.json, "One object a step");
  command->callback([options, &chosen, train] {
    chosen.run = [options, &chosen, train] { return run_training(*options, chosen.json, train); };
  });
  return {command, options};
}

}  // namespace

void add_train_sft_command(CLI::App& app, Chosen& chosen) {
  const auto [command, options] =
      add_train_command(app, chosen, "train-sft", "Supervised fine-tuning by a run file", train::run_sft);
  command
      ->add_option("--profile", options->run.profile_step,
                   "What the time of this step goes to, kernel by kernel")
      ->check(CLI::NonNegativeNumber);
}

void add_train_rl_command(CLI::App& app, Chosen& chosen) {
  add_train_command(app, chosen, "train-rl", "Reinforcement learning by a run file", train::run_rl);
}

}  // namespace nereid::lm
