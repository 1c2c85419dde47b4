// A language model that gets skills with its tasks: the best for a task are offered, the model chooses among
// them in a short turn of its own, and a share of its samples gets none, so that what skills are worth keeps
// being measured.
//
// What a sample got is its proposals' variant: "sample 3 with one-pass-softmax@2", "sample 1 without skills".
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nereid/proposers/proposer.h"
#include "nereid/skills/prompts.h"
#include "nereid/skills/retrieval.h"

namespace nereid::skills {

inline constexpr size_t kMaxChosen = 3;

struct SkilledOptions {
  double without = 0.25;  // share of samples without skills, 0 to 1
  bool all = false;       // each sample gets every skill, whatever the task: to measure them
};

// What a sample got.
struct Use {
  int64_t sample = 0;
  std::vector<std::pair<std::string, int64_t>> skills{};  // names and versions
  bool control = false;  // by the share without; else `skills` is empty where the model chose none
};
std::string variant_of(const Use& use);
std::optional<Use> use_in(const std::string& variant);  // nothing where it is no such variant

// Names at the beginnings of lines (after list marks), as far as they are among `offered`, once each, at most
// kMaxChosen. Whatever else was answered is ignored.
std::vector<size_t> chosen_in(const std::string& reply, const std::vector<std::string>& offered);

// Thread-safe where the other proposer is.
class SkilledProposer : public proposers::Proposer {
 public:
  SkilledProposer(proposers::Proposer& model, std::vector<Rated> skills, Prompts prompts,
                  SkilledOptions options = {});

  std::string_view name() const override { return model_.name(); }
  std::string identity() const override { return identity_; }
  bool repairs() const override { return model_.repairs(); }
  bool samples() const override { return model_.samples(); }
  bool paid() const override { return model_.paid(); }
  bool speculates() const override { return model_.speculates(); }
  int max_operators() const override { return model_.max_operators(); }
  std::string at_work() const override { return model_.at_work(); }
  Result<proposers::Answer> propose(const proposers::Request& request, Deadline deadline) override;
  std::unique_ptr<proposers::Answers> propose_several(proposers::Request request,
                                                      std::vector<int> samples) override;
  Result<std::optional<proposers::Reply>> converse(const std::vector<proposers::Message>& messages,
                                                   Deadline deadline) override {
    return model_.converse(messages, deadline);
  }

 private:
  class SeveralAnswers;
  struct Guidance {
    std::string text{};
    std::vector<std::pair<std::string, int64_t>> skills{};
    proposers::Cost cost{};  // of the choice, where it was made now
  };
  bool is_control(const proposers::Request& request, int sample) const;
  Result<Guidance> guidance_for(const proposers::Request& request, Deadline deadline);
  Result<std::vector<size_t>> choose(const proposers::Request& request, Deadline deadline,
                                     proposers::Cost& cost);
  void mark(proposers::Answer& answer, const proposers::Request& request, int sample,
            const Guidance& guidance) const;

  proposers::Proposer& model_;
  const std::vector<Rated> skills_;
  const Prompts prompts_;
  const SkilledOptions options_;
  std::string identity_;
  std::mutex mutex_;                                   // guards what follows
  std::map<std::string, std::vector<size_t>> chosen_;  // by the task's source
};

}  // namespace nereid::skills
