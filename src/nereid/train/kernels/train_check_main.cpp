// nereid-train-check: for each line `OPERATION IN.safetensors OUT.safetensors` on stdin, one loss or some
// optimizer steps on given tensors, for tests/train/torch_test.py; answers `done`. What an operation takes is
// in the input's metadata.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "nereid/lm/decoder/weights.h"
#include "nereid/train/kernels/linear_cross_entropy.h"
#include "nereid/train/kernels/optimizer.h"
#include "nereid/train/kernels/recompute.h"
#include "nereid/train/rl/objective/objective.h"
#include "nereid/train/sft/trainer.h"

namespace nereid::train {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

struct Input {
  Tensors tensors;
  std::map<std::string, std::string> metadata;
  double number(const std::string& name) const { return std::stod(metadata.at(name)); }
  at::Tensor leaf(const std::string& name) const { return tensors.at(name).detach().requires_grad_(true); }
};

Result<Input> read_input(const std::string& path) {
  NEREID_TRY(const auto file, lm::SafetensorsFile::open(path));
  Input input{.tensors = {}, .metadata = file.metadata()};
  for (const auto& [name, view] : file.tensors())
    input.tensors[name] = at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.shape,
                                        at::TensorOptions(lm::scalar_type(view.dtype)))
                              .clone();
  return input;
}

Status write_output(const std::string& path, const Tensors& tensors) {
  std::vector<lm::TensorInfo> infos;
  for (const auto& [name, tensor] : tensors)
    infos.push_back({name, lm::dtype_of(tensor.scalar_type()), tensor.sizes().vec()});
  NEREID_TRY(auto writer, lm::SafetensorsWriter::create(path, infos));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor whole = tensor.detach().contiguous();
    NEREID_TRY_STATUS(writer.append({static_cast<const std::byte*>(whole.const_data_ptr()), whole.nbytes()}));
  }
  return writer.finish();
}

Tensors cross_entropy(const Input& input) {
  const at::Tensor hidden = input.leaf("hidden"), weight = input.leaf("weight");
  const auto chunk = static_cast<int64_t>(input.number("chunk"));
  const at::Tensor loss =
      linear_cross_entropy(hidden, weight, input.tensors.at("targets"), input.number("scale"), chunk);
  (loss * 3).backward();
  const c10::NoGradGuard no_gradients;
  const at::Tensor again =
      linear_cross_entropy(hidden, weight, input.tensors.at("targets"), input.number("scale"), chunk);
  return {{"loss", loss}, {"without_gradient", again}, {"hidden", hidden.grad()}, {"weight", weight.grad()}};
}

Tensors token_scores(const Input& input) {
  const at::Tensor hidden = input.leaf("hidden"), weight = input.leaf("weight");
  const auto scores =
      score_tokens(hidden, weight, input.tensors.at("targets"), static_cast<int64_t>(input.number("chunk")));
  (scores.log_probabilities * input.tensors.at("factors")).sum().backward();
  return {{"log_probabilities", scores.log_probabilities},
          {"entropies", scores.entropies},
          {"hidden", hidden.grad()},
          {"weight", weight.grad()}};
}

// The parameters are those of a tiny Llama; `gradients` is [steps, elements of the flat buffer].
Tensors optimizer_steps(const Input& input) {
  lm::Config config;
  config.family = lm::Family::kLlama;
  config.vocab_size = 19, config.hidden_size = 16, config.intermediate_size = 40, config.layers = 2,
  config.heads = 2;
  config.key_value_heads = 1, config.head_dim = 8;
  const auto layout = lm::lay_out_parameters(config);
  OptimizerSettings settings{.kind = input.metadata.at("kind") == "muon" ? OptimizerSettings::Kind::kMuon
                                                                         : OptimizerSettings::Kind::kAdamW,
                             .learning_rate = input.number("learning_rate")};
  settings.muon_learning_rate = input.number("muon_learning_rate");
  at::Tensor master = input.tensors.at("master").clone();
  // In parts, as ranks have them.
  const auto parts = static_cast<int64_t>(input.number("parts"));
  std::vector<int64_t> borders;
  for (int64_t i = 0; i <= parts; ++i)
    borders.push_back(range_border(layout, settings.kind, layout.elements * i / parts));
  std::vector<Optimizer> optimizers;
  for (size_t i = 0; i + 1 < borders.size(); ++i)
    optimizers.emplace_back(layout, settings, borders[i], borders[i + 1], at::kCPU);
  const at::Tensor gradients = input.tensors.at("gradients"), shares = input.tensors.at("shares");
  for (int64_t step = 0; step < gradients.size(0); ++step)
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      const auto part = [&](const at::Tensor& all) { return all.slice(0, borders[i], borders[i + 1]); };
      optimizers[i].step(part(master), part(gradients[step]), shares[step].item<double>());
    }
  Tensors results;
  for (const auto& parameter : layout.parameters)
    results[parameter.info.name] =
        master.narrow(0, parameter.offset, parameter.elements).view(parameter.info.shape);
  return results;
}

