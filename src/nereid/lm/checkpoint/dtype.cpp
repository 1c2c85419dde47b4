#include "nereid/lm/checkpoint/dtype.h"

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

struct Row {
  Dtype dtype;
  size_t bytes;
  std::string_view safetensors, torch;
};

constexpr Row kRows[] = {
    {Dtype::kBool, 1, "BOOL", "bool"},
    {Dtype::kU8, 1, "U8", "uint8"},
    {Dtype::kI8, 1, "I8", "int8"},
    {Dtype::kF8E4M3, 1, "F8_E4M3", "float8_e4m3fn"},
    {Dtype::kF8E5M2, 1, "F8_E5M2", "float8_e5m2"},
    {Dtype::kI16, 2, "I16", "int16"},
    {Dtype::kU16, 2, "U16", "uint16"},
    {Dtype::kF16, 2, "F16", "float16"},
    {Dtype::kBF16, 2, "BF16", "bfloat16"},
    {Dtype::kI32, 4, "I32", "int32"},
    {Dtype::kU32, 4, "U32", "uint32"},
    {Dtype::kF32, 4, "F32", "float32"},
    {Dtype::kF64, 8, "F64", "float64"},
    {Dtype::kI64, 8, "I64", "int64"},
    {Dtype::kU64, 8, "U64", "uint64"},
};

const Row& row(Dtype dtype) {
  for (const auto& row : kRows)
    if (row.dtype == dtype) return row;
  NEREID_CHECK(false, "a dtype of the table, got {}", static_cast<int>(dtype));
}

}  // namespace

size_t element_bytes(Dtype dtype) { return row(dtype).bytes; }
std::string_view safetensors_name(Dtype dtype) { return row(dtype).safetensors; }
std::string_view torch_name(Dtype dtype) { return row(dtype).torch; }

std::optional<Dtype> dtype_from_safetensors(std::string_view name) {
  for (const auto& row : kRows)
    if (row.safetensors == name) return row.dtype;
  return std::nullopt;
}

std::optional<Dtype> dtype_from_torch(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const auto& row : kRows)
    if (row.torch == name) return row.dtype;
  return std::nullopt;
}

}  // namespace nereid::lm
