// A checkpoint on its device, and how much of it the engine keeps: what every command that generates begins
// with.
#pragma once

#include <memory>

#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/cli/engine_options.h"
#include "nereid/lm/decoder/weights.h"
#include "nereid/lm/engine/runner/runner.h"

namespace nereid::lm {

struct LoadedModel {
  at::Device where;
  lm::Weights weights;
  lm::GenerationConfig said;
  std::unique_ptr<lm::Device> device;
};

Result<LoadedModel> load_model(const EngineOptions& options);

// A cache for so many sequences of at most so many tokens each: more would never be used.
lm::RunnerOptions runner_options(const EngineOptions& options, at::Device where, int64_t sequences,
                                 int64_t max_tokens);

}  // namespace nereid::lm
