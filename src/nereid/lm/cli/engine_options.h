// A generating command's options about its model and engine.
#pragma once

#include <cstdint>
#include <string>

#include "nereid/base/result.h"

namespace CLI {
class App;
}

namespace nereid::lm {

struct EngineOptions {
  std::string model, device = "auto", dtype;
  int64_t sequences = 256, step_tokens = 8192, block_size = 16;
  bool plain = false, no_graphs = false;
};

// --model is listed first in a command's help, the others last: two calls.
void add_model_option(CLI::App& command, EngineOptions& options);
// Where --model was not given, the one that comes with Nereid.
Status name_model(EngineOptions& options);
void add_engine_options(CLI::App& command, EngineOptions& options);

}  // namespace nereid::lm
