// What torch.compile would write, as a proposer: python/nereid/_inductor/inductor.py, in a jailed worker,
// from the trace alone. The reference's own Python is not run again, and no GPU is needed.
#pragma once

#include "nereid/base/program/installation.h"
#include "nereid/proposers/proposer.h"
#include "nereid/sandbox/zygote/zygote.h"

namespace nereid::proposers {

class InductorProposer : public Proposer {
 public:
  // kBoth: two proposals where they differ, see `propose`. kCompile: what torch.compile runs by default,
  // alone.
  enum class Asked { kBoth, kCompile };
  // Starts the worker in the background (some 8 s until it is warm) and returns at once.
  static Result<std::unique_ptr<InductorProposer>> start(const Installation& installation, int workers = 1,
                                                         Asked asked = Asked::kBoth);

  std::string_view name() const override { return "inductor"; }
  std::string identity() const override { return asked_ == Asked::kBoth ? "inductor" : "torch.compile"; }
  // Two proposals where they differ: with matrix products in Triton too ("native_matmul"), and with
  // PyTorch's.
  Result<Answer> propose(const Request& request, Deadline deadline) override;

 private:
  InductorProposer(std::unique_ptr<sandbox::Zygote> zygote, Asked asked)
      : zygote_(std::move(zygote)), asked_(asked) {}
  Result<Answer> ask(const Request& request, bool native_matmul, Deadline deadline);
  std::unique_ptr<sandbox::Zygote> zygote_;
  const Asked asked_;
};

// The trace as the worker needs it: the last forward alone, and no data.
std::string inductor_request(const trace::Trace& trace, bool native_matmul);

}  // namespace nereid::proposers
