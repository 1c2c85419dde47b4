#include "nereid/proposers/conversation.h"

namespace nereid::proposers {
namespace {

constexpr size_t kMostEvidence = 8000;  // bytes of one verdict's evidence

}  // namespace

Result<std::vector<Message>> conversation(const lm::Prompts& prompts, const std::string& name,
                                          const Request& request) {
  NEREID_TRY(const auto question, prompts.ask(name, request.source));
  std::vector<Message> messages;
  for (const auto& each : question) messages.push_back({each.role, each.content});
  for (const auto& attempt : request.attempts) {
    NEREID_TRY(
        std::string repair,
        lm::fill(prompts.repair, {{"evidence", attempt.evidence.substr(0, kMostEvidence)}}, "repair.md"));
    messages.push_back({"assistant", attempt.text});
    messages.push_back({"user", std::move(repair)});
  }
  return messages;
}

}  // namespace nereid::proposers
