// The compiler's choices, turned one at a time: whole ways first (attention in one pass, convolutions over
// rows of channels, ...), then how each kernel is cut, the costliest by the model first, and of its cuts
// those nearest to the present one. What is faster is kept, and the next is tried on top of it.
#pragma once

#include <deque>
#include <functional>
#include <set>

#include "nereid/compiler/module.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

Proposal compiler_proposal(const compiler::Module& module);

class CompilerTuner : public Tuner {
 public:
  // `from`: the choices that took `ms`.
  CompilerTuner(const trace::Trace& trace, std::string source, double ms, compiler::Choices from = {});
  std::optional<Proposal> next() override;
  void observe(std::optional<double> ms) override;

 private:
  struct Move {
    std::string name{};
    std::function<void(compiler::Choices&)> apply{};
    bool whole = false;  // it may change which kernels there are
  };
  Result<compiler::Module> lowered(const compiler::Choices& choices) const;
  void plan_cuts(const compiler::Module& module);

  const trace::Trace& trace_;
  const std::string source_;
  double best_ms_;
  compiler::Choices best_{}, last_{};
  Move move_{};
  compiler::Module module_{};         // of `last_`
  std::deque<Move> ways_{}, cuts_{};  // still to try
  std::set<std::string> seen_{};      // texts: what makes no difference is not tried
};

}  // namespace nereid::proposers
