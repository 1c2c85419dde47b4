// The outer jail: user, mount, network, pid, ipc and uts namespaces around a whole worker (a zygote with its
// children, a replay server), with a root that holds nothing but what it was given, read-only. The program
// `nereid-jail` builds it:
//
//   nereid-jail SPEC PROGRAM [ARGUMENT...]     SPEC: an OuterSpec as JSON
//
// What the program finds: its descriptors 0 to 3 as given, kProcDescriptor, the standing isolation in
// $NEREID_ISOLATION, number 1 of its pid namespace. It dies when the other end of descriptor kLifeline
// closes, with everything it started. Where the kernel allows no namespaces the program is started without,
// and $NEREID_ISOLATION is empty.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

inline constexpr int kLifeline = 4;  // the launcher's: readable end of a pipe whose other end its user holds
inline constexpr int kProcDescriptor =
    5;  // the program's own /proc/PID (a folder), since its root has no /proc

struct OuterSpec {
  std::vector<std::string> trees;  // files and folders the root shows, read-only, under their own names
  std::vector<std::string> devices = {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"};
  std::vector<std::string> folders =
      {};  // of this worker, which it may write into where there are no namespaces
  int64_t scratch_bytes = int64_t{256} << 20;  // of the worker's own kScratch
  bool namespaces = true;                      // false: behave as on a kernel without them
  // Read-only, but for the folders of the threads of the process that enters: libraries name their threads.
  enum class Proc { kNone, kOfThisNamespace, kAsItIs };  // the second: a new one, of its pid namespace
  Proc proc = Proc::kNone;                               // of the launcher's workers never
};
nlohmann::json to_json(const OuterSpec& spec);
Result<OuterSpec> outer_spec_from_json(std::string_view text);

// What $NEREID_ISOLATION says: the isolation layers that the launcher put around this process.
Isolation outer_isolation();

// A file of this process's own /proc folder, whole; empty where there is none.
std::string read_own_proc(const char* name);

// In a process that is new in its namespaces: builds the root of `spec` and moves into it.
Status enter_root(const OuterSpec& spec);

}  // namespace nereid::sandbox
