#include "nereid/proposers/conversation.h"

#include <algorithm>

namespace nereid::proposers {

Result<std::vector<Message>> conversation(const lm::Prompts& prompts, const std::string& name,
                                          const Request& request) {
  std::vector<lm::WrongAnswer> wrong;
  for (const auto& attempt : request.attempts) wrong.push_back({attempt.text, attempt.evidence});
  NEREID_TRY(const auto said, prompts.repair_messages(name, request.source, wrong));
  std::vector<Message> messages;
  for (const auto& each : said) messages.push_back({each.role, each.content});
  if (request.guidance.empty()) return messages;
  const auto question = std::ranges::find(messages, "user", &Message::role);
  if (question != messages.end()) question->content += "\n\n" + request.guidance;
  return messages;
}

}  // namespace nereid::proposers