// Where the parameters of that tiny Llama lie: names to [offset].
Tensors layout_of(const Input&) {
  Tensors results;
  lm::Config config;
  config.family = lm::Family::kLlama;
  config.vocab_size = 19, config.hidden_size = 16, config.intermediate_size = 40, config.layers = 2,
  config.heads = 2;
  config.key_value_heads = 1, config.head_dim = 8;
  const auto layout = lm::lay_out_parameters(config);
  for (const auto& parameter : layout.parameters)
    results[parameter.info.name] = at::full({1}, parameter.offset, at::kLong);
  results["elements"] = at::full({1}, layout.elements, at::kLong);
  return results;
}

// A document as one row, where places from `begin` on predict the token after them.
Batch batch_of(const at::Tensor& tensor, int64_t begin) {
  const at::Tensor tokens = tensor.to(at::kInt).contiguous();
  const auto length = static_cast<int32_t>(tokens.numel());
  Batch batch;
  batch.rows = 1, batch.row_length = batch.longest = length;
  batch.cumulative_lengths = {0, length};
  batch.tokens.assign(tokens.const_data_ptr<int32_t>(), tokens.const_data_ptr<int32_t>() + length);
  for (int32_t t = 0; t < length; ++t) {
    batch.positions.push_back(t);
    batch.targets.push_back(t >= begin && t + 1 < length ? batch.tokens[static_cast<size_t>(t) + 1]
                                                         : kNoTarget);
  }
  return batch;
}

// What one update of reinforcement learning gathers, in a tiny model that is saved in `folder`: `factors` by
// the log-probabilities of `tokens`, and besides the mean loss of `examples` from `begin` on, times `weight`.
Result<Tensors> update(const Input& input) {
  lm::Config config;
  config.family = lm::Family::kLlama;
  config.vocab_size = 19, config.hidden_size = 16, config.intermediate_size = 40, config.layers = 2,
  config.heads = 2;
  config.key_value_heads = 1, config.head_dim = 8, config.max_position_embeddings = 64;
  RunFile run;
  run.machine.precision = MachineSettings::Precision::kFloat32, run.machine.recompute = false;
  lm::Weights weights = lm::make_weights(config, at::kCPU);
  lm::initialize(weights, 3);
  NEREID_TRY_STATUS(lm::save_weights(weights, input.metadata.at("folder")));
  Alone alone;
  Trainer trainer(run, std::move(weights), alone);
  Supervised besides{.weight = input.number("weight")};
  if (besides.weight > 0) {
    besides.data.batches = {
        batch_of(input.tensors.at("examples"), static_cast<int64_t>(input.number("begin")))};
    besides.data.targets =
        std::ranges::count_if(besides.data.batches[0].targets, [](int32_t t) { return t != kNoTarget; });
  }
  NEREID_TRY(const auto found, trainer.gather_from({batch_of(input.tensors.at("tokens"), 0)},
                                                   std::vector{input.tensors.at("factors")}, besides));
  Tensors results = {{"loss", at::full({}, found.loss, at::kDouble)},
                     {"norm", at::full({}, found.gradient_norm, at::kDouble)}};
  const auto& layout = trainer.weights().layout;
  for (size_t i = 0; i < layout.parameters.size(); ++i)
    results[layout.parameters[i].info.name] = trainer.weights().parameters[i].grad();
  return results;
}

