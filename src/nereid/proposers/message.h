// One message of a conversation with a language model.
#pragma once

#include <string>

namespace nereid::proposers {

struct Message {
  std::string role, content;  // "system", "user", "assistant"
};

}  // namespace nereid::proposers
