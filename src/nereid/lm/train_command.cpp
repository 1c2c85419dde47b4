// `nereid-lm train-sft`: what `nereid train sft` becomes.
#include "nereid/lm/command.h"
#include "nereid/train/torch/sft.h"

namespace nereid::lm {
namespace {

struct TrainOptions {
  std::string run_file, folder, device = "auto";
  int64_t ranks = 1;
};

Status print_step(int64_t step, const train::Figures& figures) {
  nlohmann::ordered_json line = {{"step", step}};
  for (const auto& [name, value] : figures) line[name] = value;
  fmt::print("{}\n", line.dump());
  return std::fflush(stdout) == 0 ? ok_status() : Status(Error{"stdout is closed", Blame::kInterrupted});
}

Result<int> run_train(const TrainOptions& options, bool json) {
  train::SftOptions sft{.run_file = options.run_file,
                        .folder = options.folder,
                        .device = options.device,
                        .ranks = options.ranks};
  if (json) sft.tell = print_step;
  NEREID_TRY_STATUS(train::run_sft(sft));
  return 0;
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
  command->add_flag("--json", chosen.json, "One object a step");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run_train(*options, chosen.json); }; });
}

}  // namespace nereid::lm
