// The model that a run trains: it writes answers, learns from them, and leaves checkpoints.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/program/installation.h"
#include "nereid/train/ranks/ranks.h"
#include "nereid/train/rl/learner.h"
#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/rl/writer.h"
#include "nereid/train/sft/checkpoint.h"
#include "nereid/train/sft/train_options.h"

namespace nereid::train {

class Policy {
 public:
  virtual ~Policy() = default;

  // As AnswerWriter's.
  virtual Result<std::vector<DrawnAnswer>> write(const std::vector<Prompt>& prompts, const Sampling& sampling,
                                                 const AnswerWriter::AnswerCallback& on_written) = 0;
  virtual void finish(DrawnAnswer& answer) const = 0;
  virtual const AnswerFormat& format() const = 0;
  virtual int64_t vocab_size() const = 0;

  // Updates at this share of the learning rate, as Learner::learn; `state` gets the place of other data that
  // was learnt from besides.
  virtual Result<Learnt> learn(const PrefetchedRollouts& written, StepRollouts& step, double share,
                               RunState& state) = 0;

  // Before the first step, after load() where there is a checkpoint.
  virtual Status begin(RunState& state) = 0;
  // Sets it to a checkpoint of this kind of policy.
  virtual Result<RunState> load(const std::filesystem::path& checkpoint) = 0;
  // Begins a checkpoint; `kept` is whatever else this rank keeps.
  virtual Status start_checkpoint(const RunState& state, std::string kept) = 0;
  virtual Status wait_for_checkpoint() = 0;
  virtual Status look_at_checkpoint() = 0;  // what went wrong with it, as soon as that is known
  virtual std::string weights_of(const std::filesystem::path& checkpoint) const = 0;  // where they are
};

// What a policy is made of; all of it outlives the policy.
struct PolicySetup {
  const TrainOptions* options = nullptr;
  const RlRun* run = nullptr;
  Ranks* ranks = nullptr;
  at::Device device = at::kCPU;
  const Installation* installation = nullptr;
  std::filesystem::path folder{};  // the run's
  std::filesystem::path checkpoints() const { return folder / "checkpoints"; }
};

// The engine and the trainer of this host, or a service's, as [model] says.
Result<std::unique_ptr<Policy>> open_policy(const PolicySetup& setup);

}  // namespace nereid::train
