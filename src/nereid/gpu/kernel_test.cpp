#include "nereid/gpu/kernel.h"

#include <gtest/gtest.h>

#include "tests/support/fake_driver.h"

namespace nereid::gpu {
namespace {

CompiledKernel image(std::vector<std::string> types) {
  CompiledKernel image;
  image.name = "k";
  image.cubin = "machine code";
  image.params = std::move(types);
  return image;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

TEST(Parameters, NumbersTakeTheirOwnBytes) {
  const auto packed =
      pack_parameters(FakeDriver::driver(),
                      image({"!tt.ptr<f32>", "i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"}),
                      {CUdeviceptr{0x1122334455667788}, Scalar{1}, Scalar{0xFE}, Scalar{0x8001},
                       Scalar{0xFFFFFFFF}, Scalar{0x8000000000000001}, Scalar{0x3C00}, Scalar{0x3F80},
                       Scalar{0x3F800000}, Scalar{0x3FF0000000000000}},
                      {0x10, 0x20});
  ASSERT_TRUE(packed.ok());
  const char* want[] = {"8877665544332211",
                        "01",
                        "fe",
                        "0180",
                        "ffffffff",
                        "0100000000000080",
                        "003c",
                        "803f",
                        "0000803f",
                        "000000000000f03f",
                        "1000000000000000",
                        "2000000000000000"};
  ASSERT_EQ(packed->count(), std::size(want));
  for (size_t i = 0; i < std::size(want); ++i) EXPECT_EQ(hex(packed->bytes_of(i)), want[i]) << i;
}

TEST(Parameters, PointersStayValidAndAligned) {
  std::vector<Argument> arguments(50, Scalar{7});
  auto packed =
      pack_parameters(FakeDriver::driver(), image(std::vector<std::string>(50, "i64")), arguments, {});
  ASSERT_TRUE(packed.ok());
  ParameterBlock moved = *std::move(packed);
  for (void* pointer : moved.pointers()) EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 64, 0U);
  EXPECT_EQ(*static_cast<int64_t*>(moved.pointers()[49]), 7);
}

TEST(Parameters, WhatDoesNotFitIsNamed) {
  const auto error = [](std::vector<std::string> types, const std::vector<Argument>& arguments) {
    const auto packed = pack_parameters(FakeDriver::driver(), image(std::move(types)), arguments, {});
    EXPECT_FALSE(packed.ok());
    EXPECT_TRUE(packed.ok() || packed.error().blame == Blame::kInput);
    return packed.ok() ? "" : packed.error().message;
  };
  EXPECT_EQ(error({"i32"}, {CUdeviceptr{1}}), "kernel k: parameter 0 is i32, the launch gives a pointer");
  EXPECT_EQ(error({"!tt.ptr<f32>"}, {Scalar{1}}),
            "kernel k: parameter 0 is !tt.ptr<f32>, the launch gives a number");
  EXPECT_EQ(error({"i32", "i32"}, {Scalar{1}}), "kernel k has 2 parameters, the launch gives 1");
  EXPECT_EQ(error({"i32"}, {Scalar{1}, Scalar{2}}), "kernel k has 1 parameters, the launch gives more");
}

CompiledKernel with_descriptor() {
  CompiledKernel with = image({"!tt.tensordesc<tensor<8x64xf16>>", "i32", "i32", "i64", "i64", "i32"});
  with.tensordesc_meta.push_back(
      {.swizzle = 3, .elem_size = 2, .elem_type = 6, .block_size = {8, 64}, .fp4_padded = false});
  return with;
}

TEST(Parameters, ADescriptorIsATensorMapAndItsShapeAndStrides) {
  auto& record = FakeDriver::reset();
  const Descriptor descriptor{0x1000, {100, 256}, {512, 1}, true};
  const auto packed = pack_parameters(FakeDriver::driver(), with_descriptor(), {descriptor, Scalar{9}}, {});
  ASSERT_TRUE(packed.ok());
  ASSERT_EQ(packed->count(), 8U);
  EXPECT_EQ(packed->bytes_of(0).size(), sizeof(CUtensorMap));
  EXPECT_EQ(hex(packed->bytes_of(1)), "64000000");
  EXPECT_EQ(hex(packed->bytes_of(2)), "00010000");
  EXPECT_EQ(hex(packed->bytes_of(3)), "0002000000000000");
  EXPECT_EQ(hex(packed->bytes_of(4)), "0100000000000000");
  EXPECT_EQ(hex(packed->bytes_of(5)), "09000000");
  EXPECT_EQ(record.map_dims, (std::vector<uint64_t>{256, 100}));  // innermost first
  EXPECT_EQ(record.map_strides, (std::vector<uint64_t>{1024}));   // in bytes
  EXPECT_EQ(record.map_box, (std::vector<uint32_t>{64, 8}));
  EXPECT_EQ(record.map_base, reinterpret_cast<void*>(0x1000));
  EXPECT_EQ(record.map_swizzle, 3);
  EXPECT_TRUE(record.map_nan);
}

TEST(Parameters, BelowSm90ADescriptorIsItsPartsOneByOne) {
  CompiledKernel expanded = with_descriptor();
  expanded.tensordesc_meta.clear();
  expanded.expanded_descriptors = true;
  const auto packed = pack_parameters(FakeDriver::driver(), expanded,
                                      {Descriptor{0x1000, {100, 256}, {512, 1}, true}, Scalar{9}}, {});
  ASSERT_TRUE(packed.ok());
  const char* want[] = {"0010000000000000", "6400000000000000", "0001000000000000",
                        "0002000000000000", "0100000000000000", "01",
                        "64000000",         "00010000",         "0002000000000000",
                        "0100000000000000", "09000000"};
  ASSERT_EQ(packed->count(), std::size(want) + 2);
  for (size_t i = 0; i < std::size(want); ++i) EXPECT_EQ(hex(packed->bytes_of(i)), want[i]) << i;
}

TEST(Parameters, ADescriptorThatTheGpuRefusesIsTheKernelsFault) {
  auto& record = FakeDriver::reset();
  const auto refused = [&](const Descriptor& descriptor) {
    return pack_parameters(FakeDriver::driver(), with_descriptor(), {descriptor, Scalar{9}}, {}).error();
  };
  EXPECT_NE(refused({0x1000, {100, 256}, {512, 2}, false}).message.find("last stride must be 1"),
            std::string::npos);
  EXPECT_NE(refused({0x1000, {256}, {1}, false}).message.find("rank 1"), std::string::npos);
  record.fail = "cuTensorMapEncodeTiled";
  const Error error = refused({0x1000, {100, 256}, {512, 1}, false});
  EXPECT_EQ(error.blame, Blame::kInput);
  EXPECT_NE(error.message.find("cuTensorMapEncodeTiled"), std::string::npos);
}

TEST(Launch, AttributesFollowTheImage) {
  auto& record = FakeDriver::reset();
  CompiledKernel clustered = image({"i32"});
  clustered.num_ctas = 16;
  clustered.num_warps = 8;
  clustered.shared = 100000;
  clustered.cooperative = clustered.pdl = true;
  clustered.global_scratch = {128, 128};
  {
    const auto kernel = LoadedKernel::load(FakeDriver::driver(), 0, clustered);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->global_scratch_bytes({3, 2, 1}), 128 * 6 * 16);
    const auto outcome = kernel->launch({3, 2, 1}, {Scalar{1}}, {}, nullptr);
    ASSERT_TRUE(outcome.ok());
    EXPECT_TRUE(outcome->ok());
  }
  EXPECT_TRUE(record.modules.empty());
  ASSERT_EQ(record.launches.size(), 1U);
  const CUlaunchConfig& config = record.launches[0];
  EXPECT_EQ(config.gridDimX, 48U);
  EXPECT_EQ(config.gridDimY, 2U);
  EXPECT_EQ(config.blockDimX, 256U);
  EXPECT_EQ(config.sharedMemBytes, 100000U);
  EXPECT_EQ(config.numAttrs, 4U);
  EXPECT_EQ(record.function_attributes.at(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 232448);
  EXPECT_EQ(record.function_attributes.at(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
}

TEST(Launch, AnEmptyGridLaunchesNothingAndAnImpossibleOneIsRefused) {
  auto& record = FakeDriver::reset();
  const auto kernel = LoadedKernel::load(FakeDriver::driver(), 0, image({"i32"}));
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(kernel->launch({0, 1, 1}, {Scalar{1}}, {}, nullptr)->ok());
  EXPECT_TRUE(record.launches.empty());
  EXPECT_EQ(kernel->launch({1, 65536, 1}, {Scalar{1}}, {}, nullptr).error().blame, Blame::kInput);
  EXPECT_EQ(kernel->launch({-1, 1, 1}, {Scalar{1}}, {}, nullptr).error().blame, Blame::kInput);
  EXPECT_TRUE(record.launches.empty());
}

TEST(Launch, TheDriversCodeComesBack) {
  auto& record = FakeDriver::reset();
  const auto kernel = LoadedKernel::load(FakeDriver::driver(), 0, image({"i32"}));
  ASSERT_TRUE(kernel.ok());
  record.launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  const auto outcome = kernel->launch({1, 1, 1}, {Scalar{1}}, {}, nullptr);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(outcome->error.find("cuLaunchKernelEx"), std::string::npos);
}

TEST(Load, TooMuchSharedMemoryIsTheKernelsFault) {
  FakeDriver::reset();
  CompiledKernel large = image({});
  large.shared = 300000;
  const auto kernel = LoadedKernel::load(FakeDriver::driver(), 0, large);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().blame, Blame::kInput);
  EXPECT_TRUE(FakeDriver::record().modules.empty());
}

}  // namespace
}  // namespace nereid::gpu
