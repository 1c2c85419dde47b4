#include "nereid/train/sft/sft.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/train/data/batch.h"
#include "nereid/train/sft/checkpoint.h"
#include "nereid/train/sft/profile.h"
#include "nereid/train/sft/run_setup.h"
#include "nereid/train/sft/trainer.h"
#include "nereid/train/throughput.h"

namespace nereid::train {
namespace {

constexpr int64_t kHeldOutSteps = 8;  // of global_batch_size rows each, at most

std::string time_left_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

class SftRun {
 public:
  SftRun(const TrainOptions& options, RunFile run, Ranks& ranks, at::Device device)
      : options_(options), run_(std::move(run)), ranks_(&ranks), device_(device) {}

  // The folder comes last: a run whose data or model are wrong leaves none.
  Status go() {
    folder_ = options_.folder.empty() ? std::filesystem::path("training") / run_.name : options_.folder;
    NEREID_TRY_STATUS(open_data());
    if (options_.check) return open_model();
    NEREID_TRY_STATUS(open_folder());
    NEREID_TRY_STATUS(open_model());
    return train();
  }

 private:
  bool leads() const { return ranks_->rank() == 0; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }

  // A folder belongs to one run file.
  Status open_folder() {
    if (!leads()) return ok_status();
    NEREID_TRY(folder_held_, open_run_folder(options_, folder_, "sft"));
    return ok_status();
  }

  Status open_data() {
    NEREID_TRY(train_set_, TokenSet::open(run_.data.train));
    if (!run_.data.held_out.empty()) {
      NEREID_TRY(held_out_set_, TokenSet::open(run_.data.held_out));
    }
    NEREID_TRY_STATUS(has_rows(*train_set_, "data.train"));
    return held_out_set_ ? has_rows(*held_out_set_, "data.held_out") : ok_status();
  }

  // What no row can be made of is an error before the first step, of the held-out set too.
  Status has_rows(const TokenSet& set, const char* key) const {
    uint32_t shortest = UINT32_MAX, longest = 0;
    for (uint64_t d = 0; d < set.documents(); ++d)
      shortest = std::min(shortest, set.length(d)), longest = std::max(longest, set.length(d));
    if (static_cast<int64_t>(shortest) > run_.data.sequence_length)
      return input_error(
          "{}: {}: all of its {} documents are longer than data.sequence_length ({}): raise it to {} for the "
          "shortest, {} for all",
          options_.run_file, key, set.documents(), run_.data.sequence_length, shortest, longest);
    const auto maker = BatchMaker::create(set, batch_settings(0));
    return maker.ok() ? ok_status()
                      : Status(input_error("{}: {}: {}", options_.run_file, key, maker.error().message));
  }

  BatchSettings batch_settings(uint64_t seed) const {
    return {.packing = {.row_length = run_.data.sequence_length, .window = run_.data.window, .seed = seed},
            .global_batch_size = run_.data.global_batch_size,
            .micro_batch_size = run_.data.micro_batch_size,
            .rank = ranks_->rank(),
            .ranks = ranks_->count()};
  }

  Status open_model() {
    NEREID_TRY(auto weights, first_weights(run_, device_));
    const auto& config = weights.config;
    for (const auto* set : {&train_set_, &held_out_set_})
      if (*set && (*set)->vocab_size() > config.vocab_size)
        return input_error("{}: the data has ids up to {}, the model a vocabulary of {}", options_.run_file,
                           (*set)->vocab_size() - 1, config.vocab_size);
    if (run_.data.sequence_length > config.max_position_embeddings)
      return input_error("{}: data.sequence_length ({}) is more than the model's {} positions",
                         options_.run_file, run_.data.sequence_length, config.max_position_embeddings);
    if (options_.operators) {
      NEREID_TRY(weights.operators, options_.operators(config, device_));
    }
    trainer_.emplace(run_, std::move(weights), *ranks_);
    NEREID_TRY(const auto tokenizer, tokenizer_folder());
    writer_.emplace(checkpoints(), run_.checkpoints.keep, *ranks_, tokenizer);
    state_.data = train_set_->fingerprint();
    NEREID_TRY(const auto latest, latest_checkpoint(checkpoints()));
    if (!latest) return ok_status();
    NEREID_TRY(const RunState state, load_checkpoint(*latest, *trainer_));
    if (state.data != state_.data)
      return input_error("{}: was made with other training data than {} holds now", latest->string(),
                         run_.data.train.front());
    state_ = state;
    return restore_time(*latest);
  }

  // What a run that ends with its seconds keeps: how many were over, and whether its last step is done.
  std::string time_state() const {
    return run_.schedule.seconds > 0 ? Json({{"seconds", spent_}, {"ended", ended_}}).dump() : "";
  }
  Status restore_time(const std::filesystem::path& checkpoint) {
    if (state_.more.empty()) return ok_status();
    const std::string where = (checkpoint / "state.json.more").string();
    NEREID_TRY(const Json json, parse_json(state_.more, where));
    const JsonField root(json, where);
    NEREID_TRY(const auto seconds, root.at("seconds"));
    NEREID_TRY(spent_, seconds.number());
    NEREID_TRY(ended_, root.boolean_at("ended", false));
    return ok_status();
  }

