#include "nereid/policy/compiler.h"

#include <exception>

#include "nereid/lower/module.h"

namespace nereid::policy {

Result<Answer> CompilerProposer::propose(const Request& request, Deadline /*deadline*/) {
  const Stopwatch watch;
  Answer answer;
  try {
    auto module = lower::lower_module(*request.trace, request.source);
    if (module.ok()) {
      std::string plan = std::move(module->plan);
      for (const auto& kept : module->kept) plan += "PyTorch's: " + kept + "\n";
      std::vector<Region> regions;
      for (const auto& kernel : module->kernels)
        regions.push_back({kernel.name, {kernel.covers.begin(), kernel.covers.end()}});
      answer.proposals.push_back(
          {.text = std::move(module->text), .plan = std::move(plan), .regions = std::move(regions)});
    } else {
      answer.declined = module.error().message;
    }
  } catch (const std::exception& e) {
    answer.declined = fmt::format("the compiler broke down: {}", e.what());
  }
  answer.cost.seconds = watch.seconds();
  return answer;
}

}  // namespace nereid::policy
