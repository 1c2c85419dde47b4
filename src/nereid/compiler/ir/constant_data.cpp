#include "nereid/compiler/ir/constant_data.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace nereid::compiler {
namespace {

template <typename T>
double number(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

double half(const char* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

double bfloat16_at(const char* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

using Reader = double (*)(const char*);
Reader reader(trace::DType type) {
  using trace::DType;
  switch (type) {
    case DType::kBool:
    case DType::kU8:
      return number<uint8_t>;
    case DType::kI8:
      return number<int8_t>;
    case DType::kI16:
      return number<int16_t>;
    case DType::kI32:
      return number<int32_t>;
    case DType::kI64:
      return number<int64_t>;
    case DType::kF16:
      return half;
    case DType::kBF16:
      return bfloat16_at;
    case DType::kF32:
      return number<float>;
    case DType::kF64:
      return number<double>;
    default:
      return nullptr;
  }
}

}  // namespace

std::vector<double> constant_numbers(const trace::Storage& storage, trace::DType type) {
  const Reader read = reader(type);
  const auto size = static_cast<size_t>(trace::element_bytes(type));
  std::vector<double> numbers;
  for (size_t at = 0; read != nullptr && at + size <= storage.data.size(); at += size)
    numbers.push_back(read(storage.data.data() + at));
  return numbers;
}

}  // namespace nereid::compiler