  // Where the tokenizer lies that checkpoints are to have; a path where there is none is no error of one that
  // was not named.
  Result<std::filesystem::path> tokenizer_folder() const {
    const std::string& named = run_.model.tokenizer;
    if (named.empty()) return std::filesystem::path(run_.model.start_from);
    NEREID_TRY(const std::string text, read_file(named));
    if (const std::string digest = sha256_hex(text); digest != train_set_->tokenizer())
      return input_error(
          "{}: model.tokenizer: expected what the data was made with, a file of the SHA-256 {}, got {} of {}",
          options_.run_file, train_set_->tokenizer(), named, digest);
    return std::filesystem::absolute(named).parent_path();
  }

  Status train() {
    NEREID_TRY(
        BatchMaker maker,
        BatchMaker::create(*train_set_, batch_settings(static_cast<uint64_t>(run_.seed)), state_.place));
    if (leads()) {
      NEREID_TRY(log_, MetricsLog::open(folder_, state_.step));
      progress_.emplace("train " + run_.name);
      if (state_.step > 0)
        progress_->note(fmt::format("{}: resumes from step {}", folder_.string(), state_.step));
      for (const KeyChange& change : folder_held_.changes)
        progress_->note(fmt::format("{}: {}", options_.run_file, to_string(change)));
      if (const auto out = maker.too_long() + maker.answerless(); out > 0)
        progress_->note(fmt::format(
            "{} of {} documents are left out: {} longer than {} tokens, {} without an answer", out,
            train_set_->documents(), maker.too_long(), run_.data.sequence_length, maker.answerless()));
    }
    BatchStream stream(std::move(maker));
    while (!ended_ && state_.step < run_.schedule.steps) {
      const Stopwatch clock;
      ended_ = is_last_step(run_.schedule, state_.step, spent_, latest_seconds_);
      NEREID_TRY(const StepData data, stream.next());
      const Status done = stepped(data, clock);
      if (!done && done.error().blame == Blame::kInterrupted) return stop_early();
      NEREID_TRY_STATUS(done);
      NEREID_TRY_STATUS(add_time(clock.seconds()));
      if (ended_ || state_.step % run_.checkpoints.every_steps == 0)
        NEREID_TRY_STATUS(writer_->start(state_, *trainer_));
      NEREID_TRY_STATUS(writer_->look());
      NEREID_TRY(const bool stop, anybody(interrupted()));
      if (stop && !ended_) return stop_early();
    }
    NEREID_TRY_STATUS(writer_->wait());
    NEREID_TRY(const auto latest, latest_checkpoint(checkpoints()));
    if (leads() && latest)
      progress_->note(fmt::format("{}: all {} steps are done; {}", folder_.string(), state_.step,
                                  (*latest / "model").string()));
    return ok_status();
  }

  Status stepped(const StepData& data, const Stopwatch& clock) {
    if (!leads() || state_.step != options_.profile_step) return one_step(data, clock);
    NEREID_TRY(const std::string table, profiled([&] { return one_step(data, clock); }));
    progress_->note(table);
    return ok_status();
  }

  // All ranks have rank 0's seconds: held-out losses are part of a step.
  Status add_time(double seconds) {
    if (run_.schedule.seconds <= 0) return ok_status();
    std::vector<double> taken = {leads() ? seconds : 0.0};
    NEREID_TRY_STATUS(ranks_->sum(taken));
    latest_seconds_ = taken[0];
    spent_ += latest_seconds_;
    ended_ = ended_ || spent_ >= run_.schedule.seconds;
    state_.more = time_state();
    return ok_status();
  }

  Result<bool> anybody(bool mine) {
    std::vector<double> sum = {mine ? 1.0 : 0.0};
    NEREID_TRY_STATUS(ranks_->sum(sum));
    return sum[0] > 0;
  }

  Status stop_early() {
    NEREID_TRY_STATUS(writer_->start(state_, *trainer_));
    NEREID_TRY_STATUS(writer_->wait());
    return Error{fmt::format("stopped after step {}; run the same command to resume", state_.step),
                 Blame::kInterrupted};
  }

