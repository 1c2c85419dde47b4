// What a worker does for the judge: it plays the reference or the candidate of one session.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nereid/replay/message.h"
#include "nereid/replay/worker/machine.h"
#include "nereid/replay/worker/replay.h"

namespace nereid::replay {

// A request's document has "do" and what roles.md-like comments in the .cpp files say; the answer is {"ok": ...},
// {"failure": ...} (the traced program's fault) or {"error": "..."} (ours).
class Role {
 public:
  virtual ~Role() = default;
  // Throws Failed, c10::Error or std::exception. `descriptors` are sent with the answer, and owned by the role.
  virtual Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) = 0;
};

std::unique_ptr<Role> make_reference_role(Machine& machine);
std::unique_ptr<Role> make_candidate_role(Machine& machine);

// Answers requests on `socket` until it closes.
void serve(int socket, Role& role);

// What both roles share: the trace they were sent, prepared, and a replay of it.
struct Loaded {
  trace::Trace trace;
  std::unique_ptr<const Program> program;
  std::unique_ptr<Replay> replay;
  Position* position = nullptr;  // shared with the judge
};
// Reads descriptors 0 (the trace) and 1 (the position).
void load(Loaded& loaded, Message& request, Machine& machine, ProgramOptions options);

}  // namespace nereid::replay
