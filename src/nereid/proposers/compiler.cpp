#include "nereid/proposers/compiler.h"

#include <fmt/ranges.h>

#include <exception>

#include "nereid/proposers/compiler_fallback.h"
#include "nereid/proposers/compiler_tuner.h"

namespace nereid::proposers {

std::string CompilerProposer::identity() const {
  const compiler::Choices usual;
  std::string text = "compiler";
  if (base_.target != usual.target) text += " for " + base_.target;
  return base_.tf32 ? text + " in TF32" : text;
}

Result<Answer> CompilerProposer::propose(const Request& request, Deadline /*deadline*/) {
  const Stopwatch watch;
  Answer answer;
  try {
    const auto module = compiler::lower_module(*request.trace, request.source, base_);
    if (!module.ok())
      answer.declined = module.error().message;
    else if (module->kernels.empty() && !module->kept.empty())
      answer.declined = fmt::format("there is a Triton kernel for none of its operators: {}",
                                    fmt::join(module->kept, ", "));
    else
      answer.proposals.push_back(compiler_proposal(*module));
  } catch (const std::exception& e) {
    answer.declined = fmt::format("the compiler broke down: {}", e.what());
  }
  answer.cost.seconds = watch.seconds();
  return answer;
}

std::unique_ptr<Tuner> CompilerProposer::tuner(const Request& request, double ms) {
  return std::make_unique<CompilerTuner>(*request.trace, request.source, ms, base_);
}

std::unique_ptr<Fallback> CompilerProposer::fallback(const Request& request) {
  return std::make_unique<CompilerFallback>(*request.trace, request.source, base_);
}

}  // namespace nereid::proposers
