// The messages that a model gets for a request.
#pragma once

#include <string>
#include <vector>

#include "nereid/lm/chat/prompts.h"
#include "nereid/proposers/chat.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

// The task with the request's guidance after it, then each attempt with its evidence. `name`: what the task's
// file is called there.
Result<std::vector<Message>> conversation(const lm::Prompts& prompts, const std::string& name,
                                          const Request& request);

}  // namespace nereid::proposers
