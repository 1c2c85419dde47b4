// `nereid runs watch`: a run while it goes on.
#pragma once

#include <string>

#include "nereid/base/program/command.h"
#include "nereid/base/result.h"
#include "nereid/train/rollout_log.h"

namespace nereid::cli {

struct WatchOptions {
  std::string folder;
  int port = -1;      // of the live page, on 127.0.0.1; 0: any that is free; -1: none
  bool once = false;  // the last step alone
  double every = 1;   // seconds between two looks
};

// Until the run has ended, or an interrupt; with a port until an interrupt.
Result<Answer> watch_run(const WatchOptions& options, bool json);

// Of the last step that has any: different answers, a few of each verdict.
Result<std::vector<train::RolloutRecord>> some_rollouts(const std::filesystem::path& folder);

}  // namespace nereid::cli
