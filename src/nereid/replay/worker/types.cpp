#include "nereid/replay/worker/types.h"

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <limits>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {

c10::ScalarType scalar_type(trace::DType type) {
  using enum trace::DType;
  switch (type) {
    case kBool:
      return c10::kBool;
    case kU8:
      return c10::kByte;
    case kI8:
      return c10::kChar;
    case kI16:
      return c10::kShort;
    case kU16:
      return c10::ScalarType::UInt16;
    case kI32:
      return c10::kInt;
    case kU32:
      return c10::ScalarType::UInt32;
    case kI64:
      return c10::kLong;
    case kU64:
      return c10::ScalarType::UInt64;
    case kF16:
      return c10::kHalf;
    case kBF16:
      return c10::kBFloat16;
    case kF32:
      return c10::kFloat;
    case kF64:
      return c10::kDouble;
    case kF8E4M3FN:
      return c10::ScalarType::Float8_e4m3fn;
    case kF8E5M2:
      return c10::ScalarType::Float8_e5m2;
    case kF8E4M3FNUZ:
      return c10::ScalarType::Float8_e4m3fnuz;
    case kF8E5M2FNUZ:
      return c10::ScalarType::Float8_e5m2fnuz;
    case kF8E8M0FNU:
      return c10::ScalarType::Float8_e8m0fnu;
    case kC32:
      return c10::ScalarType::ComplexHalf;
    case kC64:
      return c10::kComplexFloat;
    case kC128:
      return c10::kComplexDouble;
  }
  throw Failed(Failure::Kind::kRefused, "an element type outside the format");
}

trace::DType dtype_of(c10::ScalarType type) {
  for (int t = 0; t <= static_cast<int>(trace::DType::kC128); ++t)
    if (scalar_type(static_cast<trace::DType>(t)) == type) return static_cast<trace::DType>(t);
  throw Failed(Failure::Kind::kRefused, std::string("the element type ") + c10::toString(type));
}

namespace {

at::Tensor tensor_over(const c10::Storage& storage, c10::ScalarType type, at::IntArrayRef sizes,
                       at::IntArrayRef strides, int64_t offset) {
  const c10::DispatchKeySet keys(storage.device().is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), keys,
                                                         caffe2::TypeMeta::fromScalarType(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

}  // namespace

at::Tensor view_of(const trace::Value& value, const c10::Storage& storage) {
  auto tensor = tensor_over(storage, scalar_type(value.dtype), value.sizes, value.strides, value.offset);
  if (value.conj) tensor._set_conj(true);
  if (value.neg) tensor._set_neg(true);
  return tensor;
}

at::Tensor bytes_of(const c10::Storage& storage, int64_t bytes) {
  return tensor_over(storage, c10::kByte, {bytes}, {1}, 0);
}

void poison(const c10::Storage& storage, int64_t bytes, trace::DType type, bool truth) {
  const auto fill = [&](c10::ScalarType word, int64_t pattern) {
    const int64_t size = static_cast<int64_t>(c10::elementSize(word));
    tensor_over(storage, word, {bytes / size}, {1}, 0).fill_(pattern);
  };
  switch (type) {
    using enum trace::DType;
    // Exponent all ones, quiet bit clear, mantissa not zero: a signalling NaN.
    case kF16:
    case kC32:
      return fill(c10::kShort, 0x7DA5);
    case kBF16:
      return fill(c10::kShort, 0x7FA5);
    case kF32:
    case kC64:
      return fill(c10::kInt, 0x7FA5A5A5);
    case kF64:
    case kC128:
      return fill(c10::kLong, 0x7FF5A5A5A5A5A5A5);
    case kBool:
      return fill(c10::kByte, truth ? 1 : 0);
    case kF8E5M2:
      return fill(c10::kByte, 0x7D);
    case kF8E4M3FN:
      return fill(c10::kByte, 0x7F);
    case kF8E4M3FNUZ:
    case kF8E5M2FNUZ:
      return fill(c10::kByte, 0x80);
    case kF8E8M0FNU:
      return fill(c10::kByte, 0xFF);
    default:
      return fill(c10::kByte, 0x5A);
  }
}

double epsilon(trace::DType type) {
  switch (type) {
    using enum trace::DType;
    case kF16:
    case kC32:
      return 0x1p-10;
    case kBF16:
      return 0x1p-7;
    case kF32:
    case kC64:
      return 0x1p-23;
    case kF64:
    case kC128:
      return 0x1p-52;
    case kF8E4M3FN:
    case kF8E4M3FNUZ:
      return 0x1p-3;
    case kF8E5M2:
    case kF8E5M2FNUZ:
      return 0x1p-2;
    case kF8E8M0FNU:
      return 1;
    default:
      return 0;
  }
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  constexpr int64_t kPart = int64_t{1} << 26;
  const auto bits = [](const at::Tensor& tensor) { return tensor.reshape({-1}).view(c10::kByte); };
  const auto x = bits(a), y = bits(b);
  for (int64_t first = 0; first < x.numel(); first += kPart) {
    const auto size = std::min(kPart, x.numel() - first);
    if (!at::equal(x.narrow(0, first, size), y.narrow(0, first, size))) return false;
  }
  return x.numel() == y.numel();
}

double largest_finite(trace::DType type) {
  switch (type) {
    using enum trace::DType;
    case kF16:
    case kC32:
      return 65504;
    case kBF16:
      return 0x1.FEp127;
    case kF32:
    case kC64:
      return std::numeric_limits<float>::max();
    case kF8E4M3FN:
      return 448;
    case kF8E5M2:
    case kF8E5M2FNUZ:
      return 57344;
    case kF8E4M3FNUZ:
      return 240;
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace nereid::replay
