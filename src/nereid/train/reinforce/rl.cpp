#include "nereid/train/reinforce/rl.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/interrupt.h"
#include "nereid/base/json_field.h"
#include "nereid/base/progress.h"
#include "nereid/engine/runner/cuda/cuda_device.h"
#include "nereid/engine/runner/generation.h"
#include "nereid/model/chat.h"
#include "nereid/model/decoder/device.h"
#include "nereid/model/tokenizer.h"
#include "nereid/train/reinforce/judge.h"
#include "nereid/train/reinforce/rollouts.h"
#include "nereid/train/reinforce/writer.h"
#include "nereid/train/rl/collapse_watch.h"
#include "nereid/train/rl/rl_file.h"
#include "nereid/train/torch/checkpoint.h"
#include "nereid/train/torch/run_setup.h"
#include "nereid/train/torch/trainer.h"

namespace nereid::train {
namespace {

// The files of tasks, and which one of each class comes next: each epoch of a class in an order of its own.
class TaskSource {
 public:
  static Result<TaskSource> open(const std::vector<std::string>& files, uint64_t seed) {
    TaskSource source;
    source.seed_ = seed;
    for (const auto& file : files) {
      NEREID_TRY(auto tasks, read_tasks(file));
      source.tasks_.push_back(std::move(tasks));
    }
    source.drawn_.resize(files.size(), 0);
    return source;
  }
  const std::string& next(int64_t of_class) {
    const auto c = static_cast<size_t>(of_class);
    const uint64_t size = tasks_[c].size(), number = drawn_[c]++;
    return tasks_[c][permuted(number % size, size, seed_ * 1'000'003 + number / size * 1'009 + c)];
  }
  const std::vector<std::string>& all(int64_t of_class) const {
    return tasks_[static_cast<size_t>(of_class)];
  }
  std::vector<uint64_t>& drawn() { return drawn_; }

 private:
  uint64_t seed_ = 0;
  std::vector<std::vector<std::string>> tasks_;  // by class
  std::vector<uint64_t> drawn_;                  // of each class, so far
};

class RlLoop {
 public:
  RlLoop(const RlOptions& options, RlRun told, at::Device device)
      : options_(options), told_(std::move(told)), device_(device) {}

  Status go() {
    folder_ = options_.folder.empty() ? std::filesystem::path("training") / run().name : options_.folder;
    NEREID_TRY_STATUS(open_run_folder(folder_, options_.run_file));
    NEREID_TRY(installation_, Installation::locate());
    NEREID_TRY(tasks_, TaskSource::open(rl().tasks, static_cast<uint64_t>(run().seed)));
    NEREID_TRY(held_out_, TaskSource::open(rl().held_out, 0));
    NEREID_TRY_STATUS(open_model());
    return loop();
  }

 private:
  const RunFile& run() const { return told_.run; }
  const RlSettings& rl() const { return told_.rl; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }

  Status open_model() {
    NEREID_TRY(auto weights, first_weights(run(), device_));
    const std::string tokenizer =
        rl().tokenizer.empty() ? run().model.start_from + "/tokenizer.json" : rl().tokenizer;
    NEREID_TRY(tokenizer_, model::Tokenizer::load(tokenizer));
    if (tokenizer_->size() > weights.config.vocab_size)
      return input_error("{}: has {} ids, the model a vocabulary of {}", tokenizer, tokenizer_->size(),
                         weights.config.vocab_size);
    if (options_.operators) {
      NEREID_TRY(weights.operators, options_.operators(weights.config, device_));
    }
    trainer_.emplace(run(), std::move(weights), alone_);
    checkpoint_writer_.emplace(checkpoints(), run().checkpoints.keep, alone_);
    NEREID_TRY(const auto latest, latest_checkpoint(checkpoints()));
    if (latest) {
      NEREID_TRY(state_, load_checkpoint(*latest, *trainer_));
      kept_ = state_.step;
      NEREID_TRY_STATUS(restore(latest->string()));
    }
    NEREID_TRY(engine_, engine::open_engine_device(device_, *installation_));
    const auto asked_with = model::prompts_of(std::filesystem::path(tokenizer).parent_path(),
                                              installation_->package / "prompts");
    NEREID_TRY(auto prompts, model::Prompts::load(asked_with));
    NEREID_TRY(auto writer, AnswerWriter::create(
                                trainer_->weights(), *engine_, tokenizer_, std::move(prompts),
                                {.most_tokens = rl().most_tokens,
                                 .row_length = run().data.sequence_length,
                                 .together = std::min<int64_t>(rl().prompts_per_step * rl().samples, 256)}));
    writer_.emplace(std::move(writer));
    return ok_status();
  }

  std::string more() {
    return Json({{"curriculum", curriculum_.state()}, {"drawn", tasks_->drawn()}}).dump();
  }
  Status restore(const std::string& checkpoint) {
    const std::string where = checkpoint + "/state.json.more";
    NEREID_TRY(const Json json, parse_json(state_.more, where));
    const JsonField root(json, where);
    NEREID_TRY(const auto curriculum, root.at("curriculum"));
    NEREID_TRY_STATUS(curriculum_.restore(curriculum.json(), curriculum.path()));
    NEREID_TRY(const auto drawn, root.at("drawn"));
    auto& counts = tasks_->drawn();
    NEREID_TRY(const size_t size, drawn.size(counts.size()));
    if (size != counts.size()) return drawn.expected(fmt::format("{} counts", counts.size()));
    for (size_t c = 0; c < size; ++c) {
      NEREID_TRY(const int64_t count, drawn.item(c).integer(0, INT64_MAX));
      counts[c] = static_cast<uint64_t>(count);
    }
    return ok_status();
  }

  Status loop() {
    NEREID_TRY(log_, MetricsLog::open(folder_, state_.step));
    Progress progress("train " + run().name);
    while (state_.step < run().schedule.steps) {
      auto step = one_step();
      if (!step.ok()) {
        NEREID_TRY_STATUS(keep_last_step());
        return step.error();
      }
      Figures figures = *std::move(step);
      const bool last = state_.step == run().schedule.steps;
      if (!rl().held_out.empty() && (last || state_.step % run().held_out_every == 0))
        NEREID_TRY_STATUS(look_at_held_out(figures, progress));
      NEREID_TRY_STATUS(log_->add(state_.step - 1, figures));
      if (options_.tell) NEREID_TRY_STATUS(options_.tell(state_.step - 1, figures));
      for (const auto& alarm : alarms_) progress.note(fmt::format("step {}: {}", state_.step - 1, alarm));
      const std::map<std::string, double> named(figures.begin(), figures.end());
      progress.say(fmt::format(
          "step {}/{}, reward {:.3f}, {:.0f} tokens, {:.1f} s writing, {:.1f} s judging, {:.1f} s learning",
          state_.step, run().schedule.steps, named.at("reward"), named.at("length"), named.at("write_s"),
          named.at("judge_s"), named.at("learn_s")));
      state_.more = more();
      if (last || state_.step % run().checkpoints.every_steps == 0 || interrupted()) {
        NEREID_TRY_STATUS(checkpoint_writer_->start(state_, *trainer_));
        kept_ = state_.step;
      }
      if (interrupted() && !last) {
        NEREID_TRY_STATUS(checkpoint_writer_->wait());
        return Error{fmt::format("stopped after step {}; the same command goes on from there", state_.step),
                     Blame::kInterrupted};
      }
    }
    return checkpoint_writer_->wait();
  }

  // An interrupted step has changed nothing that a checkpoint holds: what was learnt before it is kept.
  Status keep_last_step() {
    if (!interrupted() || state_.step == kept_) return ok_status();
    NEREID_TRY_STATUS(checkpoint_writer_->start(state_, *trainer_));
    return checkpoint_writer_->wait();
  }

  // Groups of rollouts, judged; those that could not be judged are left out.
  struct Gathered {
    std::vector<WrittenAnswer> answers;
    std::vector<Rollout> rollouts;
    std::vector<size_t> groups{0};
    RolloutFigures figures;
    int64_t unjudged = 0;
  };

  Result<Figures> one_step() {
    Stopwatch clock;
    std::vector<std::string> asked;
    std::vector<int64_t> classes;
    for (int64_t p = 0; p < rl().prompts_per_step; ++p) {
      classes.push_back(curriculum_.draw());
      asked.push_back(tasks_->next(classes.back()));
    }
    const auto seed = static_cast<uint64_t>(run().seed) * 1'000'000'007 + static_cast<uint64_t>(state_.step);
    NEREID_TRY(
        const auto texts,
        writer_->write(asked, {.samples = rl().samples, .temperature = rl().temperature, .seed = seed}));
    const double write_s = clock.seconds();
    clock = Stopwatch();
    NEREID_TRY(const auto verdicts, judge(asked, texts));
    Gathered gathered = gather(texts, verdicts, classes);
    const double judge_s = clock.seconds();
    clock = Stopwatch();
    NEREID_TRY(Figures figures, learn(gathered));
    ++state_.step;
    alarms_ = watch_.look(gathered.figures);
    for (const auto& figure : CollapseWatch::metrics(gathered.figures)) figures.push_back(figure);
    const auto shares = curriculum_.shares();
    for (size_t c = 0; c < shares.size(); ++c) figures.emplace_back(fmt::format("share/{}", c), shares[c]);
    figures.emplace_back("unjudged", static_cast<double>(gathered.unjudged));
    figures.insert(figures.end(), {{"write_s", write_s},
                                   {"judge_s", judge_s},
                                   {"learn_s", clock.seconds()},
                                   {"memory_gb", peak_gigabytes(device_)}});
    return figures;
  }

  Result<std::vector<JudgedAnswer>> judge(const std::vector<std::string>& asked,
                                          const std::vector<DrawnAnswer>& texts) {
    std::vector<AnswerToJudge> answers;
    for (const auto& text : texts) answers.push_back({.task = asked[text.prompt], .answer = text.text});
    return judge_answers(*installation_, answers,
                         {.policy = rl().policy,
                          .device = rl().judge_device,
                          .time_limit = rl().time_limit,
                          .times = device_.is_cuda() && rl().judge_device != "cpu",
                          .rule_reward = rl().rule_reward},
                         folder_);
  }

  Gathered gather(const std::vector<DrawnAnswer>& texts, const std::vector<JudgedAnswer>& verdicts,
                  const std::vector<int64_t>& classes) {
    Gathered found;
    double tokens = 0, cut = 0, rewards = 0, alike = 0, verified = 0, log_speedups = 0;
    for (size_t i = 0; i < texts.size();) {
      const size_t prompt = texts[i].prompt, begin = found.rollouts.size();
      for (; i < texts.size() && texts[i].prompt == prompt; ++i) {
        const auto& verdict = verdicts[i];
        if (verdict.word == "Error") {
          ++found.unjudged;
          continue;
        }
        ++found.figures.verdicts[verdict.word];
        if (!verdict.rule.empty()) ++found.figures.rules[verdict.rule];
        if (verdict.word == "Verified") ++verified, log_speedups += std::log(verdict.judged.speedup);
        found.answers.push_back(texts[i].tokens);
        found.rollouts.push_back({.log_probabilities = {},
                                  .old_log_probabilities = {},
                                  .plan_tokens = texts[i].plan_tokens,
                                  .judged = verdict.judged});
        const double reward = binary_reward(verdict.judged);
        curriculum_.rewarded(classes[prompt], reward);
        rewards += reward, cut += texts[i].cut_off;
        tokens += static_cast<double>(texts[i].tokens.tokens.size() - texts[i].tokens.prompt);
      }
      if (found.rollouts.size() == begin) continue;
      found.groups.push_back(found.rollouts.size());
      const auto first = found.rollouts.begin() + static_cast<std::ptrdiff_t>(begin);
      alike += std::all_of(first, found.rollouts.end(), [&](const Rollout& r) {
        return binary_reward(r.judged) == binary_reward(first->judged);
      });
    }
    const double count = std::max(static_cast<double>(found.rollouts.size()), 1.0);
    found.figures.length = tokens / count, found.figures.cut_off = cut / count,
    found.figures.reward = rewards / count;
    if (verified > 0) found.figures.speedup = std::exp(log_speedups / verified);
    found.figures.groups_alike = alike / std::max(static_cast<double>(found.groups.size() - 1), 1.0);
    state_.tokens += static_cast<int64_t>(tokens);
    return found;
  }

  // Some optimizer steps on these rollouts. The policy that wrote them is the one at the first of these.
  Result<Figures> learn(Gathered& gathered) {
    const PackedAnswers packed =
        pack_answers(gathered.answers, run().data.sequence_length, run().data.rows_at_once);
    const double share = learning_rate_share(run().schedule, state_.step);
    Figures figures;
    for (int64_t update = 0; update < rl().updates && !gathered.rollouts.empty(); ++update) {
      const double entropy = score(packed, gathered);
      if (update == 0) {
        gathered.figures.entropy = entropy;
        for (Rollout& rollout : gathered.rollouts) rollout.old_log_probabilities = rollout.log_probabilities;
      }
      const ObjectiveValue value = evaluate_objective(rl().objective, gathered.rollouts, gathered.groups);
      NEREID_TRY(const auto found, trainer_->gather_from(packed.batches, spread(packed, value)));
      if (!std::isfinite(value.loss) || !std::isfinite(found.gradient_norm))
        return tell_no_number(value.loss, found.gradient_norm);
      NEREID_TRY_STATUS(trainer_->apply(found.gradient_norm, share));
      gathered.figures.kl = value.kl;
      figures = {{"loss", value.loss},
                 {"gradient_norm", found.gradient_norm},
                 {"learning_rate", run().optimizer.learning_rate * share},
                 {"clipped_share", value.clipped_share}};
    }
    return figures;
  }

  // Every rollout's log-probabilities under the weights as they are; the mean entropy of a token.
  double score(const PackedAnswers& packed, Gathered& gathered) const {
    std::vector<Trainer::Scores> scores;
    for (const Batch& batch : packed.batches) scores.push_back(trainer_->score(batch));
    double entropy = 0, tokens = 0;
    for (size_t i = 0; i < gathered.rollouts.size(); ++i) {
      const auto& place = packed.places[i];
      const size_t length = gathered.answers[i].tokens.size() - gathered.answers[i].prompt;
      const float* found = scores[place.batch].log_probabilities.const_data_ptr<float>() + place.first;
      const float* spread = scores[place.batch].entropies.const_data_ptr<float>() + place.first;
      gathered.rollouts[i].log_probabilities.assign(found, found + length);
      for (size_t t = 0; t < length; ++t) entropy += spread[t];
      tokens += static_cast<double>(length);
    }
    return tokens > 0 ? entropy / tokens : 0;
  }

  static std::vector<at::Tensor> spread(const PackedAnswers& packed, const ObjectiveValue& value) {
    std::vector<at::Tensor> gradients;
    for (const Batch& batch : packed.batches)
      gradients.push_back(at::zeros({std::ssize(batch.tokens)}, at::kFloat));
    for (size_t i = 0; i < value.gradients.size(); ++i)
      std::ranges::copy(value.gradients[i],
                        gradients[packed.places[i].batch].data_ptr<float>() + packed.places[i].first);
    return gradients;
  }

  Error tell_no_number(double loss, double norm) {
    state_.more = more();
    if (auto kept = checkpoint_writer_->start(state_, *trainer_); !kept.ok()) return kept.error();
    if (auto kept = checkpoint_writer_->wait(); !kept.ok()) return kept.error();
    return our_error(
        "step {}: expected finite numbers, got a loss of {} and a gradient of norm {}; the state before it "
        "is in {}",
        state_.step, loss, norm, checkpoints().string());
  }

  // pass@1, greedily, of the classes that are trained on.
  Status look_at_held_out(Figures& figures, Progress& progress) {
    const auto shares = curriculum_.shares();
    for (size_t c = 0; c < shares.size(); ++c) {
      if (shares[c] <= 0) continue;
      const auto of_class = static_cast<int64_t>(c);
      const auto& all = held_out_->all(of_class);
      const std::vector<std::string> asked(all.begin(),
                                           all.begin() + std::min(std::ssize(all), rl().held_out_tasks));
      NEREID_TRY(const auto texts, writer_->write(asked, {.samples = 1, .temperature = 0, .seed = 0}));
      NEREID_TRY(const auto verdicts, judge(asked, texts));
      double passed = 0, judged = 0;
      for (const auto& verdict : verdicts)
        judged += verdict.word != "Error", passed += verdict.word == "Verified";
      const double rate = judged > 0 ? passed / judged : 0;
      figures.emplace_back(fmt::format("pass_at_1/{}", c), rate);
      if (curriculum_.looked(of_class, rate))
        progress.note(fmt::format("step {}: pass@1 is {:.2f}: class {} now", state_.step - 1, rate, c + 1));
    }
    return ok_status();
  }

  RlOptions options_;
  RlRun told_;
  at::Device device_;
  std::filesystem::path folder_;
  std::optional<Installation> installation_;
  std::optional<TaskSource> tasks_, held_out_;
  std::shared_ptr<const model::Tokenizer> tokenizer_;
  Alone alone_;
  std::optional<Trainer> trainer_;
  std::optional<CheckpointWriter> checkpoint_writer_;
  std::unique_ptr<engine::Device> engine_;
  std::optional<AnswerWriter> writer_;
  Curriculum curriculum_{told_.curriculum, static_cast<uint64_t>(told_.run.seed)};
  CollapseWatch watch_;
  std::vector<std::string> alarms_;
  RunState state_;
  int64_t kept_ = 0;  // the latest checkpoint's step
  std::optional<MetricsLog> log_;
};

}  // namespace

Status run_rl(const RlOptions& options) {
  NEREID_TRY(const std::string text, read_file(options.run_file, 1 << 20));
  NEREID_TRY(RlRun told, parse_rl_file(text, options.run_file));
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // before CUDA starts
  NEREID_TRY(const at::Device device, model::open_device(options.device));
  c10::OptionalDeviceGuard guard;
  if (device.is_cuda()) guard.reset_device(device);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  return RlLoop(options, std::move(told), device).go();
}

}  // namespace nereid::train
