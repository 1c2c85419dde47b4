// Giving up what a process may do beyond its user: capabilities, new privileges, being looked into.
#pragma once

#include "nereid/base/result.h"

namespace nereid::sandbox {

// no_new_privs, no capability in any set, not dumpable (no ptrace, no core). For good.
Status drop_privileges();

}  // namespace nereid::sandbox
