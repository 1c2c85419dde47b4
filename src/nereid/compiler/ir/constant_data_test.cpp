#include "nereid/compiler/ir/constant_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace nereid::compiler {
namespace {

template <typename T>
std::vector<double> read(const std::vector<T>& values, trace::DType type) {
  trace::Storage storage;
  storage.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return constant_numbers(storage, type);
}

TEST(ConstantData, ReadsEveryWidth) {
  EXPECT_EQ(read<float>({1.5F, -2}, trace::DType::kF32), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(read<double>({0.1}, trace::DType::kF64), (std::vector<double>{0.1}));
  EXPECT_EQ(read<int64_t>({-7}, trace::DType::kI64), (std::vector<double>{-7}));
  EXPECT_EQ(read<uint8_t>({1, 0}, trace::DType::kBool), (std::vector<double>{1, 0}));
}

TEST(ConstantData, ReadsHalves) {
  // 1, the largest, the smallest above zero, minus infinity.
  EXPECT_EQ(read<uint16_t>({0x3C00, 0x7BFF, 0x0001, 0xFC00}, trace::DType::kF16),
            (std::vector<double>{1, 65504, 0x1p-24, -HUGE_VAL}));
  EXPECT_TRUE(std::isnan(read<uint16_t>({0x7E00}, trace::DType::kF16)[0]));
  EXPECT_EQ(read<uint16_t>({0x3F80, 0xC000}, trace::DType::kBF16), (std::vector<double>{1, -2}));
}

TEST(ConstantData, SaysNothingOfOtherTypes) { EXPECT_TRUE(read<float>({1, 0}, trace::DType::kC64).empty()); }

}  // namespace
}  // namespace nereid::compiler
