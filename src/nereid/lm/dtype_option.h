// --dtype as several commands have it.
#pragma once

#include <optional>
#include <string>

#include "nereid/base/result.h"
#include "nereid/model/dtype.h"

namespace nereid::lm {

// Nothing where the option was not given.
inline Result<std::optional<model::Dtype>> dtype_option(const std::string& name) {
  if (name.empty()) return std::optional<model::Dtype>();
  const auto dtype = model::dtype_from_torch(name);
  if (dtype != model::Dtype::kF32 && dtype != model::Dtype::kBF16 && dtype != model::Dtype::kF16)
    return input_error("--dtype: expected float32, bfloat16 or float16, got '{}'", name);
  return dtype;
}

}  // namespace nereid::lm
