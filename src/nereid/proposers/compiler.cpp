#include "nereid/proposers/compiler.h"

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
    if (module.ok()) {
      answer.proposals.push_back(compiler_proposal(*module));
    } else {
      answer.declined = module.error().message;
    }
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
