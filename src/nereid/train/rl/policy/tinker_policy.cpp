#include "nereid/train/rl/policy/tinker_policy.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "nereid/base/json_field.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/checkpoint/staged_folder.h"
#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/train/rl/policy/tinker_client.h"
#include "nereid/train/sft/checkpoint.h"

namespace nereid::train {
namespace {

constexpr int64_t kMaxVocabulary = 1 << 24;           // a model's may be larger than its tokenizer's
constexpr const char* kServiceName = "service.json";  // of a checkpoint: where the service keeps the weights

Json adam_of(const OptimizerSettings& optimizer, double share) {
  return {{"learning_rate", optimizer.learning_rate * share},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"eps", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay},
          {"grad_clip_norm", optimizer.clip_norm}};
}

Result<std::vector<float>> floats_of(const JsonField& list, size_t size) {
  NEREID_TRY(const size_t found, list.size(size));
  if (found != size) return list.expected(fmt::format("{} numbers, one for each token", size));
  std::vector<float> numbers(size);
  for (size_t t = 0; t < size; ++t) {
    NEREID_TRY(const double number, list.item(t).number());
    numbers[t] = static_cast<float>(number);
  }
  return numbers;
}

class TinkerPolicy : public Policy {
 public:
  explicit TinkerPolicy(const PolicySetup& setup) : setup_(setup) {}

  Status open() {
    const std::string& file = setup_.options->run_file;
    if (setup_.ranks->count() > 1)
      return input_error("--ranks {}: expected 1 with model.backend = \"tinker\": the service has the GPUs",
                         setup_.ranks->count());
    if (setup_.run->sft_mix)
      return input_error("{}: [sft_mix]: expected none with model.backend = \"tinker\"", file);
    if (rl().code_temperature || rl().min_p > 0)
      return input_error(
          "{}: rl.{}: expected none with model.backend = \"tinker\": such a service has temperature alone",
          file, rl().min_p > 0 ? "min_p" : "code_temperature");
    if (rl().branches > 1)
      return input_error(
          "{}: rl.branches: expected 1 with model.backend = \"tinker\": such a service has no "
          "forks of a sample",
          file);
    if (run().optimizer.kind != OptimizerSettings::Kind::kAdamW)
      return input_error("{}: optimizer.kind: expected \"adamw\" with model.backend = \"tinker\"", file);
    if (rl().tokenizer.empty())
      return input_error("{}: rl.tokenizer: expected the tokenizer.json of {}", file, service().base_model);
    const std::filesystem::path path = rl().tokenizer;
    NEREID_TRY(const std::shared_ptr<const lm::Tokenizer> tokenizer, lm::Tokenizer::load(path));
    NEREID_TRY(auto prompts, lm::Prompts::load(lm::prompts_of(path.parent_path(),
                                                              setup_.installation->package / "prompts")));
    NEREID_TRY(const auto chat,
               lm::read_chat_template(std::filesystem::absolute(path).parent_path(), *tokenizer));
    NEREID_TRY(auto format,
               AnswerFormat::create(tokenizer, std::move(prompts), run().data.sequence_length, chat));
    format_.emplace(std::move(format));
    const auto log = setup_.options->check ? std::filesystem::path() : setup_.folder / "service-0.log";
    NEREID_TRY(client_, TinkerClient::start(*setup_.installation, log));
    return ok_status();
  }

