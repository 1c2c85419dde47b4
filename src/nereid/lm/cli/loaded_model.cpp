#include "nereid/lm/cli/loaded_model.h"

#include <ATen/Parallel.h>

#include "nereid/base/program/installation.h"
#include "nereid/lm/cli/dtype_option.h"
#include "nereid/lm/decoder/device.h"
#include "nereid/lm/engine/cuda/cuda_device.h"

namespace nereid::lm {

Result<LoadedModel> load_model(const EngineOptions& options) {
  NEREID_TRY(const auto dtype, dtype_option(options.dtype));
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(const at::Device where, lm::open_device(options.device));
  if (where.is_cuda() || !options.plain)
    at::set_num_threads(1);  // libtorch has next to nothing to do on the host
  NEREID_TRY(auto weights, lm::load_weights(options.model, where, dtype));
  NEREID_TRY(auto said, lm::read_generation_config(options.model, weights.config));
  NEREID_TRY(auto device, lm::open_engine_device(where, installation, !options.plain));
  return LoadedModel{where, std::move(weights), std::move(said), std::move(device)};
}

lm::RunnerOptions runner_options(const EngineOptions& options, at::Device where, int64_t sequences,
                                 int64_t max_tokens) {
  lm::RunnerOptions runner{.block_size = options.block_size, .max_tokens = max_tokens};
  runner.max_blocks = sequences * ((max_tokens + options.block_size - 1) / options.block_size) + 1;
  if (where.is_cuda() && !options.no_graphs) runner.recorded_sizes = lm::recorded_sizes_up_to(sequences);
  return runner;
}

}  // namespace nereid::lm
