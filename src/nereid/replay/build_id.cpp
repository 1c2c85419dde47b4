#include "nereid/replay/build_id.h"

#include "nereid/replay/messages_hash.h"

namespace nereid::replay {

std::string build_id() { return kMessagesHash; }

Json hello(const std::string& isolation) {
  return {{"ready", true}, {"isolation", isolation}, {"build", build_id()}};
}

Status same_build(const Json& hello, const std::string& program) {
  const auto found = hello.is_object() ? hello.find("build") : hello.end();
  const bool named = hello.is_object() && found != hello.end() && found->is_string();
  const std::string theirs = named ? found->get<std::string>() : "";
  if (theirs == build_id()) return ok_status();
  return our_error(
      "{}: expected the messages of this nereid ({:.12}), got those of another build ({}): build or install "
      "both programs together",
      program, build_id(), named ? theirs.substr(0, 12) : "without a number");
}

}  // namespace nereid::replay
