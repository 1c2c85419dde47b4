// --dtype as several commands have it.
#pragma once

#include <optional>
#include <string>

#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/dtype.h"

namespace nereid::lm {

// Nothing where the option was not given.
inline Result<std::optional<lm::Dtype>> dtype_option(const std::string& name) {
  if (name.empty()) return std::optional<lm::Dtype>();
  const auto dtype = lm::dtype_from_torch(name);
  if (dtype != lm::Dtype::kF32 && dtype != lm::Dtype::kBF16 && dtype != lm::Dtype::kF16)
    return input_error("--dtype: expected float32, bfloat16 or float16, got '{}'", name);
  return dtype;
}

}  // namespace nereid::lm
