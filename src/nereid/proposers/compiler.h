// The compiler as a proposer.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

class CompilerProposer : public Proposer {
 public:
  // `base`: choices that all its proposals share: the target, and whether TF32 is allowed.
  explicit CompilerProposer(compiler::Choices base = {}) : base_(std::move(base)) {}
  std::string_view name() const override { return "compiler"; }
  std::string identity() const override;
  bool fuses_whole_programs() const override { return true; }
  Result<Answer> propose(const Request& request, Deadline deadline) override;
  std::unique_ptr<Tuner> tuner(const Request& request, double ms) override;
  std::unique_ptr<Fallback> fallback(const Request& request) override;

 private:
  const compiler::Choices base_;
};

}  // namespace nereid::proposers
