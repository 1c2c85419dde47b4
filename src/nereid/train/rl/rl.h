// Reinforcement learning: the loop around engine, judge and trainer, from a run file to a run's folder.
#pragma once

#include "nereid/train/sft/train_options.h"

namespace nereid::train {

// As run_sft: goes on from the folder's latest checkpoint, Ctrl-C leaves one. A fault of the judge's is no
// verdict: such rollouts are left out of their group.
Status run_rl(const TrainOptions& options);

}  // namespace nereid::train
