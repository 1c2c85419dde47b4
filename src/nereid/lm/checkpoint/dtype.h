// Element types of tensors in a checkpoint, by the names that safetensors and config.json give them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace nereid::lm {

enum class Dtype {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64
};

size_t element_bytes(Dtype dtype);
std::string_view safetensors_name(Dtype dtype);  // "BF16"
std::optional<Dtype> dtype_from_safetensors(std::string_view name);
std::string_view torch_name(Dtype dtype);                      // "bfloat16"
std::optional<Dtype> dtype_from_torch(std::string_view name);  // with or without "torch."

}  // namespace nereid::lm
