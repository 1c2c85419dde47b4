#include "nereid/train/rl/policy/local_policy.h"

#include <algorithm>
#include <optional>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/engine/cuda/cuda_device.h"
#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/train/rl/policy/tinker_policy.h"
#include "nereid/train/sft/checkpoint.h"
#include "nereid/train/sft/run_setup.h"

namespace nereid::train {
namespace {

class LocalPolicy : public Policy {
 public:
  explicit LocalPolicy(const PolicySetup& setup) : setup_(setup) {}

  Status open() {
    NEREID_TRY(auto weights, first_weights(run(), setup_.device));
    const std::string path =
        rl().tokenizer.empty() ? run().model.start_from + "/tokenizer.json" : rl().tokenizer;
    NEREID_TRY(const std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Tokenizer::load(path));
    if (tokenizer->size() > weights.config.vocab_size)
      return input_error("{}: has {} ids, the model a vocabulary of {}", path, tokenizer->size(),
                         weights.config.vocab_size);
    // What ends an answer here ends it wherever the checkpoints are used.
    NEREID_TRY(const auto chat,
               lm::read_chat_template(std::filesystem::absolute(path).parent_path(), *tokenizer));
    if (const auto end = tokenizer->find(chat.end_of_message()); end && weights.config.eos_token_ids.empty())
      weights.config.eos_token_ids = {static_cast<int64_t>(*end)};
    if (setup_.options->operators) {
      NEREID_TRY(weights.operators, setup_.options->operators(weights.config, setup_.device));
    }
    Ranks& ranks = *setup_.ranks;
    trainer_.emplace(run(), std::move(weights), ranks);
    if (setup_.run->sft_mix) {
      NEREID_TRY(const std::string text, read_file(path));
      NEREID_TRY(sft_mix_, SftMix::open(*setup_.run->sft_mix, run(), ranks, sha256_hex(text),
                                        setup_.options->run_file));
    }
    learner_.emplace(*setup_.run, *trainer_, ranks, sft_mix_.get());
    checkpoint_writer_.emplace(setup_.checkpoints(), run().checkpoints.keep, ranks,
                               std::filesystem::absolute(path).parent_path());
    NEREID_TRY(engine_, lm::open_engine_device(setup_.device, *setup_.installation));
    const int64_t answers = (rl().prompts_per_step + ranks.count() - 1) / ranks.count() * rl().samples;
    const auto asked_with =
        lm::prompts_of(std::filesystem::path(path).parent_path(), setup_.installation->package / "prompts");
    NEREID_TRY(auto prompts, lm::Prompts::load(asked_with));
    NEREID_TRY(auto writer, AnswerWriter::create(trainer_->weights(), *engine_, tokenizer, std::move(prompts),
                                                 {.max_tokens = rl().max_tokens,
                                                  .row_length = run().data.sequence_length,
                                                  .together = std::min(answers, rl().sequences),
                                                  .chat = chat}));
    writer_.emplace(std::move(writer));
    return ok_status();
  }

  Result<std::vector<DrawnAnswer>> write(const std::vector<Prompt>& prompts, const Sampling& sampling,
                                         const AnswerWriter::AnswerCallback& on_written) override {
    return writer_->write(prompts, sampling, on_written);
  }
  void finish(DrawnAnswer& answer) const override { writer_->finish(answer); }
  const AnswerFormat& format() const override { return writer_->format(); }
  int64_t vocab_size() const override { return trainer_->weights().config.vocab_size; }

  Result<Learnt> learn(const PrefetchedRollouts& written, StepRollouts& step, double share,
                       RunState& state) override {
    NEREID_TRY(auto learnt, learner_->learn(written, step, share));
    if (sft_mix_ && !learnt.no_number) state.place = sft_mix_->place();
    return learnt;
  }

  Status begin(RunState& state) override {
    if (!sft_mix_) return ok_status();
    state.data = sft_mix_->fingerprint();
    return sft_mix_->begin(state.place);
  }

  Result<RunState> load(const std::filesystem::path& checkpoint) override {
    NEREID_TRY(RunState state, load_checkpoint(checkpoint, *trainer_));
    if (sft_mix_ && state.data != sft_mix_->fingerprint())
      return input_error("{}: was made with another [sft_mix] than {} holds now", checkpoint.string(),
                         setup_.run->sft_mix->train.front());
    return state;
  }

  Status start_checkpoint(const RunState& state, std::string kept) override {
    return checkpoint_writer_->start(state, *trainer_, std::move(kept));
  }
  Status wait_for_checkpoint() override { return checkpoint_writer_->wait(); }
  Status look_at_checkpoint() override { return checkpoint_writer_->look(); }
  std::string weights_of(const std::filesystem::path& checkpoint) const override {
    return (checkpoint / "model").string();
  }

 private:
  const RunFile& run() const { return setup_.run->run; }
  const RlSettings& rl() const { return setup_.run->rl; }

  PolicySetup setup_;
  std::optional<Trainer> trainer_;
  std::unique_ptr<SftMix> sft_mix_;
  std::optional<Learner> learner_;
  std::optional<CheckpointWriter> checkpoint_writer_;
  std::unique_ptr<lm::Device> engine_;
  std::optional<AnswerWriter> writer_;
};

}  // namespace

Result<std::unique_ptr<Policy>> open_local_policy(const PolicySetup& setup) {
  auto policy = std::make_unique<LocalPolicy>(setup);
  NEREID_TRY_STATUS(policy->open());
  return std::unique_ptr<Policy>(std::move(policy));
}

Result<std::unique_ptr<Policy>> open_policy(const PolicySetup& setup) {
  return setup.run->run.model.service ? open_tinker_policy(setup) : open_local_policy(setup);
}

}  // namespace nereid::train
