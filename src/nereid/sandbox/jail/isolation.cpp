#include <fmt/format.h>

#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

std::string describe(const Isolation& isolation) {
  std::string standing, missing;
  auto say = [&](bool stands, const std::string& name) { (stands ? standing : missing) += " " + name; };
  say(isolation.user, "user");
  say(isolation.mount, "mount");
  say(isolation.network, "network");
  say(isolation.pid, "pid");
  say(isolation.ipc, "ipc");
  say(isolation.landlock > 0,
      isolation.landlock > 0 ? fmt::format("landlock({})", isolation.landlock) : "landlock");
  say(isolation.seccomp, "seccomp");
  say(isolation.limits, "limits");
  say(isolation.scratch, "scratch");
  std::string text = standing.empty() ? "none" : standing.substr(1);
  if (!missing.empty()) text += "; missing:" + missing;
  for (const auto& note : isolation.notes) text += " (" + note + ")";
  return text;
}

}  // namespace nereid::sandbox
