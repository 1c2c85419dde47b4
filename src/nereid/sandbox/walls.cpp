#include <fmt/format.h>

#include "nereid/sandbox/policy.h"

namespace nereid::sandbox {

std::string describe(const Walls& walls) {
  std::string standing, missing;
  auto say = [&](bool stands, const std::string& name) { (stands ? standing : missing) += " " + name; };
  say(walls.user, "user");
  say(walls.mount, "mount");
  say(walls.network, "network");
  say(walls.pid, "pid");
  say(walls.ipc, "ipc");
  say(walls.landlock > 0, walls.landlock > 0 ? fmt::format("landlock({})", walls.landlock) : "landlock");
  say(walls.seccomp, "seccomp");
  say(walls.limits, "limits");
  say(walls.scratch, "scratch");
  std::string text = standing.empty() ? "none" : standing.substr(1);
  if (!missing.empty()) text += "; missing:" + missing;
  for (const auto& note : walls.notes) text += " (" + note + ")";
  return text;
}

}  // namespace nereid::sandbox
