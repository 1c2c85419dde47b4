// Our compiler (lower/) as a proposer.
#pragma once

#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

class CompilerProposer : public Proposer {
 public:
  std::string_view name() const override { return "compiler"; }
  Result<Answer> propose(const Request& request, Deadline deadline) override;
  std::unique_ptr<Tuner> tuner(const Request& request, double ms) override;
  std::unique_ptr<Fallback> fallback(const Request& request) override;
};

}  // namespace nereid::proposers
