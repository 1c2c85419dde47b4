// A checkpoint on its device, and how much of it the engine keeps: what every command that generates begins with.
#pragma once

#include <memory>

#include "nereid/base/result.h"
#include "nereid/engine/runner/runner.h"
#include "nereid/lm/engine_options.h"
#include "nereid/model/config.h"
#include "nereid/model/decoder/weights.h"

namespace nereid::lm {

struct LoadedModel {
  at::Device where;
  model::Weights weights;
  model::GenerationConfig said;
  std::unique_ptr<engine::Device> device;
};

Result<LoadedModel> load_model(const EngineOptions& options);

// A cache for so many sequences of at most so many tokens each: more would never be used.
engine::RunnerOptions runner_options(const EngineOptions& options, at::Device where, int64_t sequences, int64_t most_tokens);

}  // namespace nereid::lm