  Status one_step(const StepData& data, const Stopwatch& clock) {
    // One rank may leave a step, of which nothing was applied; several end it together.
    const auto stop = ranks_->count() == 1 ? std::function<bool()>(interrupted) : nullptr;
    NEREID_TRY(const auto found, trainer_->gather(data, stop));
    if (!std::isfinite(found.loss) || !std::isfinite(found.gradient_norm)) return no_number_error(found);
    const double share = learning_rate_share(run_.schedule, state_.step, spent_);
    NEREID_TRY_STATUS(trainer_->apply(found.gradient_norm, share));
    const int64_t step = state_.step;
    state_ = {.step = step + 1,
              .place = data.next,
              .tokens = state_.tokens + data.tokens,
              .targets = state_.targets + data.targets,
              .data = state_.data,
              .more = {}};
    const double seconds = clock.seconds();
    Figures figures = {{"loss", found.loss},
                       {"gradient_norm", found.gradient_norm},
                       {"learning_rate", run_.optimizer.learning_rate * share},
                       {"tokens", static_cast<double>(state_.tokens)},
                       {"epoch", static_cast<double>(data.next.epoch)},
                       {"seconds", seconds},
                       {"tokens_per_s", static_cast<double>(data.tokens) / seconds},
                       {"memory_gb", peak_gigabytes(device_)}};
    if (const auto peak = peak_bfloat16_flops(device_name_)) {
      double flops = 0;
      for (const Batch& batch : data.batches)
        flops += training_flops(trainer_->weights().config, batch.cumulative_lengths);
      figures.emplace_back("mfu", flops / seconds / *peak);  // of this rank: all do alike
    }
    const bool look = held_out_set_ && (state_.step % run_.held_out_every == 0 || ended_);
    if (look) {
      NEREID_TRY(const double loss, held_out_loss());
      figures.emplace_back("held_out_loss", loss);
    }
    return leads() ? report(step, figures, seconds) : ok_status();
  }

  // The step's figures in all the places that they go to.
  Status report(int64_t step, const Figures& figures, double seconds) {
    NEREID_TRY_STATUS(log_->add(step, figures));
    if (options_.report) NEREID_TRY_STATUS(options_.report(step, figures));
    average_seconds_ = average_seconds_ > 0 ? 0.9 * average_seconds_ + 0.1 * seconds : seconds;
    const std::map<std::string, double> named(figures.begin(), figures.end());
    const bool timed = run_.schedule.seconds > 0;
    std::string line = fmt::format("step {}{}, loss {:.4f}, {:.0f} tokens/s", step + 1,
                                   timed ? "" : fmt::format("/{}", run_.schedule.steps), named.at("loss"),
                                   named.at("tokens_per_s"));
    if (named.contains("mfu")) line += fmt::format(", MFU {:.1f} %", 100 * named.at("mfu"));
    const double left = timed ? run_.schedule.seconds - spent_ - seconds
                              : average_seconds_ * static_cast<double>(run_.schedule.steps - step - 1);
    line += fmt::format(", {:.1f} GB, {}", named.at("memory_gb"), time_left_text(std::max(left, 0.0)));
    if (const auto held_out = named.find("held_out_loss"); held_out != named.end())
      progress_->note(fmt::format("{}; held out {:.4f}", line, held_out->second));
    else
      progress_->say(line);
    return ok_status();
  }

  // Nothing was applied: what there is is the state after the step before, and it is kept.
  Status no_number_error(const Trainer::Figures& found) {
    NEREID_TRY_STATUS(writer_->start(state_, *trainer_));
    NEREID_TRY_STATUS(writer_->wait());
    return our_error(
        "step {}: expected finite numbers, got a loss of {} and a gradient of norm {}, for the {} rows from "
        "epoch {}, window {}, row {}; "
        "the state before it is in {}",
        state_.step, found.loss, found.gradient_norm, run_.data.global_batch_size, state_.place.epoch,
        state_.place.window, state_.place.row, checkpoints().string());
  }

  // Of the same rows each time: the first of the held-out set's first epoch.
  Result<double> held_out_loss() {
    NEREID_TRY(BatchMaker maker, BatchMaker::create(*held_out_set_, batch_settings(0)));
    std::vector<double> sums = {0};
    double targets = 0;
    for (int64_t i = 0; i < kHeldOutSteps; ++i) {
      NEREID_TRY(const StepData data, maker.next());
      if (i > 0 && data.next.epoch > 0) break;
      NEREID_TRY(const double sum, trainer_->loss_sum(data.batches));
      sums[0] += sum;
      targets += static_cast<double>(data.targets);
    }
    NEREID_TRY_STATUS(ranks_->sum(sums));
    return sums[0] / targets;
  }

  TrainOptions options_;
  RunFile run_;
  Ranks* ranks_;
  at::Device device_;
  std::string device_name_ = device_name(device_);
  std::filesystem::path folder_;
  OpenRun folder_held_;
  std::optional<TokenSet> train_set_, held_out_set_;
  std::optional<Trainer> trainer_;
  std::optional<CheckpointWriter> writer_;
  RunState state_;
  std::optional<MetricsLog> log_;
  std::optional<Progress> progress_;
  double average_seconds_ = 0;
  double spent_ = 0, latest_seconds_ = 0;  // of a run that ends with its seconds: rank 0's
  bool ended_ = false;                     // the last step has begun
};

}  // namespace

Status run_sft(const TrainOptions& options) {
  NEREID_TRY(const RunFile run, read_run_file(options.run_file));
  // Before a process for each rank has opened its device.
  if (const auto& data = run.data; data.global_batch_size % (data.micro_batch_size * options.ranks) != 0)
    return input_error(
        "{}: data.global_batch_size: expected a multiple of micro_batch_size ({}) times {} ranks, got {}",
        options.run_file, data.micro_batch_size, options.ranks, data.global_batch_size);
  return on_ranks(options.ranks, options.device, run.machine,
                  [&](Ranks& ranks, at::Device device) { return SftRun(options, run, ranks, device).go(); });
}

}  // namespace nereid::train
