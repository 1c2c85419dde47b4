#include "nereid/search/fall_back.h"

#include "nereid/base/json.h"

namespace nereid::search {

std::optional<proposers::Failure> failure_of(const Judged& judged) {
  using Kind = proposers::Failure::Kind;
  if (judged.kind == verify::VerdictKind::kMismatch) return proposers::Failure{.kind = Kind::kWrong};
  if (judged.kind != verify::VerdictKind::kCompileFailed) return std::nullopt;
  const Json verdict = Json::parse(judged.verdict, nullptr, false);
  if (!verdict.is_object() || !verdict.contains("evidence") || !verdict["evidence"].is_array())
    return std::nullopt;
  for (const Json& evidence : verdict["evidence"])
    if (evidence.is_object() && evidence.value("rule", "") == "gpu-compiler")
      return proposers::Failure{.kind = Kind::kTooLarge, .kernel = evidence.value("kernel", "")};
  return std::nullopt;
}

std::optional<Judged> fall_back(
    proposers::Fallback& ways, const Judged& failed,
    const std::function<std::optional<Judged>(const proposers::Proposal&)>& judge) {
  for (auto failure = failure_of(failed); failure;) {
    const auto proposal = ways.next(*failure);
    if (!proposal) return std::nullopt;
    auto judged = judge(*proposal);
    if (!judged || judged->verified()) return judged;
    failure = failure_of(*judged);
  }
  return std::nullopt;
}

}  // namespace nereid::search