  Result<std::vector<DrawnAnswer>> write(const std::vector<Prompt>& prompts, const Sampling& sampling,
                                         const AnswerWriter::AnswerCallback& on_written) override {
    std::vector<DrawnAnswer> answers;
    Json asked = Json::array();
    for (const Prompt& prompt : prompts) {
      DrawnAnswer answer{.prompt = prompt.number, .tokens = {}, .engine_logprobs = {}, .text = {}};
      NEREID_TRY(answer.tokens, format_->prompt_of(prompt));
      const auto room = run().data.sequence_length - std::ssize(answer.tokens.tokens);
      asked.push_back({{"tokens", answer.tokens.tokens},
                       {"seed", (sampling.seed * 1'000'003 + prompt.number) % 0x7fffffff},
                       {"max_tokens", std::min(rl().max_tokens, room)}});
      for (int64_t sample = 0; sample < sampling.samples; ++sample) {
        answer.sample = static_cast<size_t>(sample);
        answers.push_back(answer);
      }
    }
    const Json request = {{"op", "sample"},
                          {"prompts", std::move(asked)},
                          {"samples", sampling.samples},
                          {"temperature", sampling.temperature},
                          {"stop", {format_->end_token()}}};
    const auto take = [&](const Json& part) -> Status {
      const JsonField root(part, "the service's samples");
      NEREID_TRY(const auto field, root.at("prompt"));
      NEREID_TRY(const int64_t prompt, field.integer(0, std::ssize(prompts) - 1));
      NEREID_TRY(const auto sequences, root.at("sequences"));
      NEREID_TRY(const size_t count, sequences.size(static_cast<size_t>(sampling.samples)));
      if (std::cmp_not_equal(count, sampling.samples))
        return sequences.expected(fmt::format("{} samples", sampling.samples));
      for (size_t s = 0; s < count; ++s) {
        const size_t index = static_cast<size_t>(prompt * sampling.samples) + s;
        NEREID_TRY_STATUS(take_sequence(sequences.item(s), answers[index]));
        if (on_written) on_written(index, answers[index]);
      }
      return ok_status();
    };
    auto sampled = client_->ask(request, sampling.interruptible, take);
    if (!sampled.ok()) return failed("the samples", sampled.error());
    return answers;
  }

  void finish(DrawnAnswer& answer) const override { format_->finish(answer); }
  const AnswerFormat& format() const override { return *format_; }
  int64_t vocab_size() const override { return kMaxVocabulary; }

  Result<Learnt> learn(const PrefetchedRollouts& written, StepRollouts& step, double share,
                       RunState& /*state*/) override {
    Learnt learnt;
    if (step.rollouts.empty()) return learnt;
    std::vector<Rollout> rollouts;
    for (const ScoredRollout& rollout : step.rollouts)
      rollouts.push_back({.log_probabilities = std::vector<float>(rollout.length, 0),
                          .old_log_probabilities = std::vector<float>(rollout.length, 0),
                          .plan_tokens = rollout.plan_tokens,
                          .judged = rollout.judged});
    // At the first update ratios are 1, and only drpo asks what the log-probabilities are.
    const bool at_once = rl().updates == 1 && rl().objective.kind != ObjectiveSettings::Kind::kDrpo;
    for (int64_t update = 0; update < rl().updates && !learnt.no_number; ++update) {
      if (!at_once) NEREID_TRY_STATUS(score(written, step, rollouts, update == 0, learnt));
      NEREID_TRY_STATUS(one_update(written, step, rollouts, at_once, share, learnt));
    }
    return learnt;
  }

  Status begin(RunState& /*state*/) override { return opened_ ? ok_status() : open_service(""); }

  Result<RunState> load(const std::filesystem::path& checkpoint) override {
    NEREID_TRY(RunState state, read_run_state(checkpoint));
    const std::string where = (checkpoint / kServiceName).string();
    NEREID_TRY(const std::string text, read_file(where, 1 << 20));
    NEREID_TRY(const Json json, parse_json(text, where));
    const JsonField root(json, where);
    NEREID_TRY(const std::string base_model, root.text_at("base_model"));
    if (base_model != service().base_model)
      return input_error("{}: is of {}, and model.base_model is {}", where, base_model, service().base_model);
    NEREID_TRY(saved_, root.text_at("path"));
    NEREID_TRY_STATUS(open_service(saved_));
    return state;
  }

