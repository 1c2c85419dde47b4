// Supervised fine-tuning: the loop around a Trainer, from a run file to a run's folder.
#pragma once

#include "nereid/train/sft/train_options.h"

namespace nereid::train {

// Runs to the schedule's end, or goes on from the folder's latest checkpoint. Ctrl-C leaves a checkpoint and
// is an error with Blame::kInterrupted. An error leaves whatever was done before it: the latest checkpoint,
// and where a loss is no number one of the step before it.
Status run_sft(const TrainOptions& options);

}  // namespace nereid::train