// Rollouts one after the other: `lengths`, `plans`, `judged` [rollouts, 3] (valid, correct, speed-up),
// `groups`.
// `next`: of each rollout the one that is its next turn; -1: none.
void add_later_returns(const ObjectiveSettings& settings, double discount, const std::vector<size_t>& groups,
                       const std::vector<double>& next, std::vector<Rollout>& rollouts) {
  std::vector<Judged> judged;
  std::vector<size_t> turns;
  for (const Rollout& rollout : rollouts) judged.push_back(rollout.judged);
  for (const double turn : next) turns.push_back(turn < 0 ? kNoTurn : static_cast<size_t>(turn));
  const auto later = later_returns(settings, discount, judged, groups, turns);
  for (size_t i = 0; i < later.size(); ++i) rollouts[i].later = later[i];
}

Tensors objective(const Input& input) {
  using Kind = ObjectiveSettings::Kind;
  const std::map<std::string, Kind> kinds = {
      {"grpo", Kind::kGrpo}, {"hrd", Kind::kHrd}, {"best", Kind::kBest}, {"drpo", Kind::kDrpo}};
  const std::map<std::string, Baseline> baselines = {{"normalized", Baseline::kNormalized},
                                                     {"mean", Baseline::kMean},
                                                     {"leave_one_out", Baseline::kLeaveOneOut}};
  ObjectiveSettings settings{.kind = kinds.at(input.metadata.at("kind")),
                             .baseline = baselines.at(input.metadata.at("baseline"))};
  if (input.number("incorrect_penalty") >= 0) settings.incorrect_penalty = input.number("incorrect_penalty");
  if (input.number("plan_incorrect_penalty") >= 0)
    settings.plan_incorrect_penalty = input.number("plan_incorrect_penalty");
  settings.beta = input.number("beta");
  settings.delta = input.number("delta");
  const auto numbers = [&](const char* name) {
    const at::Tensor tensor = input.tensors.at(name).to(at::kDouble).contiguous();
    return std::vector<double>(tensor.const_data_ptr<double>(),
                               tensor.const_data_ptr<double>() + tensor.numel());
  };
  const auto lengths = numbers("lengths"), plans = numbers("plans"), judged = numbers("judged"),
             fresh = numbers("new"), old = numbers("old");
  std::vector<Rollout> rollouts(lengths.size());
  size_t at = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    for (size_t t = 0; t < static_cast<size_t>(lengths[i]); ++t, ++at) {
      rollouts[i].log_probabilities.push_back(static_cast<float>(fresh[at]));
      rollouts[i].old_log_probabilities.push_back(static_cast<float>(old[at]));
    }
    rollouts[i].plan_tokens = static_cast<size_t>(plans[i]);
    rollouts[i].judged = {
        .valid = judged[3 * i] > 0, .correct = judged[3 * i + 1] > 0, .speedup = judged[3 * i + 2]};
  }
  std::vector<size_t> groups;
  for (const double group : numbers("groups")) groups.push_back(static_cast<size_t>(group));
  if (input.tensors.contains("next"))
    add_later_returns(settings, input.number("discount"), groups, numbers("next"), rollouts);
  const auto value = evaluate_objective(settings, rollouts, groups);
  std::vector<float> gradients;
  for (const auto& part : value.gradients) gradients.insert(gradients.end(), part.begin(), part.end());
  return {{"loss", at::full({}, value.loss, at::kDouble)},
          {"kl", at::full({}, value.kl, at::kDouble)},
          {"gradients", at::from_blob(gradients.data(), {std::ssize(gradients)}, at::kFloat).clone()}};
}

const std::map<std::string, std::function<Result<Tensors>(const Input&)>> kOperations = {
    {"cross_entropy", cross_entropy},
    {"token_scores", token_scores},
    {"optimizer_steps", optimizer_steps},
    {"layout", layout_of},
    {"update", update},
    {"objective", objective}};

Status answer(const std::string& line) {
  std::istringstream words(line);
  std::string operation, source, target;
  if (!(words >> operation >> source >> target) || !kOperations.contains(operation))
    return input_error("expected `OPERATION IN.safetensors OUT.safetensors`, got `{}`", line);
  NEREID_TRY(const Input input, read_input(source));
  NEREID_TRY(const Tensors results, kOperations.at(operation)(input));
  return write_output(target, results);
}

}  // namespace
}  // namespace nereid::train

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto status = nereid::train::answer(line);
    if (!status.ok()) {
      std::fprintf(stderr, "nereid-train-check: %s\n", status.error().message.c_str());
      return 2;
    }
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}
