// A kernel's launch, prepared: each configuration's arguments, and the calls around it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/replay/worker/machine.h"
#include "nereid/replay/worker/prepared_call.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

struct PreparedAlternative {
  std::vector<PreparedCall> before;
  std::vector<ttir::Argument> arguments;  // pointers index `buffers`
  std::vector<trace::ValueId> buffers;    // a value of each storage that the launch may touch
  std::vector<std::string> names;         // of the buffers, for findings
  std::vector<bool> read, written;        // of the buffers, by this kernel
};
// trace::Tuning.
struct PreparedTuning {
  struct Run {
    std::vector<PreparedCall> before, after;
  };
  std::vector<Run> runs;
  std::vector<PreparedCall> reset;

  // Calls f(call) for each.
  template <typename F>
  void for_calls(F f) const {
    for (const auto& run : runs) {
      for (const auto& call : run.before) f(call);
      for (const auto& call : run.after) f(call);
    }
    for (const auto& call : reset) f(call);
  }
};
// Throws Failed where the launch gives a parameter what it does not take, or more than there are parameters.
struct PreparedLaunch {
  static PreparedLaunch prepare(const trace::Launch& launch, const trace::Trace& trace, Machine& machine,
                                Launcher& launcher);

  const trace::Launch* launch = nullptr;
  std::vector<PreparedAlternative> alternatives;
  std::optional<PreparedTuning> tuning;
};

}  // namespace nereid::replay
