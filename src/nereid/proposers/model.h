// A language model of ours as a proposer: a checkpoint in a folder, run by a process of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "nereid/base/program/installation.h"
#include "nereid/lm/chat/prompts.h"
#include "nereid/proposers/model_process.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

struct ModelOptions {
  std::filesystem::path folder{};  // config.json, safetensors, tokenizer.json, perhaps prompts/
  std::string device = "auto";     // as nereid-lm takes it
  std::function<std::shared_ptr<void>()> turn{};  // as of ModelProcess::start
};

// Sample 0 is greedy, the others are drawn at generation_config.json's temperature (else 1, where it is 0,
// too), each by a seed that is made of the task and its number: what it answers is a function of the
// checkpoint, the prompt and the sample, as far as rounding does not depend on what is computed in the same
// batch. Those of later rounds are drawn hotter, but only where the model is uncertain: elsewhere its
// likeliest token has nearly all of what is kept.
//
// Its prompts are those of its folder's prompts/, where there are some (those it was trained with), else with
// everybody's. It repairs where these have a repair.md that is not empty. Where they have a prefill.md the
// program is read for it: each answer begins as that says, with the traced forward ({{steps}},
// compiler/output/trace_summary.h), and it goes on from there; samples 1, 2, ... as prefill-1.md,
// prefill-2.md, ... say, where these are there, and they are greedy, too.
class ModelProposer : public Proposer {
 public:
  // Looks at the folder, and loads the model in the background. An Error (blamed on the input) names what is
  // missing.
  static Result<std::unique_ptr<ModelProposer>> start(const Installation& installation, ModelOptions options);

  std::string_view name() const override { return "model"; }
  std::string identity() const override { return identity_; }
  bool repairs() const override { return repairs_; }
  bool samples() const override { return true; }
  bool speculates() const override { return true; }
  int max_operators() const override { return kMaxOperators; }
  std::string at_work() const override;
  Result<Answer> propose(const Request& request, Deadline deadline) override;
  std::unique_ptr<Answers> propose_several(Request request, std::vector<int> samples) override;
  Result<std::optional<Reply>> converse(const std::vector<Message>& messages, Deadline deadline) override;

  const ModelProcess& process() const { return *process_; }

 private:
  // Our models are trained on tasks of packages, which have at most as many (`nereid harvest`).
  static constexpr int kMaxOperators = 12;

  ModelProposer() = default;
  Result<Question> question(const Request& request, std::vector<int> samples) const;

  lm::Prompts prompts_;
  bool repairs_ = false;
  lm::BranchStart branches_ = lm::BranchStart::kAfterTrunk;
  std::string identity_;
  std::unique_ptr<ModelProcess> process_;
};

// SHA-256 of all that a checkpoint's answers depend on: its files' names, sizes and bytes; of files beyond
// 256 MiB 64 pieces of a MiB that lie evenly.
Result<std::string> checkpoint_hash(const std::filesystem::path& folder);

// What a model thought before it answered: what stands between <think> and </think>.
std::string thought_in(const std::string& answer);

}  // namespace nereid::proposers
