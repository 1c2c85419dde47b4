// The compiler's choices after some that failed: where numbers are wrong the next scheme of float32 products
// (fp16x3, bf16x6, tf32x3, ieee), then the module without the rewrites that round otherwise; where a kernel
// asks for more than the GPU has, smaller tiles and fewer stages of that kernel.
#pragma once

#include <set>
#include <string>

#include "nereid/compiler/module.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

class CompilerFallback : public Fallback {
 public:
  // Refers to the trace.
  CompilerFallback(const trace::Trace& trace, std::string source, compiler::Choices from = {});
  std::optional<Proposal> next(const Failure& failure) override;
  std::unique_ptr<Tuner> tuner(double ms) override;

 private:
  // What it changes, in words; nothing where there is no other way.
  std::optional<std::string> after_wrong();
  std::optional<std::string> after_too_large(const std::string& function);
  Result<compiler::Module> lowered(const compiler::Choices& choices) const;

  const trace::Trace& trace_;
  const std::string source_;
  compiler::Choices choices_{};
  compiler::Module module_{};     // of `choices_`; without text: there is none
  std::set<std::string> seen_{};  // texts: what makes no difference is not tried
};

// The same tile with less of shared memory and registers; false where there is none.
bool shrink(compiler::KernelChoice& choice);

}  // namespace nereid::proposers
