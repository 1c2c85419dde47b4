// model::Operators by our own kernels, with their gradients: what training on a GPU has between its matrix products.
#pragma once

#include <memory>

#include "nereid/engine/runner/kernels.h"
#include "nereid/model/config.h"
#include "nereid/model/decoder/operators.h"

namespace nereid::engine {

// `launcher` outlives them.
Result<std::shared_ptr<model::Operators>> make_training_operators(const model::Config& config, Launcher& launcher, const Installation& installation);

}  // namespace nereid::engine