  // Saved by the service under a name of this run; the folder says where.
  Status start_checkpoint(const RunState& state, std::string kept) override {
    const auto path = checkpoint_path(setup_.checkpoints(), state.step);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return ok_status();
    std::string name = fmt::format("{}-{:08}-{}", run().name, state.step, ::getpid());
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; }, '-');
    auto saved = client_->ask({{"op", "save"}, {"name", name}}, /*interruptible=*/false);
    if (!saved.ok()) return failed("the checkpoint was not saved", saved.error());
    const JsonField root(*saved, "the service's answer");
    NEREID_TRY(saved_, root.text_at("path"));
    std::filesystem::create_directories(setup_.checkpoints(), error);
    NEREID_TRY(auto staged, lm::StagedFolder::create(path));
    const Json where = {{"path", saved_}, {"base_model", service().base_model}, {"url", service().url}};
    NEREID_TRY_STATUS(write_file_atomically(staged.staged() / kServiceName, where.dump(1) + "\n"));
    NEREID_TRY_STATUS(write_run_state(staged.staged(), state, kept));
    NEREID_TRY_STATUS(staged.publish());
    return prune_checkpoints(setup_.checkpoints(), run().checkpoints.keep);
  }
  Status wait_for_checkpoint() override { return ok_status(); }
  Status look_at_checkpoint() override { return ok_status(); }
  std::string weights_of(const std::filesystem::path& /*checkpoint*/) const override { return saved_; }

 private:
  const RunFile& run() const { return setup_.run->run; }
  const RlSettings& rl() const { return setup_.run->rl; }
  const ServiceSettings& service() const { return *run().model.service; }

  Status open_service(const std::string& state) {
    const Json request = {{"op", "open"},
                          {"base_model", service().base_model},
                          {"rank", service().lora_rank},
                          {"seed", run().seed},
                          {"url", service().url},
                          {"reduction", service().reduction},
                          {"patience", service().patience},
                          {"state", state}};
    auto opened = client_->ask(request, /*interruptible=*/true);
    if (!opened.ok()) return failed("it was not opened", opened.error());
    opened_ = true;
    return ok_status();
  }

  Error failed(const std::string& what, const Error& error) const {
    if (error.blame == Blame::kInterrupted) return error;
    const std::string last =
        saved_.empty() ? "no checkpoint was saved"
                       : fmt::format("the last checkpoint is {}; the same command resumes from it", saved_);
    return Error{
        fmt::format("the service at {}: {}: {} ({})",
                    service().url.empty() ? "$TINKER_BASE_URL" : service().url, what, error.message, last),
        error.blame};
  }

  Status take_sequence(const JsonField& sequence, DrawnAnswer& answer) const {
    NEREID_TRY(const auto tokens, sequence.at("tokens"));
    NEREID_TRY(const size_t count, tokens.size(static_cast<size_t>(rl().max_tokens)));
    if (count == 0) return tokens.expected("at least one token");
    for (size_t t = 0; t < count; ++t) {
      NEREID_TRY(const int64_t token, tokens.item(t).integer(0, kMaxVocabulary - 1));
      answer.tokens.tokens.push_back(static_cast<int32_t>(token));
    }
    NEREID_TRY(const auto logprobs, sequence.at("logprobs"));
    NEREID_TRY(answer.engine_logprobs, floats_of(logprobs, count));
    format_->finish(answer);
    return ok_status();
  }

  // The answers that count, each with a number for each of its tokens.
  template <typename LogProbs, typename Advantages>
  Json data_of(const PrefetchedRollouts& written, const StepRollouts& step, const LogProbs& logprobs,
               const Advantages& advantages) const {
    Json data = Json::array();
    for (size_t i = 0; i < step.rollouts.size(); ++i) {
      const DrawnAnswer& answer = written.answers[*step.rollouts[i].own];
      data.push_back({{"tokens", answer.tokens.tokens},
                      {"prompt", answer.tokens.prompt},
                      {"logprobs", logprobs(i, answer)},
                      {"advantages", advantages(i)}});
    }
    return data;
  }

  Result<std::vector<std::vector<float>>> logprobs_in(const Json& answer, const StepRollouts& step) const {
    const JsonField root(answer, "the service's log-probabilities");
    NEREID_TRY(const auto lists, root.at("logprobs"));
    NEREID_TRY(const size_t count, lists.size(step.rollouts.size()));
    if (count != step.rollouts.size()) return lists.expected(fmt::format("{} lists", step.rollouts.size()));
    std::vector<std::vector<float>> found(count);
    for (size_t i = 0; i < count; ++i) {
      NEREID_TRY(found[i], floats_of(lists.item(i), step.rollouts[i].length));
    }
    return found;
  }

  // Log-probabilities under the weights as they are; at the first update those of the policy before, too.
  Status score(const PrefetchedRollouts& written, const StepRollouts& step, std::vector<Rollout>& rollouts,
               bool first, Learnt& learnt) {
    const auto zeros = [&](size_t i) { return std::vector<float>(step.rollouts[i].length, 0); };
    const Json request = {
        {"op", "forward"},
        {"data", data_of(written, step, [&](size_t i, const DrawnAnswer&) { return zeros(i); }, zeros)}};
    // After an update the step is half done: nothing breaks it off.
    auto scored = client_->ask(request, /*interruptible=*/first);
    if (!scored.ok()) return failed("log-probabilities", scored.error());
    NEREID_TRY(auto logprobs, logprobs_in(*scored, step));
    Mismatch mismatch;
    for (size_t i = 0; i < rollouts.size(); ++i) {
      rollouts[i].log_probabilities = std::move(logprobs[i]);
      if (!first) continue;
      rollouts[i].old_log_probabilities = rollouts[i].log_probabilities;
      rollouts[i].weights = truncated_weights(rollouts[i].log_probabilities,
                                              written.answers[*step.rollouts[i].own].engine_logprobs,
                                              rl().importance_limit, mismatch);
    }
    if (first) note_mismatch(mismatch, learnt);
    return ok_status();
  }

  Status one_update(const PrefetchedRollouts& written, StepRollouts& step, std::vector<Rollout>& rollouts,
                    bool at_once, double share, Learnt& learnt) {
    const ObjectiveValue value = evaluate_objective(rl().objective, rollouts, step.groups);
    step.figures.kl = value.kl;
    learnt.loss = value.loss;
    learnt.no_number = !std::isfinite(value.loss);
    if (learnt.no_number) return ok_status();
    const auto advantages = [&](size_t i) {
      std::vector<float> found = value.gradients[i];
      for (float& gradient : found) gradient = -gradient;
      return found;
    };
    // Ratios are those of the trainer to the sampler; where the weights of rollouts have them already, 1.
    const auto logprobs = [&](size_t i, const DrawnAnswer& answer) {
      return at_once ? answer.engine_logprobs : rollouts[i].log_probabilities;
    };
    const Json request = {{"op", "learn"},
                          {"data", data_of(written, step, logprobs, advantages)},
                          {"adam", adam_of(run().optimizer, share)}};
    auto answered = client_->ask(request, /*interruptible=*/false);
    if (!answered.ok()) return failed("the update", answered.error());
    if (at_once) {
      NEREID_TRY(const auto trainer, logprobs_in(*answered, step));
      Mismatch mismatch;
      for (size_t i = 0; i < rollouts.size(); ++i)
        (void)truncated_weights(trainer[i], written.answers[*step.rollouts[i].own].engine_logprobs,
                                rl().importance_limit, mismatch);
      note_mismatch(mismatch, learnt);
    }
    const Figures fresh = {{"loss", value.loss},
                           {"learning_rate", run().optimizer.learning_rate * share},
                           {"clipped_share", value.clipped_share}};
    std::erase_if(learnt.figures, [&](const auto& figure) {
      return std::ranges::count(fresh, figure.first, &Figures::value_type::first) > 0;
    });
    learnt.figures.insert(learnt.figures.begin(), fresh.begin(), fresh.end());
    return ok_status();
  }

  static void note_mismatch(const Mismatch& mismatch, Learnt& learnt) {
    learnt.figures.insert(learnt.figures.end(), {{"mismatch/mean", mismatch.mean()},
                                                 {"mismatch/most", mismatch.most},
                                                 {"mismatch/truncated", mismatch.truncated_share()}});
  }

  PolicySetup setup_;
  std::optional<AnswerFormat> format_;
  std::unique_ptr<TinkerClient> client_;
  bool opened_ = false;
  std::string saved_;  // the latest checkpoint, as the service names it
};

}  // namespace

Result<std::unique_ptr<Policy>> open_tinker_policy(const PolicySetup& setup) {
  auto policy = std::make_unique<TinkerPolicy>(setup);
  NEREID_TRY_STATUS(policy->open());
  return std::unique_ptr<Policy>(std::move(policy));
}

}  // namespace nereid::train
