// Curves of training runs as one self-contained page.
#pragma once

#include <string>
#include <vector>

#include "nereid/train/metrics.h"
#include "nereid/train/rollout_log.h"

namespace nereid::cli {

struct RunCurves {
  std::string name{};
  train::Curves curves{};
  std::vector<train::RolloutRecord> rollouts{};  // to be shown, in this order
};

// Below the pictures each run's rollouts, to be opened: verdict, reward, reason, answer.
//
// A picture a figure, with a line for each run that has it. At most a few hundred points of a line are drawn:
// of what falls together its lowest and its highest, so that no peak is lost.
std::string runs_page(const std::vector<RunCurves>& runs);

// What is between its title and its end: legend, pictures, rollouts.
std::string runs_body(const std::vector<RunCurves>& runs);

}  // namespace nereid::cli
