#include "nereid/train/rl/objective/run_file_keys.h"

#include <algorithm>
#include <map>
#include <set>

#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/toml_table.h"

namespace nereid::train {
namespace {

struct Description {
  const char* path;
  const char* unit;
  const char* meaning;
};

// One line for each key.
constexpr Description kDescriptions[] = {
    {"name", "", "name of the run's folder below training/"},
    {"seed", "", "of first weights, data order and samples"},
    {"held_out_every", "steps", "interval of the held-out evaluation"},
    {"model.backend", "", "where the model is: on this host, or at a Tinker-compatible service"},
    {"model.base_model", "", "the service's name of the model that is trained"},
    {"model.url", "", "the service's address; without it $TINKER_BASE_URL"},
    {"model.lora_rank", "", "rank of the adapter that the service trains"},
    {"model.reduction", "",
     "what the service makes of tokens' losses: their sum, or means over tokens and sequences (skyrl-tx)"},
    {"model.patience", "seconds", "for which a service that is away is asked again"},
    {"model.start_from", "path", "folder with config.json and safetensors; or give a shape"},
    {"model.tokenizer", "path",
     "tokenizer.json; it, prompts/ and the chat template of its folder go into checkpoints"},
    {"model.model_type", "", "architecture, as in Hugging Face's config.json"},
    {"model.vocab_size", "tokens", "size of the vocabulary"},
    {"model.hidden_size", "", "width of the residual stream"},
    {"model.intermediate_size", "", "width of the feed-forward layer"},
    {"model.num_hidden_layers", "layers", "number of transformer blocks"},
    {"model.num_attention_heads", "heads", "query heads"},
    {"model.num_key_value_heads", "heads", "key-value heads"},
    {"model.head_dim", "", "width of a head; without it hidden_size / num_attention_heads"},
    {"model.max_position_embeddings", "tokens", "longest position"},
    {"model.rope_theta", "", "base of the rotary embedding"},
    {"model.rms_norm_eps", "", "epsilon of RMS norms"},
    {"model.tie_word_embeddings", "", "whether embedding and head share weights"},
    {"model.eos_token_id", "token id", "token that ends an answer"},
    {"data.train", "paths", "folders of token shards to train on"},
    {"data.held_out", "paths", "folders of token shards for the held-out loss"},
    {"data.sequence_length", "tokens", "length of a row"},
    {"data.global_batch_size", "rows", "rows per step, over all ranks"},
    {"data.window", "documents", "documents that are packed together"},
    {"data.micro_batch_size", "rows", "rows of one rank in one forward; gradients accumulate over the rest"},
    {"optimizer.kind", "", "Muon updates matrices of the layers, AdamW the rest"},
    {"optimizer.learning_rate", "", "peak learning rate of AdamW"},
    {"optimizer.beta1", "", "decay of AdamW's first moment"},
    {"optimizer.beta2", "", "decay of AdamW's second moment"},
    {"optimizer.epsilon", "", "epsilon of AdamW"},
    {"optimizer.weight_decay", "", "decoupled weight decay, of matrices alone"},
    {"optimizer.clip_norm", "", "largest norm of the whole gradient"},
    {"optimizer.muon_learning_rate", "", "peak learning rate of Muon"},
    {"optimizer.muon_momentum", "", "momentum of Muon"},
    {"schedule.kind", "", "shape of the learning rate after warm-up"},
    {"schedule.seconds", "seconds", "length of the run in time, in place of steps"},
    {"schedule.steps", "steps", "length of the run"},
    {"schedule.warmup_steps", "steps", "linear rise at the beginning, part of steps"},
    {"schedule.final_share", "share", "learning rate at the end, as a share of its peak"},
    {"schedule.decay_steps", "steps", "linear fall at the end, part of steps"},
    {"checkpoints.every_steps", "steps", "interval of checkpoints"},
    {"checkpoints.keep", "checkpoints", "the last ones that stay on disk"},
    {"machine.precision", "", "of weights and activations; master weights are float32"},
    {"machine.recompute", "", "recompute activations of a layer in the backward pass"},
    {"machine.offload_optimizer", "",
     "masters and moments of AdamW are in host memory: 12 bytes a parameter less on the GPUs"},
    {"machine.shard_parameters", "", "shard weights over ranks, not the optimizer's state alone"},
    {"machine.deterministic", "", "runs are equal bit by bit"},
    {"rl.objective", "", "loss (docs/rl.md)"},
    {"rl.turns", "answers", "of a conversation at most: one more after each that is wrong; grpo and hrd"},
    {"rl.turn_discount", "", "of the next turn's return, in a turn's own"},
    {"rl.baseline", "", "baseline of a group's rewards; default with rl.turns > 1: leave_one_out"},
    {"rl.clip", "", "ratios are clipped to [1 - clip, 1 + clip]"},
    {"rl.speedup_limit", "ratio", "largest speed-up that counts"},
    {"rl.incorrect_penalty", "", "reward of incorrect answers, negated; without it 0"},
    {"rl.alpha", "", "weight of the plan's loss"},
    {"rl.uniform_reward", "", "code tokens get the plan's reward (ablation)"},
    {"rl.plan_incorrect_penalty", "", "the same for plan tokens, which then have advantages of their own"},
    {"rl.lambda", "", "temperature of log speed-ups"},
    {"rl.tau", "", "temperature of incorrect answers"},
    {"rl.beta", "", "weight of the KL penalty"},
    {"rl.delta", "", "KL divergence below which there is no penalty"},
    {"rl.tokenizer", "path", "tokenizer.json; without it the model's own"},
    {"rl.tasks", "paths", "a file of tasks (`nereid synth -o FILE.jsonl`) for each class"},
    {"rl.held_out", "paths", "a file of held-out tasks for each class, for pass@1"},
    {"rl.held_out_tasks", "tasks", "held-out tasks of each class in one evaluation"},
    {"rl.prompts_per_step", "prompts", "groups in a step"},
    {"rl.samples", "answers", "size of a group"},
    {"rl.branches", "answers",
     "of a group that continue from one plan, which is sampled once; divides rl.samples"},
    {"rl.max_tokens", "tokens", "longest answer"},
    {"rl.sequences", "sequences", "decoded at the same time, at most"},
    {"rl.updates", "steps", "optimizer steps on each step's rollouts"},
    {"rl.temperature", "", "sampling temperature"},
    {"rl.min_p", "share", "tokens less probable than this share of the likeliest are not sampled"},
    {"rl.code_temperature", "", "sampling temperature after the plan; without it the same"},
    {"rl.staleness", "steps",
     "steps that rollouts may lag behind the weights; default: 1 where hardware allows, else 0"},
    {"rl.importance_limit", "ratio", "largest importance weight of a token"},
    {"rl.judge_gpu", "index", "GPU of rank 0's judge, rank r uses r more; -1: the rank's own"},
    {"rl.judge_jobs", "answers", "judged at the same time by each rank; 0: from the number of cores"},
    {"rl.trials", "trials", "comparisons of each answer on the task's own inputs"},
    {"rl.fast_inputs", "", "fewer input distributions"},
    {"rl.times", "", "one judge verifies and times, or CPU verdicts first and timing apart"},
    {"rl.timing_seconds", "seconds", "sampling time of an answer's speed-up"},
    {"rl.policy", "", "what PyTorch may compute (docs/verdicts.md)"},
    {"rl.rule_reward", "", "false: rules do not change rewards (ablation)"},
    {"rl.judge_device", "", "where answers are judged"},
    {"rl.time_limit", "seconds", "for each phase of a candidate"},
    {"rl.recorded_answers", "path",
     "run folder whose answers to the same tasks are written in place of what is sampled (throughput)"},
    {"rl.straggler_timeout_s", "seconds", "wait for the last tenth of a step's verdicts; 0: no limit"},
    {"sft_mix.train", "paths", "folders of token shards"},
    {"sft_mix.rows", "rows", "rows of sequence_length tokens per update, over all ranks"},
    {"sft_mix.weight", "", "weight of the supervised loss"},
    {"curriculum.kind", "", "how the class of the next task is chosen"},
    {"curriculum.promote_at", "share", "held-out pass@1 at which the next class begins"},
    {"curriculum.shares", "shares", "one for each class"},
    {"curriculum.min_share", "share", "spread over all classes"},
    {"curriculum.memory", "rollouts", "after which a reward counts 1/e"},
};

// What a sample file sets where files differ; every factor is varied alone.
struct Factor {
  std::string key;
  std::vector<std::string> values;
};
const Factor kFactors[] = {{"model.backend", {"local", "tinker"}},
                           {"optimizer.kind", {"adamw", "muon"}},
                           {"schedule.kind", {"constant", "cosine", "warmup-stable-decay"}},
                           {"rl.objective", {"grpo", "hrd", "best", "drpo"}},
                           {"curriculum.kind", {"levels", "mixture", "learnt"}}};

// The keys that a file looks up with these choices.
std::vector<TomlKey> keys_of(bool rl, const std::map<std::string, std::string>& chosen) {
  const auto choice = [&](const char* key) { return chosen.at(key); };
  std::string text = fmt::format(
      "[model]\n{}vocab_size = 1048576\nhidden_size = 8\nintermediate_size = 8\nnum_hidden_layers = 1\n"
      "num_attention_heads = 1\neos_token_id = 1\n[data]\n[optimizer]\nkind = \"{}\"\n[schedule]\nkind = "
      "\"{}\"\n"
      "[checkpoints]\n[machine]\n",
      rl ? fmt::format("backend = \"{}\"\n", choice("model.backend")) : "", choice("optimizer.kind"),
      choice("schedule.kind"));
  std::vector<TomlKey> keys;
  if (!rl) {
    const auto read = parse_run_file(text, "run.toml", {.keys = &keys});
    return keys;
  }
  text += fmt::format(
      "[rl]\nobjective = \"{}\"\nincorrect_penalty = 1\nplan_incorrect_penalty = 1\ncode_temperature = 1\n"
      "staleness = 0\n[sft_mix]\n[curriculum]\nkind = \"{}\"\n",
      choice("rl.objective"), choice("curriculum.kind"));
  const auto read = parse_rl_file(text, "run.toml", &keys);
  return keys;
}

std::map<std::string, std::string> first_choices() {
  std::map<std::string, std::string> chosen;
  for (const auto& factor : kFactors) chosen[factor.key] = factor.values.front();
  return chosen;
}

// Defaults that depend on other keys, or on the file.
std::string initial_of(const TomlKey& key) {
  if (key.path == "name") return "the file's name";
  if (key.path == "model.num_key_value_heads") return "num_attention_heads";
  return key.initial;
}

// Tables stay together: the keys of a condition are found later than the others of their table.
void group_by_table(std::vector<RunFileKey>& keys) {
  const auto table_of = [](const RunFileKey& key) {
    const auto dot = key.path.find('.');
    return dot == std::string::npos ? std::string() : key.path.substr(0, dot);
  };
  std::vector<std::string> tables;
  for (const auto& key : keys)
    if (std::ranges::find(tables, table_of(key)) == tables.end()) tables.push_back(table_of(key));
  std::ranges::stable_sort(
      keys, {}, [&](const auto& key) { return std::ranges::find(tables, table_of(key)) - tables.begin(); });
}

}  // namespace

std::vector<RunFileKey> run_file_keys() {
  std::vector<RunFileKey> all;
  std::map<std::string, std::set<std::string>> runs;  // of a key: sft, rl
  std::map<std::string, std::map<std::string, std::vector<std::string>>>
      readers;  // ... by factor: its values
  for (const bool rl : {false, true}) {
    for (const auto& factor : kFactors) {
      for (const auto& value : factor.values) {
        auto chosen = first_choices();
        chosen[factor.key] = value;
        for (const auto& key : keys_of(rl, chosen)) {
          runs[key.path].insert(rl ? "rl" : "sft");
          auto& values = readers[key.path][factor.key];
          if (std::ranges::find(values, value) == values.end()) values.push_back(value);
          if (std::ranges::find(all, key.path, &RunFileKey::path) == all.end())
            all.push_back({key.path, key.type, initial_of(key), {}, {}, {}, {}});
        }
      }
    }
  }
  for (auto& key : all) {
    key.run = runs[key.path].size() == 2 ? "both" : *runs[key.path].begin();
    for (const auto& factor : kFactors) {
      const auto& values = readers[key.path][factor.key];
      if (values.empty() || values.size() == factor.values.size()) continue;
      std::string text;
      for (const auto& value : values) text += fmt::format("{}\"{}\"", text.empty() ? "" : " or ", value);
      key.condition = fmt::format("{} = {}", factor.key, text);
    }
    const auto found = std::ranges::find_if(kDescriptions, [&](const auto& d) { return key.path == d.path; });
    if (found != std::end(kDescriptions)) key.unit = found->unit, key.meaning = found->meaning;
  }
  group_by_table(all);
  return all;
}

}  // namespace nereid::train
