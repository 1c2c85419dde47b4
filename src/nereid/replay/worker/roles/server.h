// The replay server: warmed once, single-threaded, it forks a jailed worker for every session's reference and
// candidate.
//
// Requests on its control socket: {"fork": "reference"|"candidate", "threads": n} with the worker's end of a
// socket
// -> {"pid"}; {"end": pid} -> {"status"} (as waitpid gives it; the worker is killed if it lives).
#pragma once

namespace nereid::replay {

struct ServeOptions {
  bool jail = true;                    // false: workers run unjailed (for developers)
  bool accept_weak_isolation = false;  // run even where Isolation::enough() says no
};
// Returns when the control socket closes.
int run_server(int control, const ServeOptions& options);

}  // namespace nereid::replay
