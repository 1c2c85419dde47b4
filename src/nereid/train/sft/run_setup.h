// What every kind of run begins with.
#pragma once

#include <functional>

#include "nereid/lm/decoder/weights.h"
#include "nereid/train/ranks/ranks.h"
#include "nereid/train/run_file.h"
#include "nereid/train/run_folder.h"
#include "nereid/train/sft/train_options.h"

namespace nereid::train {

// The folder of a run of `kind` ("sft", "rl"), as runs/run_folder.h has it, by the rank that leads.
Result<OpenRun> open_run_folder(const TrainOptions& options, const std::filesystem::path& folder,
                                std::string_view kind);

// The model that the run begins with, in its precision: read, or drawn by the run's seed.
Result<lm::Weights> first_weights(const RunFile& run, at::Device device);

// Runs `body` in so many processes of this host, rank r on GPU r where `device` is auto or cuda and there is
// one; in this process where it is one rank. Arithmetic is set up as the run file has it. To be called before
// libtorch is used.
Status on_ranks(int64_t ranks, const std::string& device, const MachineSettings& machine,
                const std::function<Status(Ranks& ranks, at::Device device)>& body);

// As NVIDIA's driver has it; "cpu" for the CPU.
std::string device_name(at::Device device);

// At most so far: of the device, or of this process on the CPU.
double peak_gigabytes(at::Device device);

}  // namespace nereid::train
