// What a worker does for the judge: it plays the reference or the candidate of one session.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nereid/replay/message.h"
#include "nereid/replay/worker/machine.h"
#include "nereid/replay/worker/replay.h"

namespace nereid::replay {

// A request's document has "do" and what the comments at the top of the roles' .cpp files say; the answer is
// {"ok": ...},
// {"failure": ...} (the traced program's fault) or {"error": "..."} (ours).
class Role {
 public:
  virtual ~Role() = default;
  // Throws Failed, c10::Error or std::exception. `descriptors` are sent with the answer, and owned by the
  // role.
  virtual Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) = 0;

  // For who runs the judged forward besides (cuda/worker/cuda_role.h): the replay, and how it ran last.
  // Throws where nothing is loaded.
  struct Playing {
    Replay& replay;
    RunOptions options;
  };
  virtual Playing playing() = 0;
  // A candidate's outputs, as they are now, go to its block; nothing in a reference.
  virtual void copy_outputs() = 0;
};

std::unique_ptr<Role> make_reference_role(Machine& machine);
std::unique_ptr<Role> make_candidate_role(Machine& machine);

// Answers requests on `socket` until it closes; "load" begins anew with a role that `make` gives.
void serve(int socket, const std::function<std::unique_ptr<Role>()>& make);
// The same with one role, which must stand being asked to "load" once.
void serve(int socket, Role& role);

// Plays a whole session of a small task in this process, so that what the first use of anything costs
// (schemas that are parsed, symbols that are bound, memory that is touched) is paid before a fork.
void warm_up(Machine& machine);

// What both roles share: the trace they were sent, prepared, and a replay of it.
struct Loaded {
  trace::Trace trace;
  std::unique_ptr<const Program> program;
  std::unique_ptr<Replay> replay;
  std::unique_ptr<Position, void (*)(Position*)> position{nullptr, nullptr};  // shared with the judge
};
// Reads descriptors 0 (the trace) and 1 (the position).
void load(Loaded& loaded, Message& request, Machine& machine, ProgramOptions options);

}  // namespace nereid::replay
